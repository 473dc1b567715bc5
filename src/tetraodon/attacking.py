"""``tetraodon attack``: trained attackers on a pair of files, as a table and a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .errors import unknown
from .leakage.attack_found import Attacks
from .leakage.attack_words import PRIVATE, TITLES, attack_words, shown, span
from .leakage.attackers import MODELS
from .leakage.attacks import attacks
from .terminal import text_of


def measured(
    original: Path,
    released: Path,
    secret: str,
    models: Sequence[str],
    scenario: str,
    ident: str | None,
    features: Sequence[str],
    kind: str | None,
    folds: int,
    repeats: int,
    most_people: int,
) -> Attacks:
    """The attacks asked for; "all" or none named is all that can run. Features are names, or several joined by commas; 0 people is all of them.

    Raises:
        As ``leakage.attacks``.
    """
    for model in models:
        if model not in (*MODELS, "all"):
            raise unknown("attack", "model", model, (*MODELS, "all"))
    named = None if not models or "all" in models else list(dict.fromkeys(models))
    chosen = [name for f in features for name in f.split(",")]
    return attacks(
        original, released, secret, named, scenario=scenario, id=ident, features=chosen or None, kind=kind, folds=folds, repeats=repeats,
        most_people=most_people or None,
    )  # fmt: skip


def text(found: Attacks) -> str:
    """A table with baseline, ceiling and interval, then a sentence for each attacker."""
    first = found.found[0]
    heads = ("attacker", "baseline", "success", f"{100 * first.level:g} % interval", "ceiling")
    lines = [
        (
            TITLES[a.model], shown(a.baseline, a.ordered), shown(a.success, a.ordered), span(a.interval, a.ordered),
            shown(a.ceiling, a.ordered),
        )
        for a in found
    ]  # fmt: skip
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    metric = f"{first.metric} of {first.secret}" + (
        "; less is a better attack" if first.ordered else "; more is a better attack"
    )
    table = [
        f"Scenario {first.scenario}, {metric}. {first.people} people, {first.train} known and {first.test} guessed at a time.",
        *("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in [heads, *lines]),
    ]  # fmt: skip
    told = [attack_words(a) for a in found]
    notes = [
        "Baseline: a guess without looking at anything released. Ceiling: the same attacker on the same columns unprotected.",
        f"Intervals: {first.how}.",
    ]
    if first.paired_by is None:
        notes.append(
            "Rows were paired by their order: row by row the same person. If they are not, name a column with --id."
        )
    if found.skipped:
        notes.append(f"Not run, a library is not installed (tetraodon[attack]): {', '.join(found.skipped)}.")
    return text_of([*table, "", *told, "", *notes, PRIVATE])
