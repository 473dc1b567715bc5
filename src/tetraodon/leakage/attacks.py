"""Trained attackers on a pair of tables: the original, and what was released of it.

An attacker knows the secret of some of the people, learns from it how to guess, and is scored on the others. In Scenario II
he learns on published rows; in Scenario I on clean ones, as if he held an unprotected sample of the same population. Beside
his figure stand always the baseline (a guess without looking at anything) and the ceiling (the same attacker on the same
columns unprotected). All figures come from the original rows and are private; they are *measured*, and bound no other attacker.
Randomness comes from the ``numpy.random.Generator`` that the caller passes in: these are simulations, no releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError, SpecificationError
from . import attack_words as words
from .attack_features import Features, Secret, features, secret_of
from .attack_found import METRICS, Attack, Attacks, Difference
from .attack_rounds import Round, losses, mean_interval, prior_losses, share_interval, split
from .attack_tables import Given, beside, in_other_order
from .attackers import MODELS, Attacker, require
from .tables import Floats, Ints

if TYPE_CHECKING:
    from numpy.random import Generator

SCENARIOS = ("I", "II")
KINDS = ("number", "category")
LEAST_PEOPLE = 10
MOST_PEOPLE = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class _Pair:
    """Two tables, read and matched: what the attackers see and what they are after.

    Attributes:
        who: which row of the original each person is.
        left_out: people without a released row or a secret.
        drawn: whether some were drawn among more.
        in_other_order: columns by which rows are paired wrongly, if they say who is who.
    """

    seen: Features
    secret: Secret
    who: Ints
    left_out: int
    drawn: bool
    in_other_order: tuple[str, ...]


def _matched(
    original: object, released: object, secret: str, ident: str | None, chosen: Sequence[str] | None, kind: str | None,
    most: int | None, choice: int,
) -> _Pair:  # fmt: skip
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < LEAST_PEOPLE):
        raise SpecificationError(f"attack.most_people: a whole number from {LEAST_PEOPLE}, or none.")
    if kind is not None and kind not in KINDS:
        raise SpecificationError(f"attack.kind: {' or '.join(KINDS)}; without it, by the secret's values.")
    if isinstance(chosen, str) or not isinstance(secret, str):
        raise SpecificationError("attack: the secret is the name of a column, features a list of names.")
    left, right = Given.of(original, "original"), Given.of(released, "released")
    if ident == secret:
        raise SpecificationError("attack.id: the id cannot be the secret.")
    names = list(chosen) if chosen is not None else [n for n in right.names if n not in (secret, ident)]
    if chosen is not None and (secret in names or ident in names or len(set(names)) < len(names)):
        raise SpecificationError(
            "attack.features: released columns, each once, other than the secret and the id; the released column of the "
            "secret is looked at anyway."
        )
    own = left.read([secret, *(n for n in dict.fromkeys(names) if n in left.names)], ident)
    told = right.read([*names, *([secret] if secret in right.names else [])], ident)
    whole = own.size
    own, told, who = beside(own, told)
    held = np.flatnonzero(~own.columns[secret].missing)
    if len(held) < LEAST_PEOPLE:
        raise DataError(
            f"{own.where}: fewer than {LEAST_PEOPLE} people have a released row and a value of {secret!r}; too few to attack."
        )
    left_out = whole - len(held)
    drawn = most is not None and len(held) > most
    if drawn:
        held = np.sort(np.random.default_rng(choice).choice(held, most, replace=False))
    suspects = () if ident is not None else in_other_order(own, told)
    own, told = own.take(held), told.take(held)
    after = secret_of(own.columns[secret], kind, own.where, secret)
    return _Pair(features(own, told, names, secret), after, who[held], left_out, drawn, suspects)


def _checked(scenario: str, folds: int, repeats: int, level: float, people: int) -> None:
    if scenario not in SCENARIOS:
        raise SpecificationError(
            'attack.scenario: "I" (clean rows to learn on) or "II" (published rows to learn on).'
        )
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SpecificationError(f"attack.{name}: a whole number from {least}.")
    if folds > people // 2:
        raise SpecificationError("attack.folds: at most half as many as there are people.")
    if not 0 < level < 1:
        raise SpecificationError("attack.level: between 0 and 1.")


def _generator(rng: Generator | None) -> Generator:
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise SpecificationError(
            f"attack.rng: a numpy.random.Generator, not {type(rng).__name__}; None draws fresh entropy."
        )
    return np.random.default_rng() if rng is None else rng


def attack(
    original: object,
    released: object,
    secret: str,
    model: str = "random-forest",
    *,
    scenario: str = "II",
    id: str | None = None,
    features: Sequence[str] | None = None,
    kind: str | None = None,
    folds: int = 2,
    repeats: int = 5,
    level: float = 0.99,
    most_people: int | None = MOST_PEOPLE,
    settings: Mapping[str, Any] | None = None,
    rng: Generator | None = None,
) -> Attack:
    """How well one trained attacker finds out a secret from a release, with its baseline and its ceiling.

    The released column of the secret's name (its generalisation, if there is one) is looked at; the original's never is.

    Args:
        original, released: paths (parquet, csv, arrow), pandas, polars or pyarrow frames, or dicts of columns. The same
            person stands in the same row of both, or ``id`` names a column that tells.
        secret: a column of the original.
        model: "random-forest", "xgboost", "knn", "logistic" (ridge for numbers) or "group-median": says the median, or the
            commonest, of the people known with the same published secret.
        scenario: "II" learns on published rows, "I" on clean ones.
        features: released columns looked at; default: all but the id.
        kind: "number" (error is a distance) or "category" (error is a wrong guess); default: numbers with more than 10
            different values, or with fractions, are numbers.
        folds, repeats: people are split into so many parts so many times; each part is guessed by who knows the others.
        level: of the intervals.
        most_people: of more, so many are drawn; None for all. A trained model can take hours on a million people.
        settings: of the model: random-forest {trees, leaf, jobs}, xgboost {trees, depth, rate, jobs}, knn {neighbours},
            logistic {penalty}; and {scale}: "rank" learns numbers by rank, which suits the metric, "value" as they are.
        rng: for the splits and models; default: fresh entropy.

    Raises:
        SpecificationError: an unknown name or a setting out of range.
        Unsupported: a kind of source, or a library that is not installed.
        DataError: columns lacking; rows that cannot be matched; a secret without two values; too few people.
        EngineError: a file cannot be read, or the model failed.

    Source: Han et al. 2021 (HyObscure) for the two scenarios.

    >>> rng = np.random.default_rng(5)
    >>> age = rng.integers(20, 60, 400)
    >>> original = {"age": age, "visits": age // 2 + rng.integers(0, 5, 400)}
    >>> released = {"age": np.where(age < 40, "20–39", "40–59"), "visits": rng.permutation(original["visits"])}
    >>> found = attack(original, released, "age", "group-median", rng=rng)
    >>> round(found.baseline), round(found.success), found.metric
    (10, 5, 'mean absolute error')
    """
    attacker = Attacker.of(model, settings)
    rng = _generator(rng)
    pair = _matched(original, released, secret, id, features, kind, most_people, int(rng.integers(2**32)))
    _checked(scenario, folds, repeats, level, len(pair.who))
    rounds = split(len(pair.who), folds, repeats, rng)
    return _attack(attacker, pair, secret, rounds, folds, scenario, level, id)


def attacks(
    original: object,
    released: object,
    secret: str,
    models: Sequence[str] | None = None,
    *,
    scenario: str = "II",
    id: str | None = None,
    features: Sequence[str] | None = None,
    kind: str | None = None,
    folds: int = 2,
    repeats: int = 5,
    level: float = 0.99,
    most_people: int | None = MOST_PEOPLE,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    rng: Generator | None = None,
) -> Attacks:
    """Every attacker, or those named, on the same splits.

    Args:
        models: default: all; one whose library is not installed is then skipped and named in the result.
        settings: of some of the models, by name: {"random-forest": {"trees": 50}}.
        Others: as ``attack``.
    Raises: as ``attack``.

    >>> age = np.arange(200) % 40
    >>> found = attacks({"age": age}, {"age": age // 10}, "age", ["group-median"], rng=np.random.default_rng(1))
    >>> len(found), found.strongest.model
    (1, 'group-median')
    """
    told = dict(settings or {})
    run, skipped = [], []
    for model in models if models is not None else MODELS:
        try:
            require(model)
        except SpecificationError:
            if models is not None:
                raise
            skipped.append(model)
            continue
        run.append(Attacker.of(model, told.pop(model, None)))
    extra = [m for m in told if m not in skipped]
    if extra or not run or isinstance(models, str):
        raise SpecificationError(
            f"attacks: at least one model of {', '.join(MODELS)}, and settings of models that run."
        )
    rng = _generator(rng)
    pair = _matched(original, released, secret, id, features, kind, most_people, int(rng.integers(2**32)))
    _checked(scenario, folds, repeats, level, len(pair.who))
    rounds = split(len(pair.who), folds, repeats, rng)
    found = tuple(_attack(a, pair, secret, rounds, folds, scenario, level, id) for a in run)
    return Attacks(found, tuple(skipped))


def paired(
    original: object,
    first: object,
    second: object,
    secret: str,
    model: str = "random-forest",
    *,
    scenario: str = "II",
    id: str | None = None,
    features: Sequence[str] | None = None,
    kind: str | None = None,
    folds: int = 2,
    repeats: int = 1,
    level: float = 0.99,
    most_people: int | None = MOST_PEOPLE,
    settings: Mapping[str, Any] | None = None,
    rng: Generator | None = None,
) -> Difference:
    """Whether the same attacker does better on one release than on another: first minus second, with an interval.

    Args:
        first, second: a release each, or lists of as many releases each: release i of both is attacked on the same splits
            with the same seeds, so that what the draw of a release and the split vary by enters the interval.
        Others: as ``attack``; ``repeats`` are splits of each release.
    Raises:
        SpecificationError: lists of different lengths. DataError: the releases are not of the same people.
        Others: as ``attack``.

    >>> age = np.arange(400) % 40
    >>> found = paired({"age": age}, {"age": age // 10}, {"age": age // 20}, "age", "group-median", rng=np.random.default_rng(1))
    >>> found.difference < 0 and found.interval[1] < 0
    True
    """
    attacker = Attacker.of(model, settings)
    ones, others = (list(r) if isinstance(r, list | tuple) else [r] for r in (first, second))
    if len(ones) != len(others) or not ones:
        raise SpecificationError("attack: as many first releases as second ones, at least one of each.")
    rng = _generator(rng)
    seed = int(rng.integers(2**32))  # the same people of every release
    told: tuple[list[Floats], list[Floats]] = ([], [])
    who: Ints | None = None
    for one, other in zip(ones, others, strict=True):
        pairs = [_matched(original, r, secret, id, features, kind, most_people, seed) for r in (one, other)]
        who = pairs[0].who if who is None else who
        if any(not np.array_equal(p.who, who) for p in pairs):
            raise DataError("released: all releases compared are of the same people.")
        _checked(scenario, folds, repeats, level, len(who))
        rounds = split(len(who), folds, repeats, rng)
        for kept, pair in zip(told, pairs, strict=True):
            kept.append(losses(attacker, pair.seen, pair.secret, rounds, scenario, False))
    ordered = pairs[0].secret.ordered
    sign = 1 if ordered else -1
    a, b = np.concatenate(told[0]), np.concatenate(told[1])
    difference, low, high = mean_interval(sign * (a - b), level)
    means = [float(m.mean()) if ordered else 1 - float(m.mean()) for m in (a, b)]
    return Difference(
        secret, model, scenario, ordered, METRICS[ordered], means[0], means[1], difference, (low, high), level,
        a.shape[1], len(ones), a.shape[0],
    )  # fmt: skip


def _attack(
    attacker: Attacker, pair: _Pair, secret: str, rounds: list[Round], folds: int, scenario: str, level: float,
    ident: str | None,
) -> Attack:  # fmt: skip
    seen, after = pair.seen, pair.secret
    own = losses(attacker, seen, after, rounds, scenario, ceiling=False)
    most = losses(attacker, seen, after, rounds, scenario, ceiling=True)
    least = prior_losses(after, rounds)
    success, baseline, ceiling = (_figure(t, after.ordered, level) for t in (own, least, most))
    gain, *gains = mean_interval(least - own, level)
    learns = mean_interval(least - most, level)[1] > 0
    people = len(pair.who)
    warned = words.warnings(
        people - people // folds, after.ordered, level, success[1:], baseline[0], learns, pair.left_out,
        seen.without_original, seen.mixed, pair.drawn, pair.in_other_order,
    )  # fmt: skip
    return Attack(
        secret, attacker.model, scenario, after.ordered, METRICS[after.ordered], success[0], success[1:], baseline[0],
        baseline[1:], ceiling[0], ceiling[1:], gain, (gains[0], gains[1]), level, people, people - people // folds,
        people // folds, folds, len(rounds), seen.names, pair.left_out, attacker.settings, warned, ident,
    )  # fmt: skip


def _figure(told: Floats, ordered: bool, level: float) -> Any:
    if ordered:
        mean, low, high = mean_interval(told, level)
        return mean, max(0.0, low), high
    return share_interval(1 - told, level)
