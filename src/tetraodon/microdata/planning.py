"""What the command line says of microdata, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import Any

from ..sensitivity import Sensitivity
from ..terminal import text_of
from .sample_error import error_of
from .strategy import HybridStrategy, columns_text

MEASURED = "no proved bound: what leaks is measured on these rows alone"


@dataclass(frozen=True, eq=False)
class HybridPlan:
    """What a release of microdata would do. Nothing was read or spent."""

    strategy: HybridStrategy

    @property
    def cost(self) -> Sensitivity:
        """Nothing is charged, since nothing is proved."""
        return self.strategy.cost

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form."""
        return planned_microdata(self.strategy.query.title, self.strategy, False)

    def __repr__(self) -> str:
        return text_of(microdata_text(self.to_spec()))


def planned_microdata(name: str, strategy: HybridStrategy, released: bool) -> dict[str, Any]:
    """A planned release of microdata in plain values, from public inputs alone."""
    asked = strategy.query
    return {
        "name": name,
        "kind": "microdata",
        "title": asked.title,
        "epsilon": "0",
        "guarantee": strategy.guarantee,
        "chosen": strategy.mechanism.words,
        "private": [{"name": c.name, "kind": c.kind, "values": c.size} for c in strategy.layout.private],
        "exchanged": list(asked.insensitive),
        "quasi_identifiers": list(asked.quasi_identifiers),
        "stated": _stated(strategy),
        "disclosed_exactly": strategy.disclosed(),
        "released": released,
        "mechanisms": [],
        "notes": [],
    }


def _stated(strategy: HybridStrategy) -> list[str]:
    """What the request asks of groups and distances, in words."""
    asked = strategy.query
    need = asked.requirements.said()
    groups = "groups" if asked.groups is None else f"{asked.groups} groups"
    each = f"{groups} of {', '.join(need)}" if need else groups
    limit = "all rows together" if asked.budget == "shared" else "every group"
    lines = [each, f"expected distance up to {asked.distortion:g} ({asked.metric}) over {limit}"]
    if asked.coarseness:
        lines.append(f"{asked.coarseness:g} bits for a group as wide as all values")
    if asked.published == "donors":
        lines.append(f"at least {asked.donors} possible donors for a row")
    if asked.sample is not None:
        lines.append(_sampled(strategy, asked.sample))
    if asked.quasi_identifiers:
        lines.append(f"{', '.join(asked.quasi_identifiers)} in classes of at least {asked.class_size} rows")
    return lines


def _sampled(strategy: HybridStrategy, rows: int) -> str:
    asked = strategy.query
    values = prod(c.size for c in strategy.layout.private)
    far = error_of(rows, values, asked.clusters, asked.metric)
    distance = "" if far["distortion"] == inf else f"distances within ± {far['distortion']:.2g}, "
    return (
        f"groups and clusters found on {rows:,} rows where there are more; channels, limits and figures are of all rows (figures of a "
        f"sample, for groups and channels fixed beforehand: {distance}leakage within ± {far['leakage']:.2g} bits, with 99 % confidence)"
    )


def microdata_text(told: Mapping[str, Any]) -> list[str]:
    """``planned_microdata`` as text."""
    lines = [f"{told['name']}: {told['title']}, {MEASURED} (whole rows, in random order)"]
    for column in told["private"]:
        lines.append(f"  → {column['name']}: generalised from {column['values']:,} declared values")
    lines.append(f"  → {columns_text(len(told['exchanged']))} exchanged within groups: {told['chosen']}")
    lines += [f"    {text}" for text in told["stated"]]
    lines += [f"    leaves: {text}" for text in told["disclosed_exactly"]]
    if told["released"]:
        lines.append("    released already in this edition: release refuses it; --again draws afresh")
    return lines


def released_microdata_text(entry: Mapping[str, Any]) -> list[str]:
    """The manifest's entry of microdata as text."""
    files = ", ".join(f["path"] for f in entry["files"].values())
    lines = [f"{entry['name']}: {MEASURED}, {entry['rows']:,} rows, {entry['mechanism_name']} → {files}"]
    for column in entry["groups"]:
        shown = [f"{g['label']} ({g['rows']:,})" for g in column["groups"][:12]]
        more = ", …" if len(column["groups"]) > 12 else ""
        lines.append(
            f"  {column['column']}: {len(column['groups'])} groups, rows of each in brackets: {', '.join(shown)}{more}"
        )
    if entry["evidence"] is None:
        lines.append(
            "  leakage and distances come from private rows and are not published (publish_evidence = true would)"
        )
    else:
        lines += [f"  {sentence}" for sentence in entry["evidence"]["words"]]
    return lines
