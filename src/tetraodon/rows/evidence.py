"""What can be shown of a channel: figures, plain words, its place on the leakage–distortion curve, rows of it to draw.

Nothing here decides what may be published. The figures are functions of the joint table and the prior, so they are exactly as
private as these are; whoever calls says where they come from, and keeps what came from private rows to himself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, log
from typing import Any

import numpy as np

from ..axes import Ints
from ..channels.certificate import Certificate
from ..channels.channel import Channel
from ..channels.geometry import Floats, Geometry, distances, unit_of
from ..channels.priors import joint_of, prior_of, source_of
from ..channels.rate import at_distortion
from ..channels.words import Attacker, attacker, certified_words, evidence_words, proved_words
from ..errors import Refused, SpecificationError, TetraodonError
from ..leakage.measures import information
from ..metrics import Discrete, Metric

SMALL = 1024  # cells of which each is a secret of its own, and up to which curves are drawn
HELD = 2**22  # numbers in a joint table of blocks and cells
USED = 1e-6  # an output with less probability is called unused
MANY = 400  # cells beyond which curves have half as many points
TOLERANCE = 1e-3  # bits, of the certified curve: less than a line's width
BEST = "least leaking (certified)"
DIGITS = 12  # what doubles leave of sums
SHOWN = 6  # rows drawn
LEAST, MOST = 1e-4, 300  # the least probability of an output drawn, and how many of them


def evidence(
    channel: Channel,
    *,
    joint: object = None,
    prior: object = None,
    source: str = "private",
    metric: Metric | Floats | None = None,
    secret: str | None = None,
    people: str | None = None,
    points: int = 8,
    seconds: float = 20.0,
    epsilon: Fraction | float | None = None,
) -> dict[str, Any]:
    """The entry "evidence" of a channel in a manifest, in plain values.

    **It is as private as its inputs**, the channel among them: nothing is left out and no noise is added. Give it public
    tables, or keep what it returns.

    Args:
        joint: P(secret, value), shape (secrets, values), or counts: what an attacker knows. Without it the secret is the value
            itself; on a grid of more than 1,024 cells, which block of cells it lies in; elsewhere there is no such figure.
        prior: of the values, for the distortion; the law of the values in ``joint``, or else "uniform".
        source: where ``joint`` (or the prior) comes from: "public", "released", "disjoint" or "private". Words say it.
        metric: of distortion; ``L2`` unless told otherwise, another metric, or a table of losses.
        secret: what the secret is, in words.
        people: what the secrets are, in the plural.
        points: of every curve.
        seconds: for the certified curve; after them it has fewer points, or wider gaps, which its bounds show.
        epsilon: what the channel realises along the secrets of the release, for the words; what it was asked to keep, unless given.

    Returns:
        ``prior`` (words), ``distortion``, ``unit``, ``used_outputs`` (of probability 10^-6 at least), ``leakage`` (bits and
        Bayes error, with those of guessing and of no protection; None where the domain is too large), ``certificate``,
        ``words``, ``curve`` (lists of distortion and leakage by name, the certified optimum with its bounds) and ``rows``
        (laws of some cells spread over the map).

    Raises:
        SpecificationError: a table or prior that does not fit the channel's domain.

    >>> from ..attributes import Point
    >>> from ..channels.named import planar_geometric
    >>> from ..domain import Domain
    >>> plane = Domain(at=Point("x", "y", box=((0, 5), (0, 5)), cell=1, metric="planar", unit="km"))
    >>> told = evidence(planar_geometric(plane, 1, "km"), points=3)
    >>> round(told["distortion"], 3), round(told["leakage"]["bits"], 2), told["leakage"]["secret"]
    (1.301, 0.9, 'the value itself')
    """
    domain = channel.domain
    table = None if joint is None else joint_of(joint, domain.size)
    if prior is None and table is not None:
        law, words = table.sum(axis=0), "the values in the table of secrets"
    else:
        told = "uniform" if prior is None else prior
        law, words = prior_of(told, domain), _prior_words(told, domain.size)
        source = source if table is not None else source_of(source, told)
    if not isinstance(metric, np.ndarray) and metric is not None and not hasattr(metric, "to_spec"):
        metric = distances(metric, domain, channel.outputs)
    unit = None if isinstance(metric, np.ndarray) else unit_of(metric, domain)
    distortion = channel.distortion(law, metric)
    seen = _secrets(channel, table, law, secret, people)
    return {
        "prior": words,
        "distortion": distortion,
        "unit": unit,
        "used_outputs": int((channel.law.push(law[None, :])[0] >= USED).sum()),
        "leakage": None if seen is None else seen.figures(),
        "certificate": None if channel.certificate is None else _certificate(channel.certificate),
        "words": [proved_words(channel, epsilon), certified_words(channel.certificate)]
        if seen is None
        else seen.words(
            channel,
            source,
            (100 * distortion, "%") if isinstance(metric, Discrete) else (distortion, unit),
            epsilon,
        ),
        "curve": _curves(channel, table, law, metric, points, seconds),
        "rows": _rows(channel, law),
    }


def _prior_words(prior: object, cells: int) -> str:
    if isinstance(prior, str):
        return f"uniform over {cells:,} cells"
    return "a released histogram" if hasattr(prior, "charge") else "a table of its own"


@dataclass(frozen=True, eq=False)
class _Secrets:
    """Who the secret is, and what an attacker makes of an output."""

    joint: Floats
    outputs: Floats
    secret: str
    people: str

    @property
    def attacker(self) -> Attacker:
        return attacker(self.joint, self.outputs)

    def figures(self) -> dict[str, Any]:
        found = self.attacker
        return {
            "secret": self.secret,
            "bits": round(found.leakage, DIGITS),
            "prior_bits": round(found.unknown, DIGITS),
            "plain_bits": round(found.ceiling, DIGITS),
            "bayes_error": round(1 - found.seeing, DIGITS),
            "guessing_error": round(1 - found.guessing, DIGITS),
            "plain_error": round(1 - found.unprotected, DIGITS),
            "secrets": found.secrets,
        }

    def words(
        self,
        channel: Channel,
        source: str,
        distortion: tuple[float, str | None],
        epsilon: Fraction | float | None,
    ) -> list[str]:
        if source == "none":
            source = "public"
        return evidence_words(channel, self.joint, source, self.people, epsilon, distortion)


def _secrets(
    channel: Channel, joint: Floats | None, law: Floats, secret: str | None, people: str | None
) -> _Secrets | None:
    if joint is not None:
        return _Secrets(joint, channel.law.push(joint), secret or "the secret", people or "secrets")
    if channel.domain.size <= SMALL:
        return _itself(channel, law, secret, people)
    return _blocks(channel, law)


def _itself(channel: Channel, law: Floats, secret: str | None, people: str | None) -> _Secrets:
    """Each value is its own secret."""
    held = np.flatnonzero(law)
    joint = np.zeros((len(held), len(law)))
    joint[np.arange(len(held)), held] = law[held]
    outputs = law[held, None] * channel.law.rows(held)
    return _Secrets(joint, outputs, secret or "the value itself", people or "cells")


def _blocks(channel: Channel, law: Floats) -> _Secrets | None:
    """Blocks of cells are the secrets, as many as a joint table of 2^22 numbers can hold: up to 32 × 32."""
    place = Geometry(channel.domain)
    if not place.is_grid or not place.ordinary.all():
        return None
    most = max(channel.domain.size, channel.outputs.size)
    side = next((s for s in (32, 16, 8, 4, 2) if s * s * most <= HELD), None)
    if side is None:
        return None
    rows, columns = place.shape
    tall, wide = -(-rows // side), -(-columns // side)
    i, j = np.divmod(np.arange(channel.domain.size), columns)
    block = (i // tall) * -(-columns // wide) + j // wide
    joint = np.zeros((int(block.max()) + 1, channel.domain.size))
    joint[block, np.arange(channel.domain.size)] = law
    joint = joint[joint.any(axis=1)]
    secret = f"which block of {tall} × {wide} cells the value lies in"
    return _Secrets(joint, channel.law.push(joint), secret, "blocks of cells")


def _certificate(certificate: Certificate) -> dict[str, Any]:
    bound = certificate.bound if isfinite(certificate.bound) else None
    told = certificate.spec() | {"bound": bound}
    return told | {"gap": None if bound is None else certificate.gap}


def _rows(channel: Channel, law: Floats) -> list[dict[str, Any]]:
    """Laws of some cells, spread over the domain; outputs of 10^-4 at least, at most 300 of them."""
    cells = _spread(channel, law)
    told = []
    for cell, row in zip(cells.tolist(), channel.law.rows(cells), strict=True):
        outputs = np.flatnonzero(row >= LEAST)
        if len(outputs) > MOST:
            outputs = np.sort(outputs[np.argsort(-row[outputs], kind="stable")[:MOST]])
        told.append({
            "cell": cell, "label": ", ".join(channel.domain.labels(cell)),
            "outputs": [[int(z), float(row[z])] for z in outputs],
        })  # fmt: skip
    return told


def _spread(channel: Channel, law: Floats) -> Ints:
    """At most six cells that have mass: near the quarters, the middle and a corner of a grid, evenly spaced elsewhere."""
    held = np.flatnonzero(law)
    place = Geometry(channel.domain)
    if len(held) <= SHOWN or not place.is_grid or min(place.shape) < 2:
        chosen: Ints = held[np.linspace(0, len(held) - 1, min(SHOWN, len(held))).round().astype(int)]
        return chosen
    held = held[place.ordinary[held]]
    _, columns = place.shape
    at = np.stack(np.divmod(held, columns), axis=1) + 0.5
    wanted = [(0.25, 0.25), (0.25, 0.75), (0.5, 0.5), (0.75, 0.25), (0.75, 0.75), (1.0, 1.0)]
    near = [np.hypot(*((at - np.array(w) * place.shape) / place.shape).T).argmin() for w in wanted]
    return np.unique(held[np.array(near)])


# ------------------------------------------------------------------------------------------------------------------ curves


def _curves(
    channel: Channel,
    joint: Floats | None,
    law: Floats,
    metric: Metric | Floats | None,
    points: int,
    seconds: float,
) -> list[dict[str, Any]]:
    """Named channels over a range of ε, and the certified optimum, where tables are small; else nothing."""
    domain = channel.domain
    if domain.size > SMALL or points < 1 or channel.outputs != domain:
        return []
    law = law if joint is None else joint.sum(axis=0)
    try:
        cost = distances(metric, domain)
    except SpecificationError:
        return []
    widest = float((law @ cost).min())  # of the best constant output, which tells nothing
    if widest <= 0:
        return []
    count = points if domain.size <= MANY else -(-points // 2)
    targets = widest * np.arange(1, count + 1) / (count + 1)
    found = [
        curve
        for name, make, factor in _named(channel, metric)
        if (curve := _named_curve(name, make, _rates(domain.size, factor, targets), joint, law, cost))
    ]
    if joint is None:
        return [*found, *_of_values(law, cost, targets, time.process_time() + seconds)]
    return [*found, *_of_secrets(channel, joint, metric, targets, seconds)]


_Maker = Callable[[Fraction], Channel]


def _named(channel: Channel, metric: Metric | Floats | None) -> Iterable[tuple[str, _Maker, float]]:
    """Name, construction and how far it moves a value, about: factor / ε."""
    from ..channels import named

    domain = channel.domain
    place = Geometry(domain)
    if isinstance(metric, Discrete):
        yield "randomised response", lambda e: named.randomised_response(domain, e), 0.0
        return
    if place.is_grid:
        yield "planar geometric", lambda e: named.planar_geometric(domain, e, 1), 2.0
        yield "planar Laplace", lambda e: named.planar_laplace(domain, e, 1), 2.0
    own = None if isinstance(metric, np.ndarray) else metric
    yield "exponential", lambda e: named.exponential(domain, e, 1, metric=own), 4.0


def _rates(cells: int, factor: float, targets: Floats) -> list[Fraction]:
    """ε at which the expected distortion comes near to each target, to three digits."""
    if factor:
        return [Fraction(f"{factor / t:.3g}") for t in targets]
    return [Fraction(f"{log((cells - 1) * (1 - t) / t):.3g}") for t in targets if t < 0.99 * (1 - 1 / cells)]


def _named_curve(
    name: str, make: _Maker, rates: Sequence[Fraction], joint: Floats | None, law: Floats, cost: Floats
) -> dict[str, Any] | None:
    found = []
    for rate in rates:
        try:
            matrix = make(rate).matrix
        except TetraodonError:
            continue
        found.append((float(law @ (matrix * cost).sum(axis=1)), _leaked(joint, law, matrix)))
    if not found:
        return None
    found.sort()
    return {
        "name": name,
        "distortion": [d for d, _ in found],
        "leakage": [b for _, b in found],
        "bound": None,
    }


def _of_values(law: Floats, cost: Floats, targets: Floats, until: float) -> list[dict[str, Any]]:
    """The certified optimum where the value is the secret; every other point first, so that little time leaves a thinner curve
    and no shorter one."""
    held, found = law > 0, []
    for target in [*targets[1::2].tolist(), *targets[::2].tolist()]:
        if time.process_time() > until:
            break
        with contextlib.suppress(Refused):  # less than the least attainable
            done = at_distortion(law[held], cost[held], target, TOLERANCE)
            found.append((target, done.value, max(done.bound, 0.0)))
    return _best(sorted(found))


def _of_secrets(
    channel: Channel, joint: Floats, metric: Metric | Floats | None, targets: Floats, seconds: float
) -> list[dict[str, Any]]:
    """The certified optimum for a table of secrets, each point from where the last one ended."""
    from .. import channels

    each = seconds / len(targets)
    try:
        points = channels.curve(
            joint, metric, targets.tolist(), domain=channel.domain, tolerance=TOLERANCE, max_seconds=each
        )
    except Refused:  # even the smallest distortion is less than the least attainable
        return []
    return _best([(p.distortion, p.leakage, max(p.bound, 0.0)) for p in points])


def _best(found: list[tuple[float, float, float]]) -> list[dict[str, Any]]:
    if not found:
        return []
    distortion, leakage, bound = (list(column) for column in zip(*found, strict=True))
    return [{"name": BEST, "distortion": distortion, "leakage": leakage, "bound": bound}]


def _leaked(joint: Floats | None, law: Floats, matrix: Floats) -> float:
    held = law > 0
    return float(information(law[held, None] * matrix[held] if joint is None else joint @ matrix))
