"""Cuts of a hierarchy: every group is a node, different levels may stand side by side.

With price(v) of a node and children Ch(v),

    V(v) = min( price(v), Σ_{w ∈ Ch(v)} V(w) ),       V_s(v) = min( price(v) if s = 1, min over s = Σ s_w of Σ V_{s_w}(w) ),

any number of groups on the left, exactly s on the right (a knapsack on the tree). Optimal among all cuts of the tree, in time
linear in the nodes, or nodes times groups squared at most. Groups named by nodes are what the field calls a hierarchy with
local recoding by cut.

Source: bottom-up pruning of trees (Breiman, Friedman, Olshen, Stone 1984), tree knapsack; derived here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints
from ..errors import SpecificationError
from .families import Floats, Runs, read_costs, read_groups


@dataclass(frozen=True, eq=False)
class TreeCuts:
    """Nodes of a hierarchy as candidates, every node before its descendants.

    Args:
        members: the values under each node.
        labels: the name of each node; a leaf's is its value's.
        parent: the node above, −1 for the root, shape (candidates,).
        depth: steps from the root, shape (candidates,).
    """

    members: Runs
    labels: tuple[str, ...]
    parent: Ints
    depth: Ints

    @property
    def n(self) -> int:
        return len(self.members.order)

    @cached_property
    def _children(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.labels]
        for node, above in enumerate(self.parent.tolist()):
            if above >= 0:
                found[above].append(node)
        return found

    @cached_property
    def _levels(self) -> list[Ints]:
        """Nodes of each depth, deepest first."""
        return [np.flatnonzero(self.depth == d) for d in range(int(self.depth.max()), -1, -1)]

    @cached_property
    def _leaf(self) -> NDArray[np.bool_]:
        return np.array([not below for below in self._children])

    def counts_of(self, per_value: NDArray[Any]) -> NDArray[Any]:
        """Sums of a table over every node: shape (n, …) to (candidates, …)."""
        return self.members.sums(per_value)

    def best(self, costs: Floats, groups: int | None = None) -> tuple[float, Ints] | None:
        """The cheapest cut, see ``Family.best``."""
        read = read_costs(costs, len(self.labels))
        wanted = read_groups(groups)
        chosen = self._any(read) if wanted is None else self._exactly(read, wanted)
        return None if chosen is None else (math.fsum(read[chosen].tolist()), chosen)

    def _any(self, costs: Floats) -> Ints | None:
        below = np.where(self._leaf, inf, 0.0)  # Σ of the best of the children
        for level in self._levels:
            value = np.minimum(costs[level], below[level])
            inner = self.parent[level] >= 0
            np.add.at(below, self.parent[level][inner], value[inner])
        if min(costs[0], below[0]) == inf:
            return None
        chosen, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            if costs[node] <= below[node]:
                chosen.append(node)
            else:
                waiting += reversed(self._children[node])
        return np.array(chosen, dtype=np.int64)

    def _exactly(self, costs: Floats, groups: int) -> Ints | None:
        if groups > self.n:
            return None
        # For each node the best total of s groups under it, and the same for its first children alone.
        value: list[Floats] = [np.empty(0)] * len(self.labels)
        partial: list[list[Floats]] = [[] for _ in self.labels]
        for node in range(len(self.labels) - 1, -1, -1):
            sums = [np.zeros(1)]
            for child in self._children[node]:
                sums.append(_convolved(sums[-1], value[child], groups))
            partial[node] = sums
            value[node] = sums[-1].copy() if len(sums) > 1 else np.full(2, inf)
            value[node][1] = costs[node]  # children are two or more, so one group is the node itself
        if len(value[0]) <= groups or value[0][groups] == inf:
            return None
        chosen, waiting = [], [(0, groups)]
        while waiting:
            node, left = waiting.pop()
            children = self._children[node]
            if left == 1:
                chosen.append(node)
                continue
            for place in range(len(children) - 1, -1, -1):
                before, own = partial[node][place], value[children[place]]
                splits = np.arange(max(0, left - len(own) + 1), min(left, len(before) - 1) + 1)
                first = int(splits[(before[splits] + own[left - splits]).argmin()])
                waiting.append((children[place], left - first))
                left = first
        return np.array(sorted(chosen), dtype=np.int64)


def _convolved(first: Floats, second: Floats, most: int) -> Floats:
    """min over a + b = s of first[a] + second[b], for s up to ``most``."""
    size = min(len(first) + len(second) - 1, most + 1)
    found = np.full(size, inf)
    for shift, value in enumerate(second[:size].tolist()):
        if value < inf:
            room = min(len(first), size - shift)
            found[shift : shift + room] = np.minimum(found[shift : shift + room], first[:room] + value)
    return found


def tree_cuts(values: Sequence[Hashable], parents: Mapping[Any, Any], top: Hashable = "*") -> TreeCuts:
    """The nodes of a hierarchy over the declared values.

    A node above a single other node holds the same values and is left out, the lower and more precise name stays. Where
    several nodes have nothing above them, ``top`` is put above them all.

    Args:
        values: the declared values, the leaves, in the order of their codes.
        parents: the node above each value and each node, several levels deep; a node that is not a key, or whose parent is
            None, has nothing above it.
    Raises:
        SpecificationError: a value twice, a value that is also above another one, a circle, a node named like ``top``.

    >>> family = tree_cuts(["a", "b", "c", "d"], {"a": "ab", "b": "ab", "c": "cd", "d": "cd", "ab": "all", "cd": "all"})
    >>> family.labels
    ('all', 'ab', 'a', 'b', 'cd', 'c', 'd')
    >>> value, chosen = family.best(np.array([9.0, 1, 1, 1, 5, 1, 1]))
    >>> value, [family.labels[i] for i in chosen]
    (3.0, ['ab', 'c', 'd'])
    """
    leaves = list(values)
    if not leaves:
        raise SpecificationError("hierarchy: at least one value.")
    if len(set(leaves)) < len(leaves):
        raise SpecificationError("hierarchy: every value once.")
    below: dict[Hashable, list[Hashable]] = {}
    roots: list[Hashable] = []
    seen: set[Hashable] = set()
    for leaf in leaves:
        node = leaf
        while node not in seen:
            seen.add(node)
            above = parents.get(node)
            if above is None:
                roots.append(node)
                break
            below.setdefault(above, []).append(node)
            node = above
        else:
            # Stopped at a node met before: on this very way up, it is a circle.
            if _circles(leaf, parents):
                raise SpecificationError(f"hierarchy: going up from {leaf!r} leads in a circle.")
    inner = [leaf for leaf in leaves if leaf in below]
    if inner:
        raise SpecificationError(
            f"hierarchy: {inner[0]!r} is a value and also stands above others; give the group another name."
        )
    if len(roots) > 1:
        if top in seen:
            raise SpecificationError(f"hierarchy: {top!r} names the group of all values; rename that node.")
        below[top] = roots
        roots = [top]
    return _numbered(roots[0], below, {leaf: code for code, leaf in enumerate(leaves)})


def _circles(start: Hashable, parents: Mapping[Any, Any]) -> bool:
    met: set[Hashable] = set()
    node: Hashable | None = start
    while node is not None and node not in met:
        met.add(node)
        node = parents.get(node)
    return node is not None


def _numbered(
    root: Hashable, below: Mapping[Hashable, list[Hashable]], code: Mapping[Hashable, int]
) -> TreeCuts:
    labels: list[str] = []
    parent: list[int] = []
    depth: list[int] = []
    order: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    waiting: list[tuple[Hashable | None, int]] = [
        (root, -1)
    ]  # None closes the node that is named by the number
    while waiting:
        node, above = waiting.pop()
        if node is None:
            ends[above] = len(order)
            continue
        while len(below.get(node, ())) == 1:
            node = below[node][0]
        number = len(labels)
        labels.append(str(node))
        parent.append(above)
        depth.append(depth[above] + 1 if above >= 0 else 0)
        starts.append(len(order))
        ends.append(len(order) + 1)
        if node in code:
            order.append(code[node])
            continue
        waiting.append((None, number))
        waiting += [(child, number) for child in reversed(below[node])]
    runs = Runs(*(np.array(part, dtype=np.int64) for part in (order, starts, ends)))
    return TreeCuts(runs, tuple(labels), np.array(parent, dtype=np.int64), np.array(depth, dtype=np.int64))
