"""How well models do that learnt on a released table, on people of the original. Private; see ``utility`` for what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SpecificationError, Unsupported, unknown
from ..threads import one_thread
from .given import given
from .utility import Ints, Pair, is_number

if TYPE_CHECKING:
    from numpy.random import Generator

Floats = NDArray[np.float64]

MODELS = ("boosting", "forest")
MOST_ROWS = 20_000
MOST_CATEGORIES = 255  # that boosting takes as categories; more are taken in the order of their codes


@dataclass(frozen=True)
class Trained:
    """Scores on held-out rows of the original. Private.

    Attributes:
        target: the column predicted.
        measure: "accuracy", higher is better, or "mean absolute error" of a column of numbers, lower is better.
        on_released: of models trained on released rows, with ``released_interval``.
        on_original: of models trained on original rows, with ``original_interval``.
        baseline: of the commonest category, or the median, of the training rows of the original.
        difference: released minus original, with ``difference_interval``: each pair of models is tested on the same rows.
        level: of the intervals.
        rounds: models of each kind.
        train_rows, test_rows: of each.
        is_aligned: whether held-out people were left out of the released training rows too.
    """

    target: str
    measure: str
    on_released: float
    released_interval: tuple[float, float]
    on_original: float
    original_interval: tuple[float, float]
    baseline: float
    difference: float
    difference_interval: tuple[float, float]
    level: float
    rounds: int
    train_rows: int
    test_rows: int
    is_aligned: bool

    def words(self) -> str:
        """The figures as a sentence.

        >>> print(Trained("job", "accuracy", 0.71, (0.69, 0.73), 0.75, (0.74, 0.76), 0.5, -0.04, (-0.06, -0.02), 0.95, 20, 80, 20, True).words())
        Models of 'job', tested on original rows: accuracy 0.710 [0.690, 0.730] trained on the release, 0.750 [0.740, 0.760] trained on the original, 0.500 without a model; difference -0.040 [-0.060, -0.020]. 95 % intervals over 20 splits.
        """

        def figure(value: float, interval: tuple[float, float]) -> str:
            return f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]"

        return (
            f"Models of {self.target!r}, tested on original rows: {self.measure} "
            f"{figure(self.on_released, self.released_interval)} trained on the release, "
            f"{figure(self.on_original, self.original_interval)} trained on the original, {self.baseline:.3f} without a model; "
            f"difference {figure(self.difference, self.difference_interval)}. "
            f"{100 * self.level:g} % intervals over {self.rounds} splits."
        )


def trained(
    original: Any,
    released: Any,
    target: str,
    features: Sequence[str] | None = None,
    *,
    model: str = "boosting",
    folds: int = 5,
    repeats: int = 2,
    level: float = 0.95,
    is_aligned: bool = False,
    most_rows: int = MOST_ROWS,
    rng: Generator | None = None,
) -> Trained:
    """Train on released rows and test on original ones, beside training on original rows. Private.

    The original is split into folds, ``repeats`` times. On each fold two models are tested: one trained on the other folds, one
    on as many released rows: those of the same people if ``is_aligned``, else drawn at random. No release noise is drawn here.

    Args:
        original, released: frames of pandas, Polars or Arrow, or dicts of columns.
        target: a column that the release has with the values of the original (numbers, or categories that occur there).
        features: what it is predicted from; None: every other column that both tables have in one kind.
        model: "boosting" (gradient boosting over histograms) or "forest" (50 trees).
        is_aligned: row i of both tables is the same person.
        most_rows: of larger tables so many are drawn.
        rng: splits, rows and models; None: fresh.

    Raises:
        SpecificationError: an unknown column or model, settings that are no folds, a target in another kind.
        DataError: too few rows; a released target with categories that do not occur in the original (generalised, say).
        Unsupported: scikit-learn is not installed.
    """
    if model not in MODELS:
        raise unknown("training.model", "model", model, MODELS)
    _check(folds, repeats, level, most_rows)
    original, released = given(original, "original"), given(released, "released")
    if features is None:
        shared = [n for n in original.column_names if n in released.column_names and n != target]
        features = [n for n in shared if is_number(original[n]) == is_number(released[n])]
    names = list(features)
    if target in names or not names:
        raise SpecificationError("training.features: at least one column, and not the target.")
    pair = Pair.of(original, released, [*names, target])
    is_measured = target in pair.numbers
    own, their = pair.numbers[target][:2] if is_measured else pair.codes[target][:2]
    if not is_measured and not np.isin(their, own).all():
        raise DataError(
            f"training.target: released {target!r} has categories that the original has not; choose a column that is published "
            "in its own values."
        )
    if is_aligned and len(own) != len(their):
        raise SpecificationError("training.is_aligned: tables of the same people have equally many rows.")
    generator = rng or np.random.default_rng()
    kept = generator.permutation(len(own))[:most_rows]
    if len(kept) < 2 * folds:
        raise DataError("training: fewer than two rows a fold.")
    one, other = (_matrix(pair, names, at) for at in (0, 1))
    make = _maker(model, pair, names, is_measured)
    data = _Data(one, own), _Data(other, their)
    with one_thread():  # models this small lose more to threads that wait for each other than they gain
        scores = np.array(
            [
                _scores(*data, train, test, is_measured, is_aligned, make, generator)
                for train, test in _splits(kept, folds, repeats, generator)
            ]
        )
    on_released, on_original, baseline = scores.T
    ratio = 1 / (folds - 1)
    difference, apart = _interval(on_released - on_original, ratio, level)
    most = np.inf if is_measured else 1.0
    found = [_within(*_interval(s, ratio, level), most) for s in (on_released, on_original)]
    test_rows = len(kept) // folds
    return Trained(
        target, "mean absolute error" if is_measured else "accuracy", *found[0], *found[1], float(baseline.mean()),
        difference, apart, level, len(scores), len(kept) - test_rows, test_rows, is_aligned,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Data:
    seen: Floats
    target: Any


def _scores(
    own: _Data,
    their: _Data,
    train: Ints,
    test: Ints,
    is_measured: bool,
    is_aligned: bool,
    make: Any,
    rng: Generator,
) -> tuple[float, float, float]:
    """Scores on the same held-out rows: trained on the release, trained on the original, and without a model."""
    among = train if is_aligned else rng.permutation(len(their.target))[: len(train)]
    truth = own.target[test]
    found = []
    for data, rows in ((their, among), (own, train)):
        target = data.target[rows]
        if (target == target[0]).all():  # nothing to learn, which some models refuse
            guess = np.full(len(test), target[0])
        else:
            guess = make(int(rng.integers(2**31))).fit(data.seen[rows], target).predict(own.seen[test])
        found.append(_score(guess, truth, is_measured))
    learnt = own.target[train]
    plain = np.median(learnt) if is_measured else np.bincount(learnt).argmax()
    return found[0], found[1], _score(np.full(len(test), plain), truth, is_measured)


def _score(guess: Any, truth: Any, is_measured: bool) -> float:
    return float(np.abs(guess - truth).mean() if is_measured else (guess == truth).mean())


def _splits(rows: Ints, folds: int, repeats: int, rng: Generator) -> list[tuple[Ints, Ints]]:
    found = []
    for _ in range(repeats):
        parts = np.array_split(rng.permutation(rows), folds)
        found += [(np.concatenate([*parts[:f], *parts[f + 1 :]]), parts[f]) for f in range(folds)]
    return found


def _interval(scores: Floats, ratio: float, level: float) -> tuple[float, tuple[float, float]]:
    """Mean and t interval, its variance raised by the share of rows that splits have in common: (1/J + test/train) s²."""
    from scipy.stats import t

    mean, count = float(scores.mean()), len(scores)
    width = float(t.ppf(0.5 + level / 2, count - 1) * np.sqrt((1 / count + ratio) * scores.var(ddof=1)))
    return mean, (mean - width, mean + width)


def _within(mean: float, interval: tuple[float, float], most: float) -> tuple[float, tuple[float, float]]:
    """The interval cut to the possible scores."""
    return mean, (max(0.0, interval[0]), min(most, interval[1]))


def _matrix(pair: Pair, names: Sequence[str], at: int) -> Floats:
    columns = [pair.numbers[n][at] if n in pair.numbers else pair.codes[n][:2][at] for n in names]
    return np.stack(columns, axis=1).astype(np.float64)


def _maker(model: str, pair: Pair, names: Sequence[str], is_measured: bool) -> Any:
    """From a seed to a model that has not learnt yet."""
    try:
        from sklearn import ensemble
    except ImportError:
        raise Unsupported("training: needs scikit-learn; pip install 'tetraodon[attack]'.") from None
    if model == "forest":
        kind = ensemble.RandomForestRegressor if is_measured else ensemble.RandomForestClassifier
        return lambda seed: kind(n_estimators=50, min_samples_leaf=2, random_state=seed)
    boosted = (
        ensemble.HistGradientBoostingRegressor if is_measured else ensemble.HistGradientBoostingClassifier
    )
    categories = [n in pair.codes and pair.codes[n][2] <= MOST_CATEGORIES for n in names]
    return lambda seed: boosted(
        max_iter=60,
        early_stopping=False,
        categorical_features=categories if any(categories) else None,
        random_state=seed,
    )


def _check(folds: int, repeats: int, level: float, most_rows: int) -> None:
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1), ("most_rows", most_rows, 4)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SpecificationError(f"training.{name}: a whole number of {least} or more.")
    if not 0 < level < 1:
        raise SpecificationError("training.level: a number between 0 and 1.")
