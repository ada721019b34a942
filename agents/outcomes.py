"""How a call to a system of record can end, other than with an answer. Standard library only."""

from __future__ import annotations


class Refused(Exception):
    """A definite no: the provider did nothing, and the text says why."""


class Ambiguous(Exception):
    """Nobody knows: the request may have been acted upon although no usable answer was read."""


class Unavailable(Ambiguous, ConnectionError):
    """A read got no answer. Also a `ConnectionError`, so that retry rules can name it without knowing us."""
