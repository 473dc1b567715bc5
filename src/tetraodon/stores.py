"""Where the rows of a ledger lie: in a file, in a PostgreSQL database that a team shares, or in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .chain import File, Memory, PathText, locate
from .ledger_address import address_of, is_address

if TYPE_CHECKING:
    from .shared_chain import Shared

Stored: TypeAlias = "File | Shared"
Store: TypeAlias = "File | Shared | Memory"


def stored_at(where: PathText, writable: bool) -> Stored:
    """The store that a path or a URL names; nothing is opened.

    Raises:
        SpecificationError: a URL that names no ledger.
        LedgerError: a path that this system cannot open.
    """
    if isinstance(where, str) and is_address(where):
        from .shared_chain import Shared

        return Shared(address_of(where), writable)
    return File(locate(where), writable)


def called(where: str) -> str:
    """A path as it was given; a URL by what it means, without server and role."""
    return str(address_of(where)) if is_address(where) else where
