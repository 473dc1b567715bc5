"""What Tetraodon raises. Every message names the place, what was given *in kind*, and the fix; none shows a data value.

``SpecificationError`` is a mistake in what the user declared (exit code 2); ``Refused`` is a rule that says no
(budget, policy, data, ledger, output; exit code 1) and nothing has been spent unless the message says so.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TetraodonError(Exception):
    """Base of every exception that this package raises on purpose."""

    exit_code = 1


class SpecificationError(TetraodonError, ValueError):
    """A declaration is wrong: a domain, a policy, a query, a budget, a file of settings."""

    exit_code = 2


class Unsupported(SpecificationError):
    """A named feature of the design that this version does not offer, or not in this combination."""


class Refused(TetraodonError):
    """A rule of the policy, the budget or the data says no."""


class BudgetError(Refused):
    """The privacy budget does not cover the request. Nothing was spent."""


class PolicyError(Refused):
    """The policy does not allow the request. Nothing was spent."""


class DataError(Refused):
    """The table does not fit its declaration (missing column, wrong type, a value where none may be missing)."""


class EngineError(Refused):
    """A data engine failed. Its own message is withheld because it may quote rows."""


class LedgerError(Refused):
    """The ledger cannot be opened, does not belong to this table, or has been tampered with."""


class OutputError(Refused):
    """A result could not be written. The message says whether the budget was already charged."""


def unknown(where: str, what: str, asked: object, known: Iterable[object]) -> SpecificationError:
    """A ``SpecificationError`` for a name that was not declared, with the nearest declared one.

    >>> str(unknown("query", "attribute", "capital_los", ["age", "capital_loss"]))
    "query: no attribute 'capital_los'; declared: age, capital_loss. Did you mean 'capital_loss'?"
    """
    names = [str(k) for k in known]
    near = difflib.get_close_matches(str(asked), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return SpecificationError(f"{where}: no {what} {asked!r}; declared: {shown or 'none'}.{hint}")
