"""What the command line does with a settings file: plan, run, and say it in text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from .admission import differing
from .auditing.settings import confirmed
from .clustering.released import Way
from .composition import loss_under, losses_text, readable
from .disclosure import exact_rows
from .editions import RENEWAL, account_lines, largest_of, raised_lines, raises_spec
from .entries import token_of
from .errors import OutputError, PolicyError
from .exact import show
from .ledger import Ledger
from .margins import presented_rows
from .mechanisms.strategy import Strategy
from .microdata.audit import check_apart
from .microdata.planning import microdata_text, planned_microdata, released_microdata_text
from .microdata.publishing import GROUPS
from .microdata.strategy import HybridStrategy
from .plans import Priced, describe_workload, name_of, number, unit_of
from .presentation import Presentation
from .pricing import notes
from .publish import beside_query, check_account, prepare, publish
from .queries import Quantiles
from .release import Release
from .requests import chosen
from .rows.lasting import check_store
from .rows.planning import planned_rows, released_rows_text, rows_text
from .rows.query import Rows as RowQuery
from .rows.release import RowRelease
from .rows.resumed import check_outside
from .rows.strategy import RowStrategy
from .session import PricedRequest, Request, Session, charge_of, price_all
from .spec import Document
from .terminal import text_of
from .traded import traded
from .workload import Rows, SomeRanges
from .zcdp import epsilon_of


def planned(document: Document) -> dict[str, Any]:
    """Every release with every applicable mechanism, priced from public inputs only.

    The ledger, if there is one already, is read for what is left.
    """
    priced = price_all(document.policy, document.requests)
    edition = document.source.get("edition", "")
    charges = [charge_of(p, document.policy, edition, document.choice) for p in priced]
    together = loss_under(document.policy, charges, document.total.unit).value
    left, taken, binds, refused = document.total.amount, set[str](), True, ""
    raises: list[dict[str, Any]] = []
    fits = together <= left
    if document.ledger is not None and Ledger.exists(document.ledger):
        ledger = Ledger.read(document.ledger)
        left = ledger.remaining_for(edition)
        binds = any(each.body["policy_hash"] == document.policy.hash for each in ledger.declared)
        taken = {
            e.charge.name for e in ledger.entries if e.charge is not None and e.charge.edition == edition
        }
        try:
            after = ledger.after(charges, document.policy)
            fits = all(account.losses.value <= ledger.total for account in after)
        except PolicyError as error:
            fits, refused = False, str(error)
        asked = {"unit": document.total.unit, "total": str(document.total.amount), "renews": document.renews}
        differ = differing(ledger.entries, asked)
        if differ:
            fits, refused = False, f"{ledger}: {'; '.join(differ)}."
        raises = raises_spec(ledger)
    releases: list[dict[str, Any]] = []
    for p in priced:
        request, strategy, considered = p.request, p.strategy, p.considered
        if isinstance(strategy, RowStrategy):
            releases.append(planned_rows(request.name, strategy, request.name in taken))
            continue
        if isinstance(strategy, HybridStrategy):
            releases.append(planned_microdata(request.name, strategy, request.name in taken))
            continue
        releases.append(
            {
                "name": request.name,
                "title": request.query.title,
                strategy.spent.unit: show(strategy.spent.amount),
                "workload": describe_workload(strategy),
                "unit": unit_of(strategy),
                "chosen": name_of(strategy.mechanism),
                "disclosed_exactly": exact_rows(strategy, document.policy.people),
                "released": request.name in taken,
                "notes": list(notes(request.query, document.policy, request.loss)),
                "mechanisms": [
                    row.to_spec()
                    for row in _chosen_first(Priced(strategy, document.policy.people.grain), considered)
                ],
            }
        )
    return {
        "releases": releases,
        "unit": document.total.unit,
        "cost": show(together),
        "remaining": show(left),
        "total": show(document.total.amount),
        "fits": fits,
        "same_policy": binds,
        "refused": refused or None,
        "renews": document.renews,
        "raises": raises,
    }


def _chosen_first(chosen: Priced, considered: Sequence[Priced]) -> list[Priced]:
    spec = chosen.mechanism.to_spec()
    return [chosen, *(row for row in considered if row.mechanism.to_spec() != spec)]


def plan_text(told: Mapping[str, Any]) -> str:
    """``planned`` as text."""
    lines = []
    for release in told["releases"]:
        if "channels" in release:
            lines += rows_text(release)
            continue
        if release.get("kind") == "microdata":
            lines += microdata_text(release)
            continue
        lines.append(f"{release['name']}: {release['title']}, {_price(release)} ({release['workload']})")
        for i, row in enumerate(release["mechanisms"]):
            mark = "→" if i == 0 else " "
            wide = "unbounded" if row["half_width"] is None else f"± {number(row['half_width'])}"
            shown = f"{wide:>14} {release['unit']}"
            if (
                "kmeans" in release["title"].partition("-")[0]
            ):  # what was compared is the objective, not the sizes
                ratio = row["expected_error"]
                shown = f"{'unbounded' if ratio is None else '× ' + number(ratio):>14}"
            lines.append(f"  {mark} {row['name']:<46} {shown}".rstrip())
        lines += [
            f"    published exactly, no secret under the policy: {text}"
            for text in release["disclosed_exactly"]
        ]
        lines += [f"    {note}" for note in release["notes"]]
        if release["released"]:
            lines.append(
                "    released already in this edition: release refuses it; --again draws and charges afresh"
            )
    if not told["same_policy"]:
        lines.append(
            "The ledger does not hold this policy yet: release puts it in force, and prices what was released under it too."
        )
    if told["refused"]:
        lines.append(told["refused"])
    verdict = "fits" if told["fits"] else "does NOT fit"
    lines.append(
        f"Together {told['unit']} {readable(Fraction(told['cost']))}; {told['remaining']} of {told['total']} is left: it {verdict}. "
        "± is 95 %, for an answer of average error. Nothing was read or spent."
    )
    lines += [RENEWAL] if told["renews"] else []
    lines += raised_lines(told["raises"])
    return text_of(lines)


def run(
    document: Document, folder: Path, only: Sequence[str], again: bool, audit_draws: int | None = None
) -> Path:
    """Price everything, check the output folder, then charge, draw and publish.

    Args:
        audit_draws: put every release to the test first, with so many draws of each table.
    """
    requests = [replace(r, again=again) for r in chosen(document.requests, only)]
    return published(document, folder, requests, document.session, audit_draws)


def published(
    document: Document,
    folder: Path,
    requests: Sequence[Request],
    opened: Callable[[], Session],
    audit_draws: int | None,
) -> Path:
    """Price requests of a document, check the output folder, then charge, draw and publish them; returns the manifest's path.

    Rows that are staged take long: they are drawn when all others are published, so that a run that is killed loses no answers.

    Args:
        opened: opens the document's session, once all else was checked.
        audit_draws: as ``run``.
    """
    priced = price_all(document.policy, requests)
    for request in requests:
        if request.audit is not None:
            check_apart(request.audit, folder, " Nothing was spent.")
        if isinstance(request.query, RowQuery):
            check_store(request.query, folder, " Nothing was spent.")
        if request.staging is not None:
            check_outside(Path(request.staging), folder)
    shown = document.presentations
    beside = {
        name: [GROUPS]
        if isinstance(p.strategy, HybridStrategy)
        else beside_query(p.request.query, shown[name])
        for p in priced
        if (name := p.request.name)
    }
    wanted = {
        p.request.name: (written_rows(p, shown[p.request.name]), shown[p.request.name].format) for p in priced
    }
    prepare(folder, wanted, beside)
    if isinstance(document.ledger, Path) and not document.ledger.parent.is_dir():
        raise OutputError(f"{document.ledger.parent}: the ledger's folder does not exist. Nothing was spent.")
    others = traded(document.policy, document.compared, priced)
    audits = {} if audit_draws is None else confirmed(document.policy, priced, audit_draws)
    session = opened()
    check_account(folder, session.ledger, " Nothing was spent.")
    made = session.release_all(requests, priced)
    releases = [replace(r, traded=others.get(r.name)) if isinstance(r, Release) else r for r in made]
    told = [(r, shown[r.name]) for r in releases]
    staged = [(r, how) for r, how in told if isinstance(r, RowRelease) and r.is_staged]
    at_once = [(r, how) for r, how in told if not (isinstance(r, RowRelease) and r.is_staged)]
    if at_once and staged:
        publish(folder, at_once, session.context, audits=audits)
    for each in staged[:-1]:
        publish(folder, [each], session.context, audits=audits)
    return publish(folder, staged[-1:] or at_once, session.context, report=True, audits=audits)


def written_rows(priced: PricedRequest, how: Presentation) -> int:
    """Rows that are written in every format, totals and quantiles included, known before the data are read."""
    rows = published_rows(priced)
    if isinstance(priced.strategy, RowStrategy | HybridStrategy):
        return rows
    return sum(presented_rows(priced.strategy, how, rows))


def published_rows(priced: PricedRequest) -> int:
    """Rows of the published table, known before the data are read."""
    strategy = priced.strategy
    if isinstance(strategy, RowStrategy | HybridStrategy):
        return 0  # as many as the table has, which is not read yet
    if isinstance(strategy, Way):
        return strategy.query.k
    if not isinstance(strategy, Strategy):
        return strategy.asked.n_cells
    resolved = strategy.resolved
    query, asked = resolved.query, resolved.workload
    if isinstance(query, Quantiles):
        each = len(query.levels)
    elif isinstance(asked, Rows):
        each = len(asked.matrix)
    else:
        each = len(asked.lows) if isinstance(asked, SomeRanges) else resolved.n_positions
    return resolved.n_groups * each


def release_text(told: Mapping[str, Any], folder: Path, made: Sequence[str]) -> str:
    """A manifest in a few lines.

    Args:
        made: names of what was released just now; of the others in the folder no more than their names are told.
    """
    budget = told["budget"]
    lines = [told["policy"]["headline"]]
    for release in told["releases"]:
        if release["name"] not in made:
            continue
        if release.get("kind") == "rows":
            lines += released_rows_text(release)
            continue
        if release.get("kind") == "microdata":
            lines += released_microdata_text(release)
            continue
        wide = (
            ""
            if release["half_width"] is None
            else f" ± {number(release['half_width'])} {release['unit']}".rstrip()
        )
        files = ", ".join(f["path"] for f in release["files"].values())
        unit, paid = release["spent"]["unit"], release["spent"]["amount"]
        lines.append(f"{release['name']}: {unit} {paid},{wide} (95 %), {release['mechanism_name']} → {files}")
    before = [release["name"] for release in told["releases"] if release["name"] not in made]
    lines += [f"In this folder since before: {', '.join(before)}."] if before else []
    account = "in memory" if budget["ledger"] is None else budget["ledger"]
    there = f" in edition {told['data']['edition']!r}" if budget["renews"] else ""
    lines.append(
        f"Spent {readable(Fraction(budget['spent']))} of {budget['total']}{there} (ledger: {account})."
    )
    lines += account_lines(budget)
    lines += [f"Outside the budget: {text}." for text in budget["outside"]]
    lines.append(f"Report: {folder / 'report.html'}")
    return text_of(lines)


def _price(release: Mapping[str, Any]) -> str:
    """What a planned release is charged."""
    unit = "epsilon" if "epsilon" in release else "rho"
    return f"{unit} {release[unit]}"


def ledger_told(ledger: Ledger) -> dict[str, Any]:
    """A ledger in plain values: the account, its reading in (ε, δ), the loss by secret under every policy in force, rows."""
    unit, delta = ledger.unit, ledger.delta
    told: dict[str, Any] = {"unit": unit, "total": show(ledger.total), "spent": show(ledger.spent)}
    told |= {"renews": ledger.renews, "raises": raises_spec(ledger)}
    told["editions"] = {edition: show(largest_of(ledger.accounts_in(edition))) for edition in ledger.editions}
    told["together"] = show(largest_of(ledger.accounts))
    told["remaining"] = show(ledger.remaining)
    if delta is not None:
        told["delta"] = show(delta)
        told["epsilon"] = {key: _reading(told[key], delta) for key in ("total", "spent")}
    return told | {
        "policies": [
            {
                "policy": account.policy_hash,
                "row": account.row,
                "all_known_counts": account.is_union,
                "loss": {name: show(value) for name, value in account.losses.by_secret.items()},
                "largest": show(account.losses.value),
            }
            for account in ledger.accounts
        ],
        "head": ledger.head,
        "rows": [
            {"row": e.seq, "kind": e.kind, "time": e.time, "hash": e.hash, **e.body} for e in ledger.entries
        ],
    }


def _reading(rho: str, delta: Fraction) -> float:
    """ε at which ρ is (ε, δ), rounded up to four digits."""
    found = epsilon_of(rho, delta)
    digits = 10 ** (3 - math.floor(math.log10(found))) if found else 1
    return math.ceil(found * digits) / digits


def ledger_text(ledger: Ledger) -> str:
    """A ledger as text."""
    told = ledger_told(ledger)
    unit = told["unit"]
    most = " in the edition that lost most" if ledger.renews else ""
    lines = [
        f"{ledger.entries[0].body['data']}: {unit} {readable(ledger.spent)} of {told['total']} spent{most}, "
        f"{readable(ledger.remaining)} left{' there' if most else ''}.",
        *(f"  {line}" for line in [*([RENEWAL] if ledger.renews else []), *raised_lines(told["raises"])]),
    ]
    if len(told["editions"]) > 1:
        each = ", ".join(
            f"{name or 'without a name'} {readable(Fraction(x))}" for name, x in told["editions"].items()
        )
        lines.append(
            f"  {len(told['editions'])} editions ({each}): whoever is in all of them may have lost "
            f"{readable(Fraction(told['together']))}"
        )
    if "delta" in told:
        here = told["epsilon"]
        lines.append(
            f"  with delta {told['delta']}: epsilon {here['spent']:g} spent of {here['total']:g} (rounded up)"
        )
    published = {e.body["charge"] for e in ledger.entries if e.kind == "published"}
    for account in ledger.accounts:
        lines.append(
            f"  {account.title}, in force since row {account.row}: {losses_text(account.losses.by_secret)}"
        )
    for entry in ledger.entries:
        if entry.kind == "policy":
            lines.append(f"  {entry.time}  policy {entry.body['policy_hash'][:12]} put in force")
        if entry.charge is None:
            continue
        charge = entry.charge
        edition = f", edition {charge.edition}" if charge.edition else ""
        again = ", drawn again" if charge.again else ""
        state = "" if entry.seq in published else " — charged, never published"
        if state and token_of(charge):
            state = " — charged, not published yet: release --resume goes on with what was drawn"
        paid = "no proved bound" if charge.flag == "measured" else charge.loss.show()
        lines.append(f"  {entry.time}  {charge.name}{edition}: {paid}{again}{state}")
        lines += [f"      outside the budget: {text}" for text in charge.disclosures]
    lines.append(f"head {ledger.head}")
    return text_of(lines)
