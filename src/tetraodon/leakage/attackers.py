"""The attackers: what learns a secret from columns, and guesses it from others. Pipelines of scikit-learn, and XGBoost.

An attacker sees a matrix whose columns are numbers (NaN where missing) or codes of categories (−1 where missing), learns on
the rows of people whose secret he knows, and guesses the others'. What has one value in the rows learnt on is guessed
without a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SpecificationError, Unsupported, unknown
from .attack_features import Features, Secret
from .tables import Floats, Ints

# Model → its settings and their defaults.
MODELS: dict[str, dict[str, float | str | None]] = {
    "random-forest": {"trees": 100, "leaf": 1, "jobs": 1, "scale": "rank"},
    "xgboost": {"trees": 160, "depth": 5, "rate": 0.1, "jobs": 1, "scale": "rank"},
    "knn": {"neighbours": 15, "scale": "rank"},
    "logistic": {"penalty": None, "scale": "rank"},
    "group-median": {},
}
SCALES = ("rank", "value")
# Categories that one-hot columns are made for; the rarer ones share one.
LEVELS = 32


@dataclass(frozen=True)
class Attacker:
    """One kind of attacker.

    Attributes:
        model: a name of ``MODELS``.
        settings: every setting of that model, in the order of its defaults.
    """

    model: str
    settings: tuple[tuple[str, float | str | None], ...]

    @staticmethod
    def of(model: str, settings: Mapping[str, Any] | None = None) -> Attacker:
        """With defaults for what is not set.

        Raises:
            SpecificationError: no such model or setting, or a value out of range.
            Unsupported: a library is not installed.
        """
        if model not in MODELS:
            raise unknown("attack", "model", model, MODELS)
        told = dict(settings or {})
        for name, value in told.items():
            if name not in MODELS[model]:
                raise unknown(f"attack.settings of {model}", "setting", name, MODELS[model] or ["none"])
            if name == "scale":
                if value not in SCALES:
                    raise SpecificationError(f"attack.settings.scale: {' or '.join(SCALES)}.")
                continue
            whole = name != "rate" and name != "penalty"
            fits = isinstance(value, int) if whole else isinstance(value, int | float)
            if isinstance(value, bool) or not fits or not 0 < value < float("inf"):
                raise SpecificationError(
                    f"attack.settings.{name}: a {'whole number from 1' if whole else 'number above 0'}."
                )
        require(model)
        return Attacker(model, tuple({**MODELS[model], **told}.items()))

    def guess(
        self, known: Floats, secrets: Any, asked: Floats, layout: Features, secret: Secret, seed: int
    ) -> Any:
        """What this attacker says about the rows asked.

        Args:
            known, secrets: rows whose secrets are known.
            asked: other rows.
            layout: which columns are numbers and which categories.
            secret: whether it is ordered.
            seed: of the model.
        """
        different, place, times = np.unique(secrets, return_inverse=True, return_counts=True)
        if len(different) == 1:
            return np.full(len(asked), different[0])
        told = dict(self.settings)
        pipeline = self._pipeline(told, layout, secret.ordered, len(secrets), seed)
        if not secret.ordered:
            pipeline.fit(known, place)
            return different[np.asarray(pipeline.predict(asked), dtype=np.int64)]
        if told["scale"] == "value":
            pipeline.fit(known, secrets)
            return np.asarray(pipeline.predict(asked), dtype=np.float64)
        # Learnt by mean rank: a mean of ranks is a median of values, which is what a distance is scored by.
        middles = np.cumsum(times) - (times + 1) / 2
        pipeline.fit(known, middles[place] / len(secrets))
        at = np.asarray(pipeline.predict(asked), dtype=np.float64) * len(secrets)
        return np.interp(at, np.arange(len(secrets)), np.sort(secrets))

    def _pipeline(self, told: dict[str, Any], layout: Features, ordered: bool, rows: int, seed: int) -> Any:
        from sklearn.pipeline import make_pipeline

        trees = self.model in ("random-forest", "xgboost")
        return make_pipeline(_prepared(layout, trees), self._model(told, ordered, rows, seed))

    def _model(self, told: dict[str, Any], ordered: bool, rows: int, seed: int) -> Any:
        if self.model == "random-forest":
            from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

            forest = RandomForestRegressor if ordered else RandomForestClassifier
            return forest(
                n_estimators=told["trees"], max_features=1 / 3, min_samples_leaf=told["leaf"],
                n_jobs=told["jobs"], random_state=seed,
            )  # fmt: skip
        if self.model == "xgboost":
            from xgboost import XGBClassifier, XGBRegressor

            boosted = XGBRegressor if ordered else XGBClassifier
            return boosted(
                n_estimators=told["trees"], max_depth=told["depth"], learning_rate=told["rate"],
                n_jobs=told["jobs"], random_state=seed, verbosity=0,
            )  # fmt: skip
        if self.model == "knn":
            from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

            near = KNeighborsRegressor if ordered else KNeighborsClassifier
            return near(n_neighbors=min(told["neighbours"], rows))
        penalty = told["penalty"]
        if ordered:
            from sklearn.linear_model import Ridge, RidgeCV

            return RidgeCV(alphas=np.logspace(-2, 4, 7)) if penalty is None else Ridge(alpha=penalty)
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=1.0 if penalty is None else 1 / penalty, max_iter=1000)


def require(model: str) -> None:
    """Refuse a model whose library is not installed.

    Raises:
        Unsupported: and how to install it.
    """
    from importlib.util import find_spec

    needs = {"group-median": None, "xgboost": "xgboost"}.get(model, "sklearn")
    for library in {needs, None if needs is None else "sklearn"} - {None}:
        if find_spec(str(library)) is None:
            raise Unsupported(
                f"attack: the model {model} needs {library}; install tetraodon[attack], or use group-median."
            )


def _prepared(layout: Features, trees: bool) -> Any:
    """Missing numbers filled by the median and marked, categories one-hot; trees see the order of categories too.

    For the others the released secret outweighs all other columns together: nearest is first of all who has the same.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    steps: list[tuple[str, Any, list[int]]] = []
    for name, chosen in (("", False), ("published ", True)):
        numbers = [i for i in layout.numbers if (i in layout.published) == chosen]
        categories = [i for i in layout.categories if (i in layout.published) == chosen]
        if numbers:
            filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
            steps.append(
                (f"{name}numbers", filled if trees else make_pipeline(filled, StandardScaler()), numbers)
            )
        if categories:
            hot = OneHotEncoder(
                handle_unknown="infrequent_if_exist", max_categories=LEVELS, sparse_output=False
            )
            steps.append((f"{name}categories", hot, categories))
            if trees:
                steps.append((f"{name}order", "passthrough", categories))
    heavy = 2 * layout.released.shape[1] ** 0.5
    return ColumnTransformer(
        steps,
        transformer_weights=None if trees else {s[0]: heavy if "published" in s[0] else 1.0 for s in steps},
    )


def by_group(known: Ints, secrets: Any, asked: Ints, ordered: bool) -> Any:
    """The median (of an ordered secret) or the commonest secret among the people known of the same published group.

    A group in which nobody is known gets that of all people known.

    >>> by_group(np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 9.0, 5.0]), np.array([0, 1, 2]), True).tolist()
    [2.0, 5.0, 3.5]
    """
    order = np.argsort(known, kind="stable")
    groups, starts = np.unique(known[order], return_index=True)
    parts = np.split(np.asarray(secrets)[order], starts[1:])
    said = np.array([central(part, ordered) for part in parts])
    at = np.minimum(np.searchsorted(groups, asked), len(groups) - 1)
    return np.where(groups[at] == asked, said[at], central(secrets, ordered))


def central(secrets: Any, ordered: bool) -> Any:
    """The best guess of one of these secrets: their median, or the commonest."""
    if ordered:
        return np.median(secrets)
    return np.bincount(secrets).argmax()
