"""What the command line does with a settings file: plan, run, and say it in text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from .disclosure import exact_rows
from .errors import OutputError, unknown
from .exact import show
from .ledger import Ledger
from .mechanisms.strategy import Strategy
from .publish import prepare, publish
from .queries import Quantiles
from .release import Priced, describe_workload, name_of, number, unit_of
from .session import PricedRequest, price_all
from .spec import Document
from .workload import Rows, SomeRanges


def planned(document: Document) -> dict[str, Any]:
    """Every release with every applicable mechanism, priced from public inputs only.

    The ledger, if there is one already, is read for what is left.
    """
    priced = price_all(document.policy, document.requests)
    total = sum((p.strategy.spent.amount for p in priced), Fraction(0))
    left, taken, binds = document.epsilon, set[str](), True
    if document.ledger is not None and document.ledger.exists():
        ledger = Ledger.read(document.ledger)
        left, binds = ledger.remaining, ledger.entries[0].body["policy_hash"] == document.policy.hash
        edition = document.source.get("edition", "")
        taken = {
            e.charge.name for e in ledger.entries if e.charge is not None and e.charge.edition == edition
        }
    releases = []
    for p in priced:
        request, strategy, considered = p.request, p.strategy, p.considered
        releases.append(
            {
                "name": request.name,
                "title": request.query.title,
                "epsilon": show(strategy.spent.amount),
                "workload": describe_workload(strategy),
                "unit": unit_of(strategy),
                "chosen": name_of(strategy.mechanism),
                "disclosed_exactly": exact_rows(strategy),
                "released": request.name in taken,
                "mechanisms": [row.to_spec() for row in _chosen_first(Priced(strategy), considered)],
            }
        )
    return {
        "releases": releases,
        "cost": show(total),
        "remaining": show(left),
        "total": show(document.epsilon),
        "fits": total <= left,
        "same_policy": binds,
    }


def _chosen_first(chosen: Priced, considered: Sequence[Priced]) -> list[Priced]:
    spec = chosen.mechanism.to_spec()
    return [chosen, *(row for row in considered if row.mechanism.to_spec() != spec)]


def plan_text(told: Mapping[str, Any]) -> str:
    """``planned`` as text."""
    lines = []
    for release in told["releases"]:
        lines.append(
            f"{release['name']}: {release['title']}, epsilon {release['epsilon']} ({release['workload']})"
        )
        for i, row in enumerate(release["mechanisms"]):
            mark = "→" if i == 0 else " "
            wide = "unbounded" if row["half_width"] is None else f"± {number(row['half_width'])}"
            lines.append(f"  {mark} {row['name']:<46} {wide:>14} {release['unit']}".rstrip())
        lines += [
            f"    published exactly, no secret under the policy: {text}"
            for text in release["disclosed_exactly"]
        ]
        if release["released"]:
            lines.append(
                "    released already in this edition: release refuses it; --again draws and charges afresh"
            )
    if not told["same_policy"]:
        lines.append("The ledger was made for another policy: release will refuse. Name another ledger.")
    verdict = "fits" if told["fits"] else "does NOT fit"
    lines.append(
        f"Together epsilon {told['cost']}; {told['remaining']} of {told['total']} is left: it {verdict}. "
        "± is 95 %, for an answer of average error. Nothing was read or spent."
    )
    return "\n".join(lines)


def run(document: Document, folder: Path, only: Sequence[str], again: bool) -> Path:
    """Price everything, check the output folder, then charge, draw and publish."""
    known = [r.name for r in document.requests]
    for name in only:
        if name not in known:
            raise unknown("--only", "release", name, known)
    requests = [replace(r, again=again) for r in document.requests if not only or r.name in only]
    priced = price_all(document.policy, requests)
    prepare(folder, {p.request.name: (_rows(p), document.formats[p.request.name]) for p in priced})
    if document.ledger is not None and not document.ledger.parent.is_dir():
        raise OutputError(f"{document.ledger.parent}: the ledger's folder does not exist. Nothing was spent.")
    session = document.session()
    releases = session.release_all(requests, priced)
    return publish(folder, [(r, document.formats[r.name]) for r in releases], session.context, report=True)


def _rows(priced: PricedRequest) -> int:
    """Rows of the published table, known before the data are read."""
    if not isinstance(priced.strategy, Strategy):
        return priced.strategy.asked.n_cells
    resolved = priced.strategy.resolved
    query, asked = resolved.query, resolved.workload
    if isinstance(query, Quantiles):
        each = len(query.levels)
    elif isinstance(asked, Rows):
        each = len(asked.matrix)
    else:
        each = len(asked.lows) if isinstance(asked, SomeRanges) else resolved.n_positions
    return resolved.n_groups * each


def release_text(told: Mapping[str, Any], folder: Path) -> str:
    """A manifest in a few lines."""
    budget = told["budget"]
    lines = [told["policy"]["headline"]]
    for release in told["releases"]:
        wide = (
            ""
            if release["half_width"] is None
            else f" ± {number(release['half_width'])} {release['unit']}".rstrip()
        )
        files = ", ".join(f["path"] for f in release["files"].values())
        lines.append(
            f"{release['name']}: epsilon {release['epsilon']},{wide} (95 %), {release['mechanism_name']} → {files}"
        )
    account = "in memory" if budget["ledger"] is None else budget["ledger"]
    lines.append(f"Spent {budget['spent']} of {budget['total']} (ledger: {account}).")
    lines += [f"Published exactly, no secret under the policy: {text}." for text in budget["outside"]]
    lines.append(f"Report: {folder / 'report.html'}")
    return "\n".join(lines)


def ledger_text(ledger: Ledger) -> str:
    """A ledger as text."""
    first = ledger.entries[0].body
    lines = [
        f"{first['data']}: epsilon {show(ledger.spent)} of {show(ledger.total)} spent, {show(ledger.remaining)} left."
    ]
    published = {e.body["charge"] for e in ledger.entries if e.kind == "published"}
    for entry in ledger.entries:
        if entry.charge is None:
            continue
        charge = entry.charge
        edition = f", edition {charge.edition}" if charge.edition else ""
        again = ", drawn again" if charge.again else ""
        state = "" if entry.seq in published else " — charged, never published"
        lines.append(f"  {entry.time}  {charge.name}{edition}: epsilon {show(charge.epsilon)}{again}{state}")
        lines += [f"      published exactly: {text}" for text in charge.disclosures]
    lines.append(f"head {ledger.head}")
    return "\n".join(lines)
