"""The cells of a joint domain, as far as releases and known counts tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ..axes import Bools, Ints
from ..domain import Domain
from ..errors import Unsupported
from ..workload import Resolved
from .classes import MAX_JOINT
from .neighbours import Neighbourhood
from .stack import EXACT_WORK, Term, edge_bound, joint_domain

FEW_KINDS = 300


@dataclass(frozen=True, eq=False)
class Kinds:
    """Cells that lie in one class and count at the same place in every release are of one kind.

    Attributes:
        hood: the graph and the classes.
        domain: of all attributes that matter.
        number: shape (domain.size,): the kind of each cell; kinds are sorted by class.
        cells: shape (kinds,): a cell of each kind.
        label: shape (kinds,): its class.
        places: shape (kinds, releases): group·positions + position, −1 for nowhere.
        positions: of the first release.
    """

    hood: Neighbourhood
    domain: Domain
    number: Ints
    cells: Ints
    label: Ints
    places: Ints
    positions: int = 1

    @property
    def is_few(self) -> bool:
        """Whether all pairs of kinds may be gone through."""
        return len(self.cells) <= FEW_KINDS and self.joined is not None

    @property
    def heads(self) -> Ints:
        """Where each class begins; every class has at least one kind."""
        return np.flatnonzero(np.diff(self.label, prepend=-1))

    @cached_property
    def joined(self) -> Bools | None:
        """Shape (kinds, kinds): whether an edge joins cells of two kinds; None where edges or kinds are too many."""
        small = self.hood.graph.project(self.domain.names)
        if len(self.cells) > FEW_KINDS or edge_bound(small) > EXACT_WORK:
            return None
        found = np.zeros((len(self.cells),) * 2, dtype=bool)
        for a, b in small.edges():
            x, y = self.number[a], self.number[b]
            found[x, y] = found[y, x] = True
        return found

    @cached_property
    def are_apart(self) -> bool:
        """Whether no group of the only release holds values of two classes that have several kinds."""
        kinds_in = np.bincount(self.label)
        size = self.positions
        held = (self.places[:, 0] >= 0) & (kinds_in[self.label] > 1)
        pairs = np.unique(np.stack([self.places[held, 0] // size, self.label[held]], axis=1), axis=0)
        return len(np.unique(pairs[:, 0])) == len(pairs)

    def moves(self, term: Term) -> Ints:
        """Shape (kinds, kinds): weighted move of one term between two kinds."""
        count = len(self.cells)
        a, b = np.divmod(np.arange(count * count), count)
        return term.move(self.cells[a], self.cells[b], self.domain).reshape(count, count)


@lru_cache(maxsize=64)
def kinds_of(resolved: tuple[Resolved, ...], hood: Neighbourhood) -> Kinds:
    """The kinds of cells for some queries under a neighbourhood with classes.

    Raises:
        Unsupported: the attributes of the queries and of the constraints have more than 2^22 joint cells.
    """
    classes = hood.classes
    assert classes is not None
    domain = joint_domain(hood.graph.domain, [Term(r, ()) for r in resolved], *classes.domain.names)
    if domain.size > MAX_JOINT:
        raise Unsupported(
            "constraints: the attributes of the query and of the constraints together have more than 2^22 cells; "
            "use coarser ones."
        )
    cells = dict(zip(domain.names, domain.decode(np.arange(domain.size, dtype=np.int64)), strict=True))
    label = classes.labels[classes.domain.encode([cells[n] for n in classes.domain.names])]
    number, places = label, []
    for r in resolved:
        group, position = r.place(r.domain.encode([cells[n] for n in r.domain.names]))
        place = np.where(group < 0, -1, group * r.n_positions + position)
        places.append(place)
        pair = number * (r.n_groups * r.n_positions + 1) + place + 1  # sorted by class first
        _, number = np.unique(pair, return_inverse=True)
    _, first = np.unique(number, return_index=True)
    positions = resolved[0].n_positions if resolved else 1
    listed = np.stack(places, axis=1) if places else np.zeros((domain.size, 0), dtype=np.int64)
    return Kinds(
        hood, domain, number.astype(np.int64), first.astype(np.int64), label[first], listed[first], positions
    )
