"""release.toml → the objects. Every error names the file, the key and the fix, and shows no data value.

pydantic checks the outer document; ``from_spec`` of each class reads what is inside, so there is one truth per class.
Numbers are read exactly.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from .binding import secrets_from_spec
from .compare import OWN
from .constraints import Constraint, answers_file, constraint_from_spec
from .domain import Domain, check_columns
from .entries import renewal
from .errors import SpecificationError
from .exact import positive
from .ledger_address import address_of, is_address
from .loss import Loss
from .margins import check_presentation
from .mechanisms import mechanism_from_spec
from .microdata.settings import Hybrid
from .outline import outline, release_key
from .people import KEYS, People, people_of
from .policy import Policy, check_chosen, check_exempt, exempt_of
from .presentation import Presentation, presentation_from_spec
from .pricing import check
from .publish import file_name
from .queries import Query, query_from_spec
from .reading import listed, under
from .requests import Request, release_loss
from .rows.query import Rows as RowQuery
from .selecting import choice_of
from .session import Session
from .spec_rows import ROW_KEYS, microdata_request, row_request, stated_loss
from .table import Table

# Bytes, with room for what is added to the name of a ledger while it is written.
MAX_NAME = 240
MAX_PATH = 3800


@dataclass(frozen=True, eq=False)
class Document:
    """A settings file, read and checked; no data has been opened.

    Attributes:
        path: of the file; relative paths in it start from its folder.
        policy: with its domain.
        total: the budget.
        delta: of a budget in ρ, where it is stated.
        ledger: path or URL of the ledger, None for an account in memory.
        renews: "edition" where every edition has the whole budget to itself.
        compared: policies of [compare], by name: this one with other secrets, which plans and reports set beside it.
        requests: the releases, in order.
        presentations: how each release is shown, by name.
    """

    path: Path
    policy: Policy
    total: Loss
    delta: Fraction | None
    ledger: Path | str | None
    requests: tuple[Request, ...]
    presentations: Mapping[str, Presentation]
    source: Mapping[str, Any]
    renews: str | None = None
    compared: Mapping[str, Policy] = field(default_factory=dict)

    def table(self) -> Table:
        """Open the data (read-only).

        Raises:
            DataError: a missing file or column, or a column that cannot hold its attribute.
        """
        told = dict(self.source)
        source = str(told.pop("source"))
        where = source if "://" in source else self.path.parent / source
        return Table(where, self.policy.domain, **told)

    @property
    def choice(self) -> dict[str, Any]:
        """``Table.choice`` of its table, which need not be there yet."""
        told = (self.source.get(key) for key in ("id", "where", "sql"))
        return choice_of(self.policy.domain, *told)

    def session(self) -> Session:
        """The table under the policy, with the file's ledger."""
        total = {self.total.unit: self.total.amount}
        return Session(
            self.table(), self.policy, ledger=self.ledger, delta=self.delta, renews=self.renews, **total
        )


def load(path: Path) -> Document:
    """Read a settings file.

    Raises:
        SpecificationError: with file, key and fix.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecificationError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise SpecificationError(f"{path}: is not UTF-8 text.") from None
    try:
        raw = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise SpecificationError(f"{path.name}: not valid TOML: {error}.") from None
    except (ValueError, ArithmeticError, RecursionError):
        raise SpecificationError(
            f"{path.name}: a number too long, or a nesting too deep, to be read."
        ) from None
    with _in_file(path.name):
        outer = outline(raw)
        with _at("domain"):
            domain = Domain.from_spec(outer["domain"], path.parent)
        check_columns(domain)
        people = _people(outer["data"])
        secrets = secrets_from_spec(outer["policy"]["secrets"])
        with _at("policy"):
            policy = Policy(
                domain,
                secrets,
                _constraints(outer["policy"]["constraint"], path.parent),
                outer["policy"]["presence"],
                None if outer["policy"]["exempt"] is None else exempt_of(outer["policy"]["exempt"]),
                people,
            )
            check_exempt(policy, outer["data"]["id"] is not None)
        with _in("data"):
            check_chosen(policy, outer["data"]["where"], outer["data"]["weight"])
        compared = {name: _compared(policy, name, told) for name, told in outer["compare"].items()}
        requests: list[Request] = []
        presentations: dict[str, Presentation] = {}
        for i, told in enumerate(outer["release"]):
            with _at(release_key(told, i)):
                requests.append(_request(told, path.parent, [r.name for r in requests]))
                check(requests[-1].query, domain)  # so that a wrong attribute is named with its key
                presentations[told["name"]] = _presentation(told.get("present"), requests[-1].query, domain)
        names = [r.name for r in requests]
        for name in names:
            if names.count(name) > 1:
                raise SpecificationError(f"releases.{name}: two releases have this name.")
        budget, ledger = outer["budget"], outer["budget"].get("ledger")
        total = stated_loss(budget, "budget.")
        delta = None if budget["delta"] is None else positive(budget["delta"], "budget.delta")
        if delta is not None and (total.unit != "rho" or delta >= 1):
            raise SpecificationError(
                "budget.delta: below 1, and beside rho alone; a budget in epsilon has none."
            )
        if total.unit == "rho" and delta is None:
            raise SpecificationError(
                "budget.delta: is missing; a budget in rho states one, such as 0.000001."
            )
        for request in requests:
            if request.loss.unit == "rho" and total.unit == "epsilon":
                raise SpecificationError(
                    f"releases.{request.name}.rho: the budget is in epsilon, which Gaussian noise has none of; "
                    "state budget.rho and budget.delta instead."
                )
        renewal("budget.renews", budget["renews"])
        data = {k: v for k, v in outer["data"].items() if v is not None}
        if "://" not in data["source"]:
            _check_path(data["source"], path.parent, "data.source")
        if is_address(ledger):
            with _in("budget"):
                address_of(ledger)
        elif ledger is not None:
            _check_path(ledger, path.parent, "budget.ledger")
    return Document(
        path,
        policy,
        total,
        delta,
        ledger if ledger is None or is_address(ledger) else path.parent / ledger,
        tuple(requests),
        presentations,
        data,
        budget["renews"],
        compared,
    )


def _compared(policy: Policy, name: str, told: Any) -> Policy:
    """One line of [compare]: other secrets for the same people, facts and domain."""
    where = f"compare.{name}"
    if name in ("", OWN) or name != name.strip():
        raise SpecificationError(
            f"{where}: a name of its own, without blanks around it and other than {OWN!r}."
        )
    with _at(where):
        return policy.under(secrets_from_spec(told, where))


@contextmanager
def _in_file(name: str) -> Iterator[None]:
    try:
        yield
    except SpecificationError as error:
        raise type(error)(f"{name}: {error}") from None


@contextmanager
def _in(key: str) -> Iterator[None]:
    """Prefix an error with its key, whatever key stands outside."""
    try:
        yield
    except SpecificationError as error:
        raise type(error)(f"{key}.{error}") from None


@contextmanager
def _at(key: str) -> Iterator[None]:
    """Prefix an error with its key, unless it starts with it already."""
    try:
        yield
    except SpecificationError as error:
        text = str(error)
        raise type(error)(text if text.startswith(key) else f"{key}.{text}") from None


def _check_path(told: str, folder: Path, key: str) -> None:
    """Refuse what no file can be called; looks at the length of names alone."""
    parts = Path(told).parts
    if not parts or "\0" in told:
        raise SpecificationError(f"{key}: the path of a file, not empty and without null characters.")
    long = any(len(os.fsencode(part)) > MAX_NAME for part in parts)
    if long or len(os.fsencode(folder.absolute() / told)) > MAX_PATH:
        raise SpecificationError(
            f"{key}: too long for the path of a file; at most {MAX_NAME} bytes a name and {MAX_PATH} in all."
        )


def _people(data: Mapping[str, Any]) -> People:
    """What one person adds to the table, of the keys of [data]."""
    with _in("data"):
        return people_of(**{key: data[key] for key in KEYS})


def _constraints(told: Sequence[Mapping[str, Any]], folder: Path) -> list[Constraint]:
    """[[policy.constraint]] tables; answers may lie in a CSV file."""
    found = []
    for i, one in enumerate(told):
        where, spec = f"constraint.{i + 1}", dict(one)
        answers = spec.get("answers")
        if isinstance(answers, str):
            _check_path(answers, folder, f"policy.{where}.answers")
            names = listed(spec.get("marginal"), f"{where}.marginal", "a list of attributes")
            spec["answers"] = answers_file(folder / answers, names, f"{where}.answers")
        found.append(constraint_from_spec(spec, where))
    return found


def _request(told: Mapping[str, Any], folder: Path, earlier: Sequence[str]) -> Request:
    with under("name"):
        file_name(told["name"])
    if sum(told[key] is not None for key in ("query", "rows", "hybrid")) != 1:
        raise SpecificationError("query: state a query, rows with a channel, or hybrid, one of them.")
    if told["hybrid"] is not None:
        return microdata_request(told, folder)
    if told["audit"] is not None:
        raise SpecificationError("audit: goes with hybrid; nothing else has a mapping of rows.")
    if told["rows"] is not None:
        return row_request(told, folder, earlier)
    for key, default in ROW_KEYS.items():
        if told[key] != default:
            raise SpecificationError(f"{key}: goes with rows, not with a query.")
    query = query_from_spec(told["query"])
    mechanism = told.get("mechanism", "auto")
    chosen = None if mechanism == "auto" else mechanism_from_spec(mechanism)
    loss = stated_loss(told)
    return Request(query, release_loss(loss.unit, loss.amount, loss.unit), told["name"], chosen)


def _presentation(told: Any, query: Query, domain: Domain) -> Presentation:
    how = presentation_from_spec({} if told is None else told)
    if isinstance(query, RowQuery | Hybrid):
        if how.changed:
            raise SpecificationError(f"present.{how.changed[0]}: goes with a query; rows leave as they are.")
    else:
        check_presentation(how, query, domain)
    return how
