"""Who did it: every write of a person, a rule, an agent or the system itself carries an actor."""

from __future__ import annotations

from dataclasses import dataclass

from approvals.enums import ActorKind
from approvals.models import ApiToken, User


@dataclass(frozen=True)
class Actor:
    kind: ActorKind
    name: str  # frozen into the rows it writes
    user: User | None = None
    token: ApiToken | None = None

    @classmethod
    def of(cls, user: User, token: ApiToken | None = None) -> Actor:
        kind = ActorKind.TOKEN if token else ActorKind.USER
        return cls(kind, user.name, user, token)

    @classmethod
    def agent(cls, title: str) -> Actor:
        return cls(ActorKind.AGENT, title)

    @property
    def person(self) -> User:
        """The user behind it. For acts that only people may do."""
        if self.user is None:
            raise TypeError(f"{self.kind} {self.name} is not a person")
        return self.user


SYSTEM = Actor(ActorKind.SYSTEM, "Counterseal")
COMMAND_LINE = Actor(ActorKind.SYSTEM, "Command line")
EXPIRY_RULE = Actor(ActorKind.RULE, "Time to decide")
LOOK_UP = Actor(ActorKind.RULE, "Look-up by key")
