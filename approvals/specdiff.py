"""What differs between two specs of an agent: its own fields, and its middleware entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from approvals.argform.patch import Change, compare
from approvals.argform.pointer import escape

type Spec = Mapping[str, Any]
type SpecEntry = Mapping[str, Any]

OWN = ("title", "description", "model", "base_url", "api_key_env", "model_options", "system_prompt", "tools")
TELLS_APART = ("id", "pii_type", "tool_name")  # options that say which of several instances it is


@dataclass(frozen=True)
class Pair:
    """One middleware on both sides. Positions count from 1; None: it is not there."""

    use: str
    before: int | None
    after: int | None
    is_moved: bool = False
    changes: Sequence[Change] = field(default=())

    @property
    def state(self) -> Literal["added", "removed", "changed", "moved", "same"]:
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        return "changed" if self.changes else "moved" if self.is_moved else "same"


def own_changes(old: Spec, new: Spec) -> list[Change]:
    """Of the agent's own fields, a list of tools as a whole."""
    return [
        Change(f"/{name}", old.get(name), new.get(name))
        for name in OWN
        if list(compare(_plain(old.get(name)), _plain(new.get(name))))
    ]


def pairs(old: Spec, new: Spec) -> list[Pair]:
    """In the order of the new list; what was removed stands where it was."""
    before, after = _entries(old), _entries(new)
    matched = _matched(before, after)
    still = _in_place([matched[n] for n in sorted(matched)])
    found = [
        Pair(
            str(after[n].get("use", "")),
            matched[n] + 1,
            n + 1,
            is_moved=matched[n] not in still,
            changes=list(compare(_plain(before[matched[n]]), _plain(after[n]))),
        )
        if n in matched
        else Pair(str(after[n].get("use", "")), None, n + 1)
        for n in range(len(after))
    ]
    for n in sorted(set(range(len(before))) - set(matched.values())):
        found.insert(_after(found, n), Pair(str(before[n].get("use", "")), n + 1, None))
    return found


def differ(old: Spec, new: Spec) -> bool:
    return bool(own_changes(old, new)) or any(pair.state != "same" for pair in pairs(old, new))


def listed(old: Spec, new: Spec) -> list[dict[str, Any]]:
    """For the audit trail: [{"field": JSON pointer, "old", "new"}], middleware by name and place."""
    return [
        *(
            {"field": change.pointer, "old": change.old, "new": change.new}
            for change in own_changes(old, new)
        ),
        *(row for pair in pairs(old, new) for row in _of_pair(pair, _entries(old), _entries(new))),
    ]


def _of_pair(pair: Pair, before: Sequence[SpecEntry], after: Sequence[SpecEntry]) -> Iterator[dict[str, Any]]:
    where = f"/middleware/{escape(pair.use)}"
    if pair.before is None or pair.after is None:
        old = before[pair.before - 1] if pair.before else None
        new = after[pair.after - 1] if pair.after else None
        yield {"field": where, "old": old, "new": new}
        return
    if pair.is_moved:
        yield {"field": f"{where}/position", "old": pair.before, "new": pair.after}
    for change in pair.changes:
        yield {"field": f"{where}{change.pointer}", "old": change.old, "new": change.new}


def _entries(spec: Spec) -> list[SpecEntry]:
    found = spec.get("middleware")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list | tuple) else []


def _matched(before: Sequence[SpecEntry], after: Sequence[SpecEntry]) -> dict[int, int]:
    """Place in the new list -> place in the old one: equal entries first, then the same kind, then the same name."""
    matched: dict[int, int] = {}
    for sameness in (lambda entry: repr(_plain(entry)), _kind, lambda entry: str(entry.get("use"))):
        free = [n for n in range(len(before)) if n not in matched.values()]
        for n in range(len(after)):
            if n in matched:
                continue
            known = next((m for m in free if sameness(before[m]) == sameness(after[n])), None)
            if known is not None:
                matched[n] = known
                free.remove(known)
    return matched


def _kind(entry: SpecEntry) -> str:
    return repr([entry.get("use"), *(entry.get(name) for name in TELLS_APART)])


def _in_place(order: Sequence[int]) -> set[int]:
    """The old places that kept their order among each other: the longest such row."""
    matcher = SequenceMatcher(None, sorted(order), order, autojunk=False)
    return {order[n] for block in matcher.get_matching_blocks() for n in range(block.b, block.b + block.size)}


def _after(found: Sequence[Pair], place: int) -> int:
    """Where a removed entry is shown: behind the one that stood before it."""
    earlier = [n for n, pair in enumerate(found) if pair.before is not None and pair.before <= place]
    return max(earlier) + 1 if earlier else 0


def _plain(value: Any) -> Any:
    """Tuples and lists are the same list."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
