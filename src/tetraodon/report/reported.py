"""What the rows of a release report, drawn: a map of places, a chart of everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..attributes import Categorical
from .answers import Axis, Group, View, axis_of
from .charts import counts
from .density import LABELLED, Ground, Ints, counted_rows, ground
from .document import ChannelText, RowRelease
from .frames import Drawing
from .maps import density
from .svg import drawn
from .words import clean, counted, listed, safe, short

THINGS = "rows"


@dataclass(frozen=True, eq=False)
class Reported:
    """One channel of a release, with how many published rows report each of its cells."""

    channel: ChannelText
    ground: Ground
    counts: Ints

    @property
    def title(self) -> str:
        """The attributes that the channel replaces."""
        return clean(listed(self.channel.attributes, 12))

    @property
    def is_map(self) -> bool:
        """Whether they are places on a map."""
        return self.ground.field is not None and self.ground.field.is_map

    @property
    def is_share(self) -> bool:
        """Whether all values are equally far from each other, so that a distance is the share of those that change."""
        evidence = self.channel.evidence
        far = None if evidence is None else evidence.distortion
        parts = list(self.ground.domain.values())
        plain = len(parts) == 1 and isinstance(parts[0], Categorical) and not parts[0].ordered
        return plain and not self.channel.unit and far is not None and far <= 1


def reported(entry: RowRelease, domain: Mapping[str, Mapping[str, Any]]) -> tuple[Reported, ...]:
    """Every channel of a release with the counts of its cells.

    Raises:
        SpecificationError: the file does not hold what the manifest says.
    """
    found = []
    for channel in entry.channels:
        cells = ground(channel, domain)
        found.append(Reported(channel, cells, counted_rows(entry, channel, cells.domain)))
    return tuple(found)


def picture(
    seen: Reported, domain: Mapping[str, Mapping[str, Any]], prefix: str, room: tuple[float, float]
) -> str:
    """The figure of what was reported. Every mark is a count of published rows, which says what they report, not what is true.

    Args:
        room: for a map.
    """
    if seen.ground.field is not None:
        svg, notes = _map(seen, room)
        what = "reported places" if seen.is_map else "reported values"
    else:
        shown = _chart(seen, domain)
        svg, notes = drawn(shown.chart, shown.label, prefix), shown.notes
        what = "reported values"
    told = "".join(f" <span>{safe(note)}</span>" for note in notes)
    truth = "where the records were" if seen.is_map else "what was true"
    return (
        f'<figure class="data">{svg}<figcaption><b>{safe(seen.title)}</b>, {what}: what the published rows say after the '
        f"channel, not {truth}.{told}</figcaption></figure>"
    )


def _map(seen: Reported, room: tuple[float, float]) -> tuple[str, tuple[str, ...]]:
    field = seen.ground.field
    assert field is not None
    grid = seen.ground.grid(seen.counts)
    total, beside = int(seen.counts.sum()), int(seen.counts.sum() - grid.sum())
    rows, columns = field.shape
    label = (
        f"Map of {counted(int(grid.sum()), 'published row')} in {rows:,} × {columns:,} cells of {seen.title}."
    )
    if grid.any():
        most = int(np.argmax(seen.counts if not beside else _ordinary(seen)))
        label += f" Most, {int(seen.counts[most]):,}, report the cell {seen.ground.label(most)}."
    drawn_map = density(field, grid, THINGS, label, room)
    notes = list(drawn_map.notes)
    if beside:
        notes.append(f"Not on the map: {beside:,} of {total:,} rows, which report no place.")
    return drawn_map.svg, tuple(notes)


def _ordinary(seen: Reported) -> Ints:
    """Counts with those of special cells left out."""
    found = seen.counts.copy()
    for cell in np.flatnonzero(found):
        if seen.ground.place(int(cell)) is None:
            found[cell] = 0
    return found


def _chart(seen: Reported, domain: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Bars or steps of counts."""
    attributes = list(seen.ground.domain.items())
    cells = np.arange(len(seen.counts))
    if len(attributes) == 1 and len(cells) <= LABELLED:
        [(name, attribute)] = attributes
        axis = axis_of(name, tuple(attribute.label(int(c)) for c in cells), domain[name])
    else:
        # Too many to stand in a row: those that were reported, which the chart cuts to the largest.
        cells = np.flatnonzero(seen.counts) if prod(seen.ground.domain.shape) > 400 else cells
        labels = tuple(short(seen.ground.label(int(c)), 60) for c in cells)
        axis = Axis(seen.title, "", labels, len(labels), False)
    amounts = seen.counts[cells].astype(np.float64)
    return counts(View(THINGS, "", axis, "", (Group("", amounts, amounts, amounts),)), "")
