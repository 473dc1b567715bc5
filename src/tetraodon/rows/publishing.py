"""Files and manifest entry of released rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..channels.channel import Channel
from ..files import sha256
from .declared import metric_of
from .entry import entry_of
from .evidence import evidence
from .losses import Part
from .release import RowRelease


def targets(release: RowRelease) -> dict[int, str]:
    """Endings of the files of saved channels, by the part's place. What was fitted on private rows is not saved."""
    parts = release.strategy.parts
    saved = [i for i, p in enumerate(parts) if p.channel is not None and not p.channel.is_private]
    if len(parts) == 1:
        return dict.fromkeys(saved, "channel.npz")
    return {i: f"channel-{i + 1}.npz" for i in saved}


def row_entry(release: RowRelease, stage: Path, files: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Write the channels that may be shown, and say what the manifest says.

    Evidence that was computed from private rows is left out unless the request says that it is to be published.
    """
    found, saved, told = dict(files), dict[int, str](), dict[int, Any]()
    for at, ending in targets(release).items():
        path = stage / f"{release.name}.{ending}"
        channel = release.strategy.parts[at].channel
        assert channel is not None
        channel.save(path)
        saved[at] = path.name
        found[ending.removesuffix(".npz")] = {"path": path.name, "sha256": sha256(path)}
    for at, part in enumerate(release.strategy.parts):
        assert part.channel is not None
        if not part.channel.is_private or release.publishes_evidence:
            told[at] = _evidence(release, at, part, part.channel)
    return entry_of(release, found, told, saved)


def _evidence(release: RowRelease, at: int, part: Part, channel: Channel) -> dict[str, Any]:
    declared = part.declared
    metric = metric_of(declared, part.domain)
    epsilon = channel.epsilon(part.secrets) if release.guarantee == "proved" else None
    if declared is not None and declared.is_of_rows:
        secret = str(declared.told["secret"])
        joint = np.asarray(release.joints[at])
        found = evidence(
            channel, joint=joint, source="private", metric=metric, secret=secret, people=f"values of {secret}"
        )
    else:
        names = [n for n in declared.needs if n in release.answers] if declared else []
        prior = release.answers[names[0]] if names else None
        source = channel.source if names else "public"
        found = evidence(channel, prior=prior, source=source, metric=metric, epsilon=epsilon)
    if release.guarantee == "measured" and found["words"] and not channel.is_private:
        found["words"][0] = (
            "Nothing is proved: the release was asked for without a bound, and charged nothing."
        )
    return found
