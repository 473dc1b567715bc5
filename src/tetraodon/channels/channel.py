"""A channel: the law by which each record's value is replaced before it leaves, with everything that can be asked of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from ..axes import Ints
from ..binding import bind
from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..exact import Number, show
from ..graphs import Graph
from ..reading import kind_of
from ..secrets import Secrets
from .bounds import stretch
from .certificate import Certificate
from .geometry import MAX_ENTRIES, Floats, Geometry, distances
from .law import Law
from .pairs import every_pair, pairs_of
from .priors import SOURCES, joint_of, prior_of, source_of, worst
from .table import Table
from .then import Relabelled, Then

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Asked:
    """The ε that a channel was asked to keep, exactly.

    Attributes:
        epsilon: the amount.
        per: for how much of a distance ("km", "100 m"); None along the edges of a secret graph.
    """

    epsilon: Fraction
    per: str | None = None

    def __str__(self) -> str:
        return f"epsilon {show(self.epsilon)}" + (f" per {self.per}" if self.per else "")


@dataclass(frozen=True, eq=False)
class Channel:
    """P(output | value) for every value of a declared domain. Everything it answers comes from the exact law it draws from.

    Args:
        domain: of the values; cells are numbered as everywhere (row-major).
        law: the probabilities, exact.
        outputs: what comes out; the domain itself unless told otherwise.
        name: which construction made it.
        asked: the ε it was asked to keep.
        source: where the prior that shaped it came from: "none", "public", "disjoint" (other persons), "released" (charged
            answers) or "private". A private one means that matrix, certificate and distortion are private too, and that a
            release through this channel has no proved ε.
        certificate: how near it is to the best possible.
        settings: its construction in plain values.

    Raises:
        SpecificationError: law, domain and outputs of different sizes; an unknown source.

    >>> from ..attributes import Categorical
    >>> vote = Domain(vote=Categorical(["no", "yes"]))
    >>> lie = Channel.of_matrix([[0.75, 0.25], [0.25, 0.75]], vote)
    >>> from ..secrets import Full
    >>> round(float(lie.epsilon(Full())), 4), round(lie.leakage([[1, 0], [0, 1]]), 4)
    (1.0986, 0.1887)
    """

    domain: Domain
    law: Law
    outputs: Domain = None  # type: ignore[assignment]
    name: str = "table"
    asked: Asked | None = None
    source: str = "none"
    certificate: Certificate | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.outputs is None:
            object.__setattr__(self, "outputs", self.domain)
        if (self.law.n_inputs, self.law.n_outputs) != (self.domain.size, self.outputs.size):
            raise SpecificationError(
                f"channel: {self.law.n_inputs} × {self.law.n_outputs} probabilities, but {self.domain.size} values and "
                f"{self.outputs.size} outputs are declared."
            )
        if self.source not in SOURCES:
            raise SpecificationError(f"channel.source: one of {', '.join(SOURCES)}.")

    @staticmethod
    def of_matrix(
        matrix: object,
        domain: Domain,
        outputs: Domain | None = None,
        *,
        name: str = "table",
        source: str = "public",
    ) -> Channel:
        """A channel from a table of probabilities, shape (values, outputs).

        Args:
            source: where the table comes from; "private" if rows to which it will be applied had a part in it.
        """
        law = Table.of(matrix)
        return Channel(domain, law, domain if outputs is None else outputs, name, source=source)

    @property
    def is_private(self) -> bool:
        """Whether the channel itself is a function of private rows, and so are its matrix, certificate and distortion."""
        return self.source == "private"

    @property
    def guarantee(self) -> str:
        """ "measured" for a channel fitted on private rows, whatever its matrix says; else "proved", by ``epsilon``."""
        return "measured" if self.is_private else "proved"

    @cached_property
    def place(self) -> Geometry:
        """Where the values lie."""
        return Geometry(self.domain)

    @cached_property
    def matrix(self) -> Floats:
        """Shape (values, outputs), read-only: each entry the double nearest to the exact probability.

        Raises:
            Unsupported: more than 2^24 entries.
        """
        if self.law.n_inputs * self.law.n_outputs > MAX_ENTRIES:
            raise Unsupported(
                "channel.matrix: more than 2^24 entries; ask for rows of some cells: channel.rows(cells)."
            )
        found = self.law.rows(np.arange(self.law.n_inputs))
        found.flags.writeable = False
        return found

    def rows(self, cells: object) -> Floats:
        """Shape (cells, outputs): the law of each of these cells."""
        return self.law.rows(self._inputs(cells))

    def sample(self, cells: object) -> Ints:
        """One output cell for each input cell, from the operating system's randomness.

        It charges nothing: to release rows under a budget, use ``Session.release(td.Rows(…))``.

        Raises:
            SpecificationError: a cell that the domain does not have.
        """
        told = self._inputs(cells)
        return self.law.draw(told.ravel()).reshape(told.shape)

    def apply(
        self, table: object, on: Mapping[str, str] | None = None, keep: Sequence[str] = ()
    ) -> pyarrow.Table:
        """The rows of a table with values replaced; only outputs and the columns named in ``keep`` leave, rows shuffled.

        It charges nothing: to release rows under a budget, use ``Session.release(td.Rows(…))``.

        Args:
            table: whatever ``td.Table`` reads.
            on: the table's column for each attribute (each coordinate of a ``Point`` by its own name), where names differ.
            keep: columns that leave as they are; they are outside any guarantee.
        """
        from .apply import apply

        return apply(self, table, on, keep)

    def epsilon(self, secrets: Secrets | Graph) -> Fraction | float:
        """The ε that the channel realises along the edges of a secret graph: a certified upper bound, within 10^-11 or so, of
        the largest |ln P(z | a) − ln P(z | b)|; infinity where an output tells two secrets apart for certain.

        >>> from ..attributes import Integer
        >>> from ..secrets import Within
        >>> steps = Channel.of_matrix([[.5, .3, .2], [.3, .4, .3], [.2, .3, .5]], Domain(x=Integer(0, 2)))
        >>> round(float(steps.epsilon(Within(1))), 4)
        0.5108
        """
        graph = secrets if isinstance(secrets, Graph) else bind(secrets, self.domain)
        return self._largest(*pairs_of(graph, self.law))

    def epsilon_per(self, length: Number) -> Fraction | float:
        """The ε that the channel realises for every stretch of this length between any two values ("km", "100 m", or a number
        in the domain's unit): the largest log-ratio over distance, a certified upper bound.
        """
        amount = stretch(length, self.place.unit)
        a, b = every_pair(self.domain, self.law)
        if not len(a):
            return Fraction(0)
        found = self.law.losses(a, b) / self.place.between(None, a, b) * (1 + 2e-12)
        most = float(found.max())
        return Fraction(most) * amount if most < inf else inf

    def _largest(self, a: Ints, b: Ints) -> Fraction | float:
        most = float(self.law.losses(a, b).max()) if len(a) else 0.0
        return Fraction(most) if most < inf else inf

    def leakage(self, joint: object) -> float:
        """I(secret; output) in bits.

        Args:
            joint: P(secret, value), shape (secrets, values), or counts.
        """
        from ..leakage.measures import information

        return float(information(self.pushed(joint)))

    def bayes_error(self, joint: object) -> float:
        """How often the best guess of the secret from the output is wrong."""
        from ..leakage.measures import bayes_error

        return float(bayes_error(self.pushed(joint)))

    def pushed(self, joint: object) -> Floats:
        """P(secret, output), shape (secrets, outputs), from P(secret, value)."""
        return self.law.push(joint_of(joint, self.domain.size))

    def distortion(self, prior: object = "uniform", metric: object = None) -> float:
        """Expected distance of the output from the value, in the metric's unit.

        Args:
            prior: of the values (``priors.prior_of``).
            metric: ``L2`` unless told otherwise, another metric, or a table of losses of shape (values, outputs).
        """
        law = prior_of(prior, self.domain)
        told = (
            metric
            if metric is None or hasattr(metric, "to_spec")
            else distances(metric, self.domain, self.outputs)
        )
        if told is None or hasattr(told, "to_spec"):
            distances_fit(self)
        return self.law.expected(law, told, self.place)

    def remap(self, prior: object, metric: object = None, source: str = "private") -> Channel:
        """The channel with every output moved to where the expected distance is least, given that output.

        z ↦ argmin over z' of Σ_w prior(w) P(z | w) d(w, z') (Chatzikokolakis, ElSalamouny, Palamidessi 2017): it looks at
        outputs only, so ε is kept; the expected distance never rises.

        Raises:
            Unsupported: more than 4,096 values.
        """
        law = prior_of(prior, self.domain)
        cost = distances(metric, self.domain, self.outputs)
        weight = law[:, None] * self.matrix
        expected = weight.T @ cost
        best = expected.argmin(axis=1).astype(np.int64)
        own = np.arange(len(best))
        best = np.where(expected[own, best] < expected[own, own] * (1 - 1e-12), best, own)
        whence = worst(self.source, source_of(source, prior))
        made = Relabelled(self.law, best, len(best))
        return replace(self, law=made, name=f"{self.name}, remapped", source=whence, certificate=None)

    def then(self, other: Channel) -> Channel:
        """This channel followed by another one on its outputs; never worse protected than this one alone."""
        if not isinstance(other, Channel):
            raise SpecificationError(f"channel.then: a channel, not {kind_of(other)}.")
        if other.domain != self.outputs:
            raise SpecificationError(
                "channel.then: the second channel's values are not the outputs of the first."
            )
        return Channel(
            self.domain, Then(self.law, other.law), other.outputs, f"{self.name}, then {other.name}", self.asked,
            worst(self.source, other.source),
        )  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the channel, its certificate included, as an ``.npz`` file of plain arrays.

        Raises:
            OutputError: it cannot be written.
        """
        from .saving import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Channel:
        """The channel that ``save`` wrote; nothing in the file is run.

        Raises:
            DataError: no such file, or none that ``save`` wrote.
        """
        from .saving import load

        return load(path)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the law, over which domain: two channels that draw alike have one digest."""
        from .saving import digest

        return digest(self)

    def _inputs(self, cells: object) -> Ints:
        told = np.asarray(cells)
        if told.dtype.kind not in "iu" and told.size:
            raise SpecificationError(
                "channel: cells are whole numbers; domain attributes turn values into cells."
            )
        told = told.astype(np.int64)
        if told.size and (int(told.min()) < 0 or int(told.max()) >= self.domain.size):
            raise SpecificationError(f"channel: a cell that is not one of the {self.domain.size} declared.")
        return told

    def __repr__(self) -> str:
        kept = f", {self.asked}" if self.asked else ""
        fitted = ", fitted on private rows" if self.is_private else ""
        return f"Channel({self.name}: {self.domain.size} values → {self.outputs.size} outputs{kept}{fitted})"


def distances_fit(channel: Channel) -> None:
    """Refuse distances between values and outputs that lie in different domains."""
    if channel.outputs != channel.domain:
        raise SpecificationError("distortion: a channel to other outputs needs a table of losses.")
