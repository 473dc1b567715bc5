"""What an attack found, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .attack_found import Attack, Difference

TITLES = {
    "random-forest": "Random forest",
    "xgboost": "Gradient boosting",
    "knn": "Nearest neighbours",
    "logistic": "Linear model",
    "group-median": "Group's typical value",
}
LEARNS = {
    "II": "learns on the published rows of {share} of the people, whose {secret} he knows, and guesses that of the others",
    "I": "learns on the clean rows of {share} of the people, whose {secret} he knows, and guesses that of the others from their published rows",
}
PRIVATE = (
    "These figures come from the original rows: they are private, and publishing them is a release of its own. "
    "They are measured: found for these attackers on this table, they bound no other attacker."
)


def number(value: float) -> str:
    """Three significant digits, without exponents for common sizes.

    >>> [number(v) for v in (0, 2.6, 0.01234, 250, 12345.6)]
    ['0', '2.60', '0.0123', '250', '12,300']
    """
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value / 10**digits) * 10**digits:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def shown(value: float, ordered: bool) -> str:
    """A mean error as a number, a share in per cent."""
    return number(value) if ordered else f"{100 * value:.1f} %"


def span(interval: tuple[float, float], ordered: bool) -> str:
    """Both ends."""
    if ordered:
        return f"{number(interval[0])} to {number(interval[1])}"
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f} %"


def known_share(folds: int) -> str:
    """What part of the people is known."""
    return "half" if folds == 2 else f"{folds - 1} of {folds} parts"


def attack_words(a: Attack) -> str:
    """A paragraph: what the attacker does, how well, against what, and what is to be feared of the figure."""
    learns = LEARNS[a.scenario].format(share=known_share(a.folds), secret=a.secret)
    does = "is off by {} on average" if a.ordered else "is right for {} of the people"
    told = [
        f"{TITLES[a.model]}, Scenario {a.scenario}: {learns}.",
        f"He {does.format(shown(a.success, a.ordered))} ({100 * a.level:g} % interval {span(a.interval, a.ordered)}).",
        f"Without looking at anything released he {does.format(shown(a.baseline, a.ordered))}; with the same columns unprotected he "
        f"{does.format(shown(a.ceiling, a.ordered))}.",
        verdict(a),
        *a.warnings,
    ]
    return " ".join(told)


def verdict(a: Attack) -> str:
    """Whether the release told this attacker anything."""
    low, high = a.gain_interval
    more = shown(abs(a.gain), a.ordered) if a.ordered else f"{100 * abs(a.gain):.1f} points"
    if low > 0:
        return f"The release helps him: better by {more} than without it."
    if high < 0:
        return f"He does worse than without the release, by {more}: he has learnt what is not so; others may do better."
    return "That is not clearly better than without the release."


def warnings(
    known: int, ordered: bool, level: float, interval: tuple[float, float], baseline: float,
    learns: bool, left_out: int, without_original: tuple[str, ...], mixed: tuple[str, ...], drawn: bool,
    in_other_order: tuple[str, ...],
) -> tuple[str, ...]:  # fmt: skip
    """What makes a figure say less than it seems to."""
    told = []
    if in_other_order:
        told.append(
            f"Warning: rows were paired by their order, but {_named(in_other_order)} stands in different orders in the two tables; "
            "if it says who is who, name it as the id, for these figures are then of wrong pairs."
        )
    if known < 100:
        told.append(
            "Warning: fewer than 100 people to learn from; an attacker with more may find out far more."
        )
    width = interval[1] - interval[0]
    if width > (0.2 * baseline if ordered else 0.1):
        told.append("Warning: the interval is wide; more people or more repeats would narrow it.")
    if not learns:
        told.append(
            "Warning: even with unprotected columns this attacker is not clearly better than without any; "
            "that he fails says little about the release."
        )
    if drawn:
        told.append(
            "The people are drawn at random among more; an attacker who knows more of them may find out more."
        )
    if left_out:
        told.append("People without a released row, or whose secret is missing, are left out.")
    if without_original:
        told.append(
            f"The original has no column {_named(without_original)}: taken as released in the unprotected table too."
        )
    if mixed:
        told.append(
            f"{_named(mixed)}: numbers in one table and texts in the other; a range stands for its middle where it can."
        )
    return tuple(told)


def _named(columns: tuple[str, ...]) -> str:
    return ", ".join(map(repr, columns))


def difference_words(d: Difference) -> str:
    """The difference of two releases in a sentence or two."""
    unit = number(abs(d.difference)) if d.ordered else f"{100 * abs(d.difference):.1f} points"
    low, high = d.interval
    ends = f"{number(low)} to {number(high)}" if d.ordered else f"{100 * low:.1f} to {100 * high:.1f} points"
    lead = f"{TITLES[d.model]}, Scenario {d.scenario}: "
    scale = f"difference of the {d.metric}, first minus second, {ends} at {100 * d.level:g} %, paired over {d.releases} releases and over people"
    sign = 1 if d.ordered else -1  # a larger error, or a smaller share right, protects better
    if sign * low > 0 and sign * high > 0:
        return f"{lead}the first release protects better, by {unit} ({scale})."
    if sign * low < 0 and sign * high < 0:
        return f"{lead}the second release protects better, by {unit} ({scale})."
    return f"{lead}no clear difference ({scale})."
