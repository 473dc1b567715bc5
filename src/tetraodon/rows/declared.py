"""Channels that are declared by kind, and made for the ε and the secrets of a release."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..channels.channel import Channel
from ..channels.geometry import Geometry
from ..channels.priors import SOURCES, joint_of, prior_of, source_of
from ..domain import Domain
from ..errors import DataError, SpecificationError, unknown
from ..exact import exact
from ..lengths import measured
from ..metrics import Discrete, Metric, metric_from_spec
from ..phrases import Frozen, named, thawed
from ..reading import kind_of, table
from ..secrets import Secrets
from .learned import KEYS as LEARNED
from .learned import check_fits, check_options, learned

BY_FORMULA = ("planar-geometric", "planar-laplace", "exponential", "randomised-response", "tight-constraints")
FITTED = ("least-distortion", "least-leaking")
KINDS = (*BY_FORMULA, *FITTED, "learned", "file")
KEYS = {
    "learned": LEARNED,
    "least-distortion": ("prior", "metric", "source", "remap"),
    "least-leaking": ("secret", "distortion", "prior", "metric", "source", "leakage", "tolerance", "seconds"),
    "file": ("path", "remap"),
}
SHORT = 64


@dataclass(frozen=True)
class Declared:
    """A kind of channel with its options.

    Args:
        kind: one of ``KINDS``.
        options: beside it, by key.

    >>> declared_from_spec({"kind": "exponential"}, "channel").to_spec()
    {'kind': 'exponential'}
    """

    kind: str
    options: Frozen = ()

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form."""
        return {"kind": self.kind} | {name: thawed(value) for name, value in self.options}

    def public_spec(self) -> dict[str, Any]:
        """The same with the numbers of priors that are not public withheld, those of long public ones named by their digest, and
        files by their names."""
        told = self.to_spec()
        if "path" in told:
            told["path"] = Path(str(told["path"])).name
        if isinstance(told.get("remap"), Mapping):
            told["remap"] = _withheld(dict(told["remap"]))
        return _withheld(told)

    @property
    def told(self) -> dict[str, Any]:
        """The options by key."""
        return {name: thawed(value) for name, value in self.options}

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of earlier answers that it takes priors from."""
        priors = (self.told.get("prior"), self._remap.get("prior"))
        return tuple(str(p["answer"]) for p in priors if isinstance(p, Mapping) and "answer" in p)

    @property
    def is_of_rows(self) -> bool:
        """Whether it is fitted on the joint counts of the very rows that it is applied to."""
        return self.has_joint and self.floor is None

    @property
    def has_joint(self) -> bool:
        """Whether it is fitted on joint counts: of the rows, or of what a floor let out of them."""
        return self.kind == "learned" or (self.kind == "least-leaking" and "prior" not in self.told)

    @property
    def floor(self) -> Any:
        """What every row goes through before a channel is learned from the outcome; None for nothing."""
        return self.told.get("floor")

    @property
    def source(self) -> str:
        """Where what shapes it comes from, as far as the declaration tells."""
        told = self.told
        found = []
        if self.kind == "learned":
            return "private" if self.floor is None else "released"
        if self.kind in FITTED:
            found.append("private" if self.is_of_rows else _source(told.get("prior"), told.get("source")))
        remap = self._remap
        if remap:
            found.append(_source(remap.get("prior"), remap.get("source")))
        return max(found, key=SOURCES.index, default="none")

    @property
    def _remap(self) -> dict[str, Any]:
        return dict(self.told.get("remap") or {})

    def check(self, domain: Domain, whole: Domain) -> None:
        """Refuse options that do not fit, before anything is read.

        Args:
            domain: of the values; ``whole``: of the table.

        Raises:
            SpecificationError: a secret that is no attribute or is replaced itself, a distance in another unit.
            Unsupported: a channel to be learned, and the extra for it is not installed, or there are too many cells.
        """
        for metric in (self.told.get("metric"), self._remap.get("metric")):
            found = _metric(metric)
            if found is not None:
                first = np.zeros(1, dtype=np.int64)
                Geometry(domain).between(found, first, first)
        if self.kind not in ("least-leaking", "learned"):
            return
        _length(self.told["distortion"], domain)
        if self.has_joint:
            secret = self.told["secret"]
            if not isinstance(secret, str):
                raise SpecificationError(f"channel.secret: the name of an attribute, not {kind_of(secret)}.")
            whole.attribute(secret, "channel.secret")
            if secret in domain:
                raise SpecificationError(
                    f"channel.secret: {secret!r} is replaced itself; name another attribute"
                    f"{'' if self.kind == 'learned' else ', or give prior instead'}."
                )
        if self.kind == "learned":
            check_fits(self.told, domain, whole, _metric(self.told.get("metric")))

    def build(
        self,
        domain: Domain,
        epsilon: Fraction | None,
        secrets: Secrets,
        answers: Mapping[str, Any],
        joint: Any = None,
    ) -> Channel:
        """The channel for a domain.

        Args:
            epsilon: along every edge of ``secrets``; None for none.
            answers: releases by name, for priors taken from them.
            joint: P(secret, value), for a channel fitted on rows, or on what the floor let out of them.

        Raises:
            SpecificationError: options that do not fit the domain.
            Refused: no such channel exists.
        """
        from .. import channels

        told = self.told
        if epsilon is None and self.kind in (*BY_FORMULA, "least-distortion"):
            raise SpecificationError(f"epsilon: is missing; a {self.kind} channel is made for one.")
        made: Channel
        if self.kind == "file":
            try:
                made = Channel.load(told["path"])
            except DataError as error:
                raise SpecificationError(f"channel.path: {error}") from None
            if made.domain != domain:
                raise SpecificationError(
                    "channel.path: the saved channel is of another domain than these attributes."
                )
        elif self.kind == "learned":
            made = learned(joint, domain, told, _metric(told.get("metric")), self.source)
        elif self.kind in BY_FORMULA:
            make = getattr(channels, self.kind.replace("-", "_"))
            made = make(domain, epsilon=epsilon, secrets=secrets)
        elif self.kind == "least-distortion":
            prior, source = self._prior(told.get("prior", "uniform"), told.get("source"), answers)
            made = channels.least_distortion(
                prior,
                _metric(told.get("metric")),
                secrets=secrets,
                epsilon=epsilon,
                domain=domain,
                source=source,
            )
        else:
            made = self._least_leaking(domain, epsilon, secrets, answers, joint)
        remap = self._remap
        if remap:
            prior, source = self._prior(remap.get("prior", "uniform"), remap.get("source"), answers)
            made = made.remap(prior, _metric(remap.get("metric")), source=source)
        return made

    def first(self, domain: Domain, epsilon: Fraction | None, secrets: Secrets) -> Channel:
        """The channel of the floor: for its own ε, or else for that of the release.

        Args:
            epsilon: along every edge of ``secrets``, unless the floor states another or one for a length.
        """
        from ..channels.named import planar_geometric

        told = self.floor if isinstance(self.floor, Mapping) else {}
        own = told.get("epsilon", epsilon)
        if "per" in told:
            return planar_geometric(domain, own, told["per"])
        return planar_geometric(domain, own, secrets=secrets)

    def _least_leaking(
        self,
        domain: Domain,
        epsilon: Fraction | None,
        secrets: Secrets,
        answers: Mapping[str, Any],
        joint: Any,
    ) -> Channel:
        from .. import channels

        told = self.told
        source = "private"
        if joint is None:
            prior, source = self._prior(told["prior"], told.get("source"), answers)
            joint = np.diag(prior_of(prior, domain))  # the secret is the value itself
        budget = _length(told["distortion"], domain)
        limits = {"tolerance": "tolerance", "seconds": "max_seconds"}
        extra: dict[str, Any] = {
            to: float(exact(told[k], f"channel.{k}")) for k, to in limits.items() if k in told
        }
        if epsilon is not None:
            extra |= {"secrets": secrets, "epsilon": epsilon}
        made: Channel = channels.least_leaking(
            joint_of(joint, domain.size), _metric(told.get("metric")), distortion=budget, domain=domain, source=source,
            leakage=told.get("leakage", "information"), **extra,
        )  # fmt: skip
        return made

    def _prior(self, prior: Any, source: Any, answers: Mapping[str, Any]) -> tuple[Any, str]:
        if isinstance(prior, Mapping):
            return answers[str(prior["answer"])], "released"
        told = [float(exact(v, "channel.prior")) for v in prior] if isinstance(prior, list) else prior
        return told, _source(prior, source)


def _withheld(told: dict[str, Any]) -> dict[str, Any]:
    prior = told.get("prior")
    if isinstance(prior, list):
        source = _source(prior, told.get("source"))
        if source != "public":
            told["prior"] = {"withheld": source}
        elif len(prior) > SHORT:
            told["prior"] = {"withheld": hashlib.sha256(",".join(map(str, prior)).encode()).hexdigest()}
    return told


def _source(prior: Any, source: Any) -> str:
    if isinstance(prior, Mapping) and "answer" in prior:
        return "released"
    return source_of(source or "private", "uniform" if prior is None else prior)


def _metric(spec: Any) -> Metric | None:
    return None if spec is None else metric_from_spec(spec, "channel")


def metric_of(declared: Declared | None, domain: Domain) -> Metric | None:
    """The metric in which a declared channel is as near to the truth as it can be: the straight line, unless it states another;
    where values have no place in one space, whether they change at all."""
    stated = None if declared is None else _metric(declared.told.get("metric"))
    if stated is not None:
        return stated
    first = np.zeros(1, dtype=np.int64)
    try:
        Geometry(domain).between(None, first, first)
    except SpecificationError:
        return Discrete()
    return None


def _length(told: Any, domain: Domain) -> float:
    units = {a.unit for a in domain.values()}
    found = measured(told, units.pop() if len(units) == 1 else None, "channel.distortion")
    return float(found)


def declared_from_spec(spec: Mapping[str, Any], where: str, folder: Path | None = None) -> Declared:
    """``[release.channel]`` of a settings file, or what ``to_spec`` wrote.

    Args:
        folder: where relative paths start.

    Raises:
        SpecificationError: an unknown kind or key; names the nearest one.
    """
    told = table(spec, where, 'a table such as { kind = "planar-geometric" }')
    kind = told.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        if isinstance(kind, str):
            raise unknown(f"{where}.kind", "kind of channel", kind, KINDS)
        given = "is missing" if kind is None else f"a text, not {kind_of(kind)}"
        raise SpecificationError(f"{where}.kind: {given}; one of {', '.join(KINDS)}.")
    allowed = KEYS.get(kind, ("remap",))
    for key in told:
        if key not in allowed:
            raise unknown(where, "key", key, ["kind", *allowed])
    _check(kind, told, where)
    for key in ("prior", "remap"):
        if key in told:
            told[key] = _read(told[key], f"{where}.{key}", folder)
    if "path" in told and folder is not None:
        told["path"] = str(folder / told["path"])
    return Declared(kind, named(told, where))


def _check(kind: str, told: Mapping[str, Any], where: str) -> None:
    if "metric" in told:
        metric_from_spec(told["metric"], where)
    if kind == "file" and not isinstance(told.get("path"), str):
        raise SpecificationError(f"{where}.path: the path of a saved channel.")
    if kind == "learned":
        check_options(told, where)
    if kind == "least-leaking":
        if "distortion" not in told:
            raise SpecificationError(
                f"{where}.distortion: is missing; how far values may move on average, such as '500 m'."
            )
        if ("secret" in told) == ("prior" in told):
            raise SpecificationError(
                f"{where}.secret: an attribute whose joint counts with the values are taken from these rows, or prior; one of them."
            )
        if told.get("leakage", "information") not in ("information", "bayes"):
            raise SpecificationError(f"{where}.leakage: 'information' or 'bayes'.")
    for key in ("tolerance", "seconds"):
        if key in told and not 0 < exact(told[key], f"{where}.{key}") < 10**9:
            raise SpecificationError(f"{where}.{key}: a number above 0.")
    _check_prior(told.get("prior"), f"{where}.prior")
    if "source" in told and told["source"] not in SOURCES[1:]:
        raise SpecificationError(f"{where}.source: 'public', 'released', 'disjoint' or 'private'.")
    if "remap" in told:
        remap = table(told["remap"], f"{where}.remap", "a table such as { prior = 'uniform' }")
        _check_prior(remap.get("prior"), f"{where}.remap.prior")
        for key in remap:
            if key not in ("prior", "source", "metric"):
                raise unknown(f"{where}.remap", "key", key, ["prior", "source", "metric"])


def _check_prior(prior: Any, where: str) -> None:
    """Refuse what is neither a word, nor numbers, nor the name of an answer."""
    if isinstance(prior, list | tuple):
        if any(exact(v, where) < 0 for v in prior):
            raise SpecificationError(f"{where}: numbers of 0 or more.")
    elif isinstance(prior, Mapping):
        if set(prior) != {"answer"} or not isinstance(prior["answer"], str):
            raise SpecificationError(
                f"{where}: 'uniform', a list of numbers, a file, or {{ answer = 'name' }}."
            )
    elif prior is not None and not isinstance(prior, str):
        raise SpecificationError(
            f"{where}: 'uniform', a list of numbers, a file, or {{ answer = 'name' }}, not {kind_of(prior)}."
        )


def _read(told: Any, where: str, folder: Path | None) -> Any:
    """A prior, or the table of a remap with one, where texts that are no word of ours are files of numbers."""
    if isinstance(told, Mapping):
        return {k: _read(v, f"{where}.{k}", folder) if k == "prior" else v for k, v in told.items()}
    if not isinstance(told, str) or told == "uniform":
        return told
    if folder is None:
        raise SpecificationError(f"{where}: 'uniform', a list of numbers, or {{ answer = 'name' }}.")
    return _numbers(folder / told, where)


def _numbers(path: Path, where: str) -> list[str]:
    """Numbers of a file, one a line, or the last column of a CSV file, in cell order."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError, ValueError):
        raise SpecificationError(
            f"{where}: {path.name} cannot be read; a text file with one number for each cell."
        ) from None
    told = [line.rpartition(",")[2].strip() for line in lines if line.strip()]
    try:
        exact(told[0], where)
    except (SpecificationError, IndexError):
        told = told[1:]  # a header
    try:
        return [str(exact(text, where)) for text in told]
    except SpecificationError:
        raise SpecificationError(
            f"{where}: {path.name} must hold one number for each cell, in cell order."
        ) from None
