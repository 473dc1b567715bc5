"""What a manifest says: every release with its evidence, the policy, the account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .accounts import accounts_of, counted
from .editions import editions_spec, largest_of
from .exact import show
from .mechanisms.strategy import Strategy
from .plans import describe_workload, finite, name_of
from .policy import Policy
from .presenting import Presented
from .release import Release, published_exactly
from .sensitivity import Neighbourhood, Term, stacked

if TYPE_CHECKING:
    from .clustering.released import Way
    from .ledger import Ledger
    from .marginals.strategy import MarginalStrategy

# Keys of an entry, by which one of an earlier version is told.
ANSWERS = frozenset(
    [
        "name",
        "title",
        "query",
        "guarantee",
        "spent",
        "mechanism",
        "mechanism_name",
        "cost",
        "noise",
        "expected_error",
        "half_width",
        "coverage",
        "workload",
        "unit",
        "rows",
        "attributes",
        "axis",
        "tables",
        "disclosed_exactly",
        "settled_by_known_counts",
        "considered",
        "curve",
        "frontier",
        "ledger_row",
        "records",
        "presentation",
        "files",
    ]
)
OF_RECORDS = frozenset(
    [
        "kind",
        "name",
        "title",
        "query",
        "guarantee",
        "spent",
        "cost",
        "mechanism",
        "mechanism_name",
        "rows",
        "attributes",
        "disclosed_exactly",
        "ledger_row",
        "records",
        "files",
    ]
)
ROWS = OF_RECORDS | {"kept", "per_person", "permanent", "channels"}
MICRODATA = OF_RECORDS | {"private", "exchanged", "quasi_identifiers", "requirements", "groups", "evidence"}
AUDIT = "audit"
"""An entry has it if the release was put to the test first."""
KEYS: Mapping[Any, frozenset[str]] = {None: ANSWERS, "rows": ROWS, "microdata": MICRODATA}


def release_entry(
    release: Release, shown: Presented, files: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """What a manifest says about one release, whose files hold the presented table."""
    cost, strategy = release.cost, release.strategy
    return {
        "name": release.name,
        "title": release.query.title,
        "query": release.query.to_spec(),
        "guarantee": release.guarantee,
        "spent": {"unit": release.spent.unit, "amount": show(release.spent.amount)},
        "mechanism": release.mechanism.to_spec(),
        "mechanism_name": name_of(release.mechanism),
        "cost": {
            "value": show(cost.value),
            "rule": cost.rule,
            "witness": None if cost.witness is None else list(cost.witness),
        },
        "noise": noise_spec(strategy),
        "expected_error": finite(release.expected_error),
        "half_width": finite(release.half_width),
        "coverage": 0.95,
        "workload": describe_workload(strategy),
        "unit": release.unit,
        "rows": sum(shown.rows),
        "attributes": list(shown.attributes),
        "axis": _axis_name(strategy),
        "tables": _tables(strategy, shown),
        "disclosed_exactly": release.disclosures(),
        "settled_by_known_counts": _settled(release),
        "considered": [row.to_spec() for row in release.considered],
        "curve": [
            {"name": c["name"], "loss": c[strategy.loss.unit], "half_width": c["half_width"]}
            for c in release.curve
        ],
        "frontier": None if release.traded is None else dict(release.traded),
        "ledger_row": release.charge,
        "records": release.records,
        "presentation": presentation_entry(shown),
        "files": {form: dict(f) for form, f in files.items()},
    }


def presentation_entry(shown: Presented) -> dict[str, Any]:
    """How a table is shown: what was asked for, what became of it, and the columns as they are written."""
    beside, how = shown.quantile_columns, shown.presentation
    return {
        "asked": how.to_spec(),
        "suppressed": shown.suppressed,
        "columns": [{"name": n, "unit": shown.units.get(n)} for n in shown.columns],
        "quantiles": None
        if beside is None
        else {
            "rows": len(beside["value"]),
            "columns": [{"name": n, "unit": shown.quantile_units.get(n)} for n in beside],
        },
    }


def _tables(strategy: Strategy | MarginalStrategy | Way, shown: Presented) -> list[dict[str, Any]]:
    """The tables of ``Marginals``, each with the rows that it has in the file."""
    if isinstance(strategy, Strategy):
        return []
    found = strategy.tables_spec()
    return [told | {"rows": rows} for told, rows in zip(found, shown.rows, strict=True)] if found else []


def _settled(release: Release) -> str:
    """Which of the rows that are published exactly would move along the policy's edges, were its counts not public: all, some
    or none."""
    spec = release.context["policy"]["spec"]
    if "constraints" not in spec:
        return "none"
    free = Neighbourhood(Policy.from_spec(spec).graph)
    rows = [Term(t.resolved, (layer,)) for t in release.strategy.exact_terms for layer in t.layers]
    moved = [bool(stacked([row], free).value) for row in rows]
    return "none" if not any(moved) else "all" if all(moved) else "some"


def _axis_name(strategy: Strategy | MarginalStrategy | Way) -> str | None:
    axis = strategy.resolved.axis if isinstance(strategy, Strategy) else None
    return None if axis is None else axis.name


def noise_spec(strategy: Strategy | MarginalStrategy | Way) -> list[dict[str, Any]]:
    """What carries noise: rows of a kind, their scale (σ² for Gaussian noise) and their number in every group."""
    if not isinstance(strategy, Strategy):
        return strategy.noise_spec()
    return [
        {"rows": p.name, "scale": show(s), "number": int((~p.exact).sum())}
        for p in strategy.parts
        if (s := strategy.scale(p)) is not None
    ]


def manifest_of(entries: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> dict[str, Any]:
    """The whole manifest: what, under which policy, at which cost, with which evidence."""
    ledger, edition = context["ledger"], context["data"]["edition"]
    outside = dict.fromkeys(text for entry in entries for text in entry["disclosed_exactly"])
    outside |= dict.fromkeys(published_exactly(ledger))
    records = {entry["records"] for entry in entries}
    return {
        "format": 1,
        "tetraodon": context["tetraodon"],
        "data": {**context["data"], "records": records.pop() if len(records) == 1 else None},
        "policy": context["policy"],
        "budget": {
            "unit": ledger.unit,
            "delta": None if ledger.delta is None else show(ledger.delta),
            "total": show(ledger.total),
            "spent": show(largest_of(ledger.accounts_for(edition))),
            "elsewhere": show(_elsewhere(ledger, entries, edition)),
            "remaining": show(ledger.remaining_for(edition)),
            "policies": _policies(ledger, edition),
            **editions_spec(ledger, edition),
            "ledger": ledger.name,
            "head": ledger.head,
            "outside": list(outside),
        },
        "releases": list(entries),
        "versions": context["versions"],
    }


def _elsewhere(ledger: Ledger, entries: Sequence[Mapping[str, Any]], edition: str) -> Fraction:
    """What the account would have spent without these releases."""
    here = {entry["ledger_row"] for entry in entries}
    rows = tuple(row for row in counted(ledger.entries, edition) if row.seq not in here)
    return largest_of(accounts_of(rows))


def _policies(ledger: Ledger, edition: str) -> list[dict[str, Any]]:
    """The joint loss of all releases under every policy in force, by secret."""
    tied = {each.policy.hash for each in ledger.policies if not each.policy.neighbourhood.is_plain}
    return [
        {
            "policy": account.policy_hash,
            "row": account.row,
            "all_known_counts": account.is_union,
            "moves_several_records": account.policy_hash in tied,
            "largest": show(account.losses.value),
            "by_secret": [
                {"secret": secret, "loss": show(loss)} for secret, loss in account.losses.by_secret.items()
            ],
        }
        for account in ledger.accounts_for(edition)
    ]
