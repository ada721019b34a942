"""Start a program that dies with its parent, as another user if asked: `python tether.py SIGNAL PARENT UID GID COMMAND...`.

A small process of its own instead of a `preexec_fn`, which may hang when the parent has threads. The signal must be
requested after the change of user, because the kernel forgets it there. UID and GID are `-` to stay who we are.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(signal: int, parent: int) -> None:
    """Ask the kernel for `signal` when the parent ends; end at once if it has ended already. Linux only."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def become(uid: str, gid: str) -> None:
    """Give up root for good."""
    if uid == "-":
        return
    try:
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
    except OSError as error:
        sys.exit(f"cannot switch to user {uid}: {error.strerror}")
    os.umask(0o077)


def main(arguments: list[str]) -> None:
    signal, parent, uid, gid, *command = arguments
    become(uid, gid)
    die_with_parent(int(signal), int(parent))
    try:
        os.execvp(command[0], command)  # noqa: S606 (the supervisor's own list, no shell)
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
