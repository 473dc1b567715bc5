"""What the command line says of rows, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..channels.channel import Channel
from ..channels.geometry import unit_of
from ..exact import show
from ..metrics import Discrete
from ..plans import number
from ..sensitivity import Sensitivity
from ..terminal import text_of
from .declared import metric_of
from .losses import realised
from .strategy import RowStrategy, name_of

MEASURED = "no proved bound: what leaks is measured on these rows alone"


@dataclass(frozen=True, eq=False)
class RowPlan:
    """What a release of rows would cost and do. Nothing was read or spent."""

    strategy: RowStrategy

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that could be made from public facts."""
        return tuple(p.channel for p in self.strategy.parts if p.channel is not None)

    @property
    def cost(self) -> Sensitivity:
        """What is charged, with an edge that attains it where one is known."""
        return self.strategy.cost

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form."""
        return planned_rows(self.strategy.query.title, self.strategy, False)

    def __repr__(self) -> str:
        return text_of(rows_text(self.to_spec()))


def planned_rows(name: str, strategy: RowStrategy, released: bool) -> dict[str, Any]:
    """A planned release of rows in plain values, from public inputs alone."""
    return {
        "name": name,
        "title": strategy.query.title,
        "epsilon": show(strategy.spent.amount),
        "guarantee": strategy.guarantee,
        "chosen": strategy.mechanism.words,
        "channels": [_channel(strategy, i) for i in range(len(strategy.parts))],
        "kept": list(strategy.query.keep),
        "per_person": strategy.per_person,
        "disclosed_exactly": strategy.disclosed(),
        "released": released,
        "mechanisms": [],
        "notes": [],
    }


def _channel(strategy: RowStrategy, at: int) -> dict[str, Any]:
    part = strategy.parts[at]
    channel = part.channel
    told: dict[str, Any] = {
        "attributes": list(part.names),
        "name": name_of(part),
        "epsilon": None if part.epsilon is None else show(part.epsilon),
        "realised": None,
        "distortion": None,
        "unit": None,
        "is_share": False,
        "waits": channel is None or strategy.has_floor,
    }
    if channel is None or channel.is_private:
        return told
    if strategy.has_floor:
        return told | {"realised": realised(channel, part.secrets)}
    metric = metric_of(part.declared, part.domain)
    told["realised"] = realised(channel, part.secrets)
    told |= {
        "distortion": channel.distortion("uniform", metric),
        "unit": unit_of(metric, channel.domain),
        "is_share": isinstance(metric, Discrete),
    }
    return told


def rows_text(told: Mapping[str, Any]) -> list[str]:
    """``planned_rows`` as text."""
    price = f"epsilon {told['epsilon']}" if told["guarantee"] == "proved" else MEASURED
    lines = [f"{told['name']}: {told['title']}, {price} (every record, in random order)"]
    for channel in told["channels"]:
        away = ""
        if channel["distortion"] is not None:
            far = f"{number(channel['distortion'])} {channel['unit'] or 'units'} away on average"
            if channel["is_share"]:
                far = f"{channel['distortion']:.0%} of values change"
            away = f", {far} if all values are equally likely"
        if channel["waits"]:
            away = ", made when the answers or counts that it needs are there"
        lines.append(f"  → {', '.join(channel['attributes'])}: {channel['name']}{away}")
    if told["per_person"]:
        lines.append(f"    {told['per_person']['text']}")
    if told["kept"]:
        lines.append(f"    leaves as it is, and may single people out: {', '.join(told['kept'])}")
    if told["released"]:
        lines.append(
            "    released already in this edition: release refuses it; --again draws and charges afresh"
        )
    return lines


def released_rows_text(entry: Mapping[str, Any]) -> list[str]:
    """The manifest's entry of released rows as text."""
    files = ", ".join(f["path"] for f in entry["files"].values())
    paid = f"epsilon {entry['spent']['amount']}" if entry["guarantee"] == "proved" else MEASURED
    if entry["guarantee"] == "proved" and entry["spent"]["amount"] == "0":
        paid = "nothing more than its permanent answers were charged before"
    lines = [f"{entry['name']}: {paid}, {entry['rows']:,} rows, {entry['mechanism_name']} → {files}"]
    if entry["per_person"]:
        lines.append(f"  {entry['per_person']['text']}")
    for channel in entry["channels"]:
        told = channel["evidence"]
        if told is None:
            lines.append(
                f"  {', '.join(channel['attributes'])}: figures come from private rows and are not published "
                "(publish_evidence = true would)"
            )
            continue
        lines += [f"  {', '.join(channel['attributes'])}: {sentence}" for sentence in told["words"]]
    return lines
