"""Tables of a release of microdata: its groups, what attackers make of it, and risk in the words of the field."""

from __future__ import annotations

from collections.abc import Sequence

from ..leakage.attack_words import TITLES, shown, span
from .microdata_document import Attackers, Figures, Generalised, GroupText, Guesser, Microdata, RiskText
from .words import clean, counted, listed, percent, safe, short

MOST_GROUPS = 40
MOST_BESIDE = 8  # groups that stand beside the facts
FEW, NAMED = 3, 6  # values of a group that are named, in little and in much room
SHORT, LONGEST = 26, 64
EXCHANGED = {False: "they are donors’, so they point to a donor", True: "they are typical of many people"}
BITS = (
    ("names", "the groups’ names tell"),
    ("exchanged", "the exchanged columns add"),
    ("kept", "would be told without the exchange"),
    ("open", "not in these columns’ clusters at all"),
)


def is_wide(entry: Microdata) -> bool:
    """Whether groups need the whole width of the page: many, or with long names."""
    return any(
        len(c.groups) > MOST_BESIDE or any(len(g.label) > SHORT for g in c.groups) for c in entry.groups
    )


def groups_table(column: Generalised, entry: Microdata, is_place: bool) -> str:
    """Every group with its values, and a bar of its published rows.

    Args:
        is_place: whether the values are cells of a map, which are counted and not named.
    """
    largest = sorted(range(len(column.groups)), key=lambda i: -column.groups[i].rows)[:MOST_GROUPS]
    kept = [column.groups[i] for i in sorted(largest)]
    most = max((g.rows for g in kept), default=1) or 1
    wide = is_wide(entry)
    body = "".join(_group(g, most, entry.rows, wide, is_place) for g in kept)
    cut = (
        f" Shown: the {len(kept)} largest of {len(column.groups):,}."
        if len(kept) < len(column.groups)
        else ""
    )
    values = '<th scope="col">Stands for</th>' if wide else ""
    return (
        f'<table class="considered groups{" wide" if wide else ""}"><caption>{counted(len(column.groups), "group")} of '
        f"{safe(column.column)}, as the rows show them. All values stand in {safe(entry.file_of_groups)}.{cut}</caption>"
        f'<thead><tr><th scope="col">{safe(short(column.column, 40))}</th>{values}<th scope="col"></th><th scope="col" class="n">Rows</th>'
        f'<th scope="col" class="n">Share</th></tr></thead><tbody>{body}</tbody></table>'
    )


def _group(group: GroupText, most: int, rows: int, wide: bool, is_place: bool) -> str:
    told, stands = (
        safe(short(group.label, LONGEST)),
        counted(len(group.values), "cell") if is_place else safe(_values(group, NAMED if wide else FEW)),
    )
    head = (
        f'{told}</th><td class="stands">{stands}</td>'
        if wide
        else f'{told}<span class="small">{stands}</span></th>'
    )
    return (
        f'<tr><th scope="row">{head}<td class="bars"><span style="width:{100 * group.rows / most:.3g}%"></span></td>'
        f'<td class="n">{group.rows:,}</td><td class="n">{100 * group.rows / max(rows, 1):.1f} %</td></tr>'
    )


def _values(group: GroupText, named: int) -> str:
    """Which values a label stands for, so far as it does not say so itself."""
    values = [clean(v) for v in group.values]
    if clean(group.label) in (", ".join(values), f"{values[0]}–{values[-1]}"):
        return "" if len(values) == 1 else counted(len(values), "value")
    count = "" if len(values) <= named + 1 else f"{len(values):,} values: "
    return count + listed([short(v, 40) for v in values], named + (len(values) == named + 1))


# Bits


def bits_bar(figures: Figures, what: str) -> str:
    """All that there is to tell as one bar, by what tells it."""
    names = figures.classes + figures.naming
    rest = figures.unknown - figures.unprotected
    amounts = (names, figures.exchange, figures.unprotected - figures.leakage, rest)
    total = max(figures.unknown, sum(max(a, 0.0) for a in amounts), 1e-12)
    parts, told = [], []
    for (kind, meaning), amount in zip(BITS, amounts, strict=True):
        width = 100 * max(amount, 0.0) / total
        if width >= 0.05:
            parts.append(f'<span class="{kind}" style="width:{width:.4g}%"></span>')
        if kind == "names" and figures.classes > 1e-9:
            meaning = "the groups’ names and the classes tell"
        told.append(
            f'<span class="key"><span class="swatch {kind}"></span><b>{bits(amount)}</b> {meaning}</span>'
        )
    return (
        f'<figure class="bits"><div class="bar" role="img" aria-label="{safe(_spoken(amounts, figures.unknown))}">{"".join(parts)}</div>'
        f"<figcaption>Of the <b>{bits(figures.unknown)} bits</b> about {safe(what)}: {' '.join(told)}</figcaption></figure>"
    )


def _spoken(amounts: Sequence[float], whole: float) -> str:
    told = [f"{bits(a)} {meaning}" for a, (_, meaning) in zip(amounts, BITS, strict=True)]
    return f"Of {bits(whole)} bits: {'; '.join(told)}."


def bits(amount: float) -> str:
    """Bits to two decimals; none is rounded to nothing.

    >>> bits(1.4812), bits(0.002), bits(0.0)
    ('1.48', 'under 0.01', '0')
    """
    return "0" if amount < 5e-5 else f"{amount:.2f}" if amount >= 0.01 else "under 0.01"


# Attackers


def attackers_table(found: Attackers) -> str:
    """Each attacker beside who sees no row, and beside himself on unprotected columns."""
    number = found.is_number
    figure = "Mean error" if number else "Right"
    strongest = (min if number else max)(found.found, key=lambda g: g.success)
    rows = [
        f'<tr><th scope="row">Sees no row<span class="small">{"says the middle value" if number else "says the commonest value"}</span></th>'
        f'<td class="n">{shown(found.baseline, number)}<span class="small">{span(found.baseline_interval, number)}</span></td>'
        '<td class="n">–</td><td>–</td></tr>'
    ]
    for guesser in found.found:
        css = ' class="chosen"' if guesser is strongest else ""
        rows.append(
            f'<tr{css}><th scope="row">{TITLES[guesser.model]}</th><td class="n">{shown(guesser.success, number)}'
            f'<span class="small">{span(guesser.interval, number)}</span></td>'
            f'<td class="n">{shown(guesser.ceiling, number)}</td><td>{_verdict(guesser)}</td></tr>'
        )
    return (
        f'<table class="considered attackers"><caption>{_attack_words(found)}</caption>'
        f'<thead><tr><th scope="col">Attacker</th><th scope="col" class="n">{figure}, {percent(found.level)} interval</th>'
        '<th scope="col" class="n">Unprotected</th><th scope="col">Do the rows help?</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _attack_words(found: Attackers) -> str:
    name = safe(found.column)
    sample = "" if found.rows == found.total else f" of a sample of {found.rows:,} of {found.total:,} people"
    unit = f" in {safe(found.unit)}" if found.unit else ""
    scored = (
        f"Mean error{unit}: less is a better attack."
        if found.is_number
        else f"Share of right guesses, of {found.kinds:,} values: more is a better attack."
    )
    return (
        f"<b>Trained attackers on {name}.</b> Measured on private rows: each knows {name} of half{sample}, learns on their published "
        f"rows (Scenario II) and guesses it of the others. {scored} In bold the strongest; as the best of several it is flattered "
        "by chance. They bound no other attacker."
    )


def _verdict(guesser: Guesser) -> str:
    if guesser.helps > 0:
        return "Yes"
    if not guesser.learns:
        return "Nor do unprotected columns"
    return "No: worse than without" if guesser.helps < 0 else "Not clearly"


# Risk


def risk_table(risks: Sequence[RiskText], what: str, is_typical: bool) -> str:
    """k, l, t and the prosecutor's risk, a column for each way in which rows look alike."""

    def row(name: str, meaning: str, told: Sequence[str]) -> str:
        cells = "".join(f'<td class="n">{t}</td>' for t in told)
        return f'<tr><th scope="row">{name}<span class="small">{meaning}</span></th>{cells}</tr>'

    heads = "".join(f'<th scope="col" class="n">{safe(short(listed(r.by, 4), 44))}</th>' for r in risks)
    limit = percent(risks[0].threshold)
    distance = "earth mover’s distance of ordered values" if risks[0].is_ordered else "total variation"
    body = [
        row("Classes", "rows that look alike", [f"{r.classes:,}" for r in risks]),
        row("k", "rows of the smallest class", [f"{r.k:,}" for r in risks]),
        row("l", "fewest different values in a class", [f"{r.l:,}" for r in risks]),
        row("Entropy l", "the same, by how evenly they occur", [f"{r.entropy_l:.2f}" for r in risks]),
        row("t", f"class to table, {distance}", [f"{r.t:.2f}" for r in risks]),
        row("Prosecutor", "highest chance to pick a person’s row", [_chance(r.prosecutor[0]) for r in risks]),
        row("on average", f"and the rows above {limit}", [f"{_chance(r.prosecutor[1])}, {_chance(r.prosecutor[2])}" for r in risks]),
    ]  # fmt: skip
    return (
        f'<table class="considered risk"><caption><b>Risk in the words of the field.</b> Measured on private rows, for who knows of a '
        f"person what the columns named at the top show, and looks for {safe(what)}. Exchanged columns are not counted: "
        f"{EXCHANGED[is_typical]}.</caption>"
        f'<thead><tr><th scope="col">Rows alike in</th>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    )


def _chance(share: float) -> str:
    return "0 %" if share == 0 else percent(share) if share >= 0.001 else "under 0.1 %"
