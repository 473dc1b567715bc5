"""What a manifest says about microdata."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Refused
from ..exact import show
from ..plans import finite, number
from .release import MicrodataRelease
from .strategy import columns_text

if TYPE_CHECKING:
    from .plan import Plan

LN2 = log(2.0)
POINTS = 10
NARROW = 1e-9
MEASURED = "Measured on private rows, for this table alone"
CERTIFIED = "Certified on private rows, for this table alone"


def entry_of(
    release: MicrodataRelease, files: Mapping[str, Mapping[str, str]], evidence: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The entry of one release.

    Args:
        files: path and digest of each published file.
        evidence: what was computed from private rows; None where it is not published.
    """
    asked, cost = release.query, release.cost
    need = asked.requirements
    return {
        "kind": "microdata",
        "name": release.name,
        "title": asked.title,
        "query": asked.to_spec(),
        "guarantee": release.guarantee,
        "spent": {"unit": release.spent.unit, "amount": show(release.spent.amount)},
        "cost": {"value": show(cost.value), "rule": cost.rule, "witness": None},
        "mechanism": release.mechanism.to_spec(),
        "mechanism_name": release.mechanism.words,
        "rows": release.table.num_rows,
        "attributes": list(release.table.column_names),
        "private": list(release.groups),
        "exchanged": [c for n in asked.insensitive for c in release.strategy.domain[n].columns(n)],
        "quasi_identifiers": [
            c for n in asked.quasi_identifiers for c in release.strategy.domain[n].columns(n)
        ],
        "disclosed_exactly": release.disclosures(),
        "requirements": {
            "k": need.k,
            "l": need.l,
            "alpha": need.alpha,
            "beta": need.beta,
            "variety": need.variety,
            "donors": asked.donors,
            "class_size": asked.class_size if asked.quasi_identifiers else None,
        },
        "groups": [
            {"column": column, "groups": [{"label": g.label, "rows": g.rows} for g in groups]}
            for column, groups in release.groups.items()
        ],
        "evidence": None if evidence is None else dict(evidence),
        "ledger_row": release.charge,
        "records": release.total,
        "files": {form: dict(f) for form, f in files.items()},
    }


def evidence_of(release: MicrodataRelease) -> dict[str, Any]:
    """What was computed from private rows: leakage in bits with its bound, distances, the private columns' own histograms.

    Private: it is published where the publisher says so, and nowhere else.
    """
    plan = release.plan
    figures = {key: finite(float(value)) for key, value in plan.figures.items()}
    return {
        "figures": figures,
        "bound": None if plan.bound is None else finite(plan.bound),
        "gap": None if plan.gap is None else finite(plan.gap),
        "coarse": finite(plan.coarse),
        "realised": finite(release.realised),
        "metric": release.query.metric,
        "curve": _curve(plan),
        "history": plan.to_spec()["history"],
        "histograms": _histograms(release),
        "words": _words(release, plan),
    }


def _curve(plan: Plan) -> list[dict[str, Any]]:
    """Least leakage of these groups along the distance that is allowed, each point with what no exchange leaks less than."""
    from .blocks import Block
    from .obfuscate import curve

    shared = plan.settings.budget == "shared"
    blocks = [Block(law.joint, law.cost) for law in plan.laws]
    flat = [(b.share, b.least(), float((b.mass @ b.cost).min())) for b in blocks]
    if shared:
        least, most = sum(low for _, low, _ in flat), sum(high for _, _, high in flat)
    else:
        least, most = max(low / w for w, low, _ in flat), max(high / w for w, _, high in flat)
    if most - least <= NARROW * max(most, NARROW):
        return []
    shares = np.linspace(1 / POINTS, 1, POINTS)
    budgets = sorted({*(least + shares * (most - least)).tolist(), max(plan.settings.distortion, least)})
    try:
        found = curve(blocks, budgets, shared=shared, invariant=plan.settings.is_invariant)
    except Refused:  # shares of clusters that have to stay leave no room at so small a distance
        return []
    told = plan.figures
    start = told["classes"] + told["naming"]
    return [
        {
            "name": "these groups, least leaking exchange",
            "distortion": [f.distortion for f in found],
            "leakage": [start + f.leak / LN2 for f in found],
            "bound": [start + f.bound / LN2 for f in found],
        }
    ]


def _histograms(release: MicrodataRelease) -> list[dict[str, Any]]:
    """Rows of every value of each private column, by the group that it was put into."""
    plan = release.plan
    found = []
    for at, (name, groups) in enumerate(release.groups.items()):
        column, of = plan.columns[at], plan.group_of[at]
        counts = np.bincount(plan.prepared.data.codes[at], minlength=column.size)
        found.append(
            {
                "column": name,
                "values": [
                    {"value": label, "group": groups[int(of[v])].label, "rows": int(counts[v])}
                    for v, label in enumerate(column.labels)
                ],
            }
        )
    return found


def _words(release: MicrodataRelease, plan: Plan) -> list[str]:
    told, asked = plan.figures, release.query
    private = " and ".join(asked.private)
    classes = f", {_bits(told['classes'])} the classes" if asked.quasi_identifiers else ""
    lines = [
        f"{MEASURED}: one published row tells {_bits(told['leakage'])} of {private}, of {_bits(told['unknown'])} that there are "
        f"to tell; with the {columns_text(len(asked.insensitive))} left in their clusters it would be {_bits(told['unprotected'])}. "
        "It bounds no attacker who knows more.",
        f"{MEASURED}: {_bits(told['naming'])} of it are the groups' names, {_bits(told['exchange'])} the exchanged columns{classes}.",
        f"{MEASURED}: rows lie {number(told['distortion'])} ({asked.metric}) from what stands in their place on average, of "
        f"{number(told['budget'])} allowed; in this draw {number(release.realised)}.",
    ]
    rule = f"these clusters ({'donors' if asked.published == 'donors' else 'prototypes'} by the same rule)"
    if plan.sampled is not None and plan.channel_bound is not None:
        lines.append(
            f"{MEASURED}: groups and clusters were found on {int(plan.sampled['rows']):,} rows drawn at random, of which a row told "
            f"{_bits(plan.sampled['leakage'])} at a distance of {number(plan.sampled['distortion'])}; all other figures are of all rows."
        )
        lines.append(
            f"{CERTIFIED}: in these groups no exchange between {rule} {_within(plan)} leaks less than "
            f"{_bits(plan.channel_bound)}; of other groups nothing is certified."
        )
    if plan.bound is not None and plan.gap is not None:
        if plan.coarse > NARROW:
            said = f"leak less by more than {_bits(plan.gap)}, the price of coarse groups counted"
        else:
            said = f"leak less than {_bits(plan.bound)} (gap {_bits(plan.gap)})"
        lines.append(
            f"{CERTIFIED}: no groups of this kind that meet these requirements, with any exchange between {rule} "
            f"{_within(plan)}, {said}."
        )
    return lines


def _within(plan: Plan) -> str:
    """An exchange that keeps the distance itself may exceed an upper bound of it, and leak less."""
    if plan.prepared.is_exact:
        return "within the same distance"
    return "that keeps the distance by the upper bounds used here"


def _bits(amount: float) -> str:
    return "0 bits" if amount < 1e-12 else f"{number(amount)} bits"
