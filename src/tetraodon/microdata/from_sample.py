"""Plans for tables of very many rows: groups and clusters found on a sample, channels solved and everything tested on all rows.

1. Rows are drawn without replacement, every set of them with the same probability (``noise``).
2. Clusters, and the groups of least leakage, are found on these rows. Which groups meet k, alpha, l and beta is decided by the
   counts of *all* rows, and the least number of donors is asked of the sample in proportion.
3. Every row of the table belongs to the cluster of the nearest centre, and every declared (or occurring) private value to a group,
   whether or not the sample met it. Rows of all are counted by value and cluster, and mean distances within each group are found
   from all rows (``group_sums``): the channels of these groups are solved again for them.

So the distortion is kept, k, alpha, l, beta and donors hold, and the leakage is told, of all rows; a sample decides which groups
and clusters these are, and how far it may mislead is stated beforehand (``sample_error``). That no other groups leak less was shown on
the sample alone, so that no bound over groups is stated; of these groups no channels leak less than ``Plan.channel_bound``, of those
that keep the distortion by the distances used here: where these are upper bounds, channels that they alone rule out may leak less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from ..axes import Ints
from ..errors import Refused
from ..noise import shuffled
from .data import Data, parts_of
from .features import Features
from .fit import best
from .group_sums import GroupSums, summed
from .joint import Found, channels, largest
from .plan import LN2, Plan, laws_of
from .prepared import Prepared
from .settings import Hybrid


def fit_on_sample(data: Data, settings: Hybrid) -> Plan:
    """Groups and channels for all rows, the groups found on ``settings.sample`` of them.

    Raises:
        SpecificationError: as ``fit``; too many values of too many groups and clusters.
        Refused: no groups of the sample meet the requirements within the distortion, or those that do keep it on no channels of all
            rows; the message holds no private count.
    """
    assert settings.sample is not None
    [order] = shuffled(np.arange(data.rows, dtype=np.int64))
    rows = np.sort(order[: settings.sample])
    fewer = max(1, int(Fraction(settings.donors * settings.sample, data.rows)))
    told = dict(settings.told) | {"donors": fewer, "sample": None}
    found = best(Prepared.of(data.take(rows), Hybrid(**told), tested=data))
    return _on_all(found, data, settings)


def _on_all(found: Plan, data: Data, settings: Hybrid) -> Plan:
    """The plan's groups and clusters, with channels for all rows."""
    clusters, sizes = found.prepared.clusters, found.sizes
    number, groups = clusters.number, prod(sizes)
    joint = found.joint_group(data.codes)
    labels = np.empty(data.rows, dtype=np.int64)

    def parts() -> Iterator[tuple[Features, Ints]]:
        for part in parts_of(data.rows):
            own = data.features.take(part)
            labels[part] = clusters.assign(own)
            yield own, joint[part] * number + labels[part]

    apart, is_exact = summed(parts(), found.prepared.data.features, settings.metric, groups, number)
    per_value = np.bincount(data.values, minlength=data.n_values)
    present = np.flatnonzero(per_value)
    place = np.full(data.n_values, -1, dtype=np.int64)
    place[present] = np.arange(len(present))
    counts = np.zeros(len(present) * number, dtype=np.int64)
    for part in parts_of(data.rows):
        counts += np.bincount(place[data.values[part]] * number + labels[part], minlength=len(counts))
    of_present = np.ravel_multi_index(
        tuple(g[c] for g, c in zip(found.group_of, np.unravel_index(present, data.sizes), strict=True)), sizes
    ).astype(np.int64)
    labels.flags.writeable = False
    prepared = Prepared(
        data, settings, replace(clusters, labels=labels), counts.reshape(1, len(present), number), present.astype(np.int64),
        GroupSums(of_present, apart, is_exact), data,
    )  # fmt: skip
    members = [present[of_present == g].astype(np.int64) for g in range(groups)]
    held = [m for m in members if len(m)]
    made = channels(prepared, held)
    if made is None:
        raise Refused(
            "hybrid.distortion: groups that were found on a sample of the rows do not keep it on all rows. Allow more distortion, a "
            "larger sample, more clusters, or fewer donors."
        )
    pieces, solved = made
    naming = sum(prepared.grouping(m) for m in held)
    where = iter(pieces)
    at_all = tuple(next(where) if len(m) else () for m in members)
    whole = Found(
        (), tuple(members), at_all, solved.channels, solved.leak, solved.distortion, naming, 0.0, naming + solved.bound,
        largest(solved.multiplier),
    )  # fmt: skip
    sampled = {
        "rows": float(found.prepared.data.rows), "leakage": found.leakage, "distortion": found.figures["distortion"],
    }  # fmt: skip
    return Plan(
        settings,
        data.columns,
        found.groups,
        laws_of(prepared, whole),
        prepared,
        None,
        found.coarse,
        (),
        whole.bound / LN2,
        sampled,
    )
