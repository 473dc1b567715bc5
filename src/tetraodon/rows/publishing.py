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
from .release import RowRelease
from .strategy import Part


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
            told[at] = _evidence(release, part, part.channel)
    return entry_of(release, found, told, saved)


def _evidence(release: RowRelease, part: Part, channel: Channel) -> dict[str, Any]:
    declared = part.declared
    metric = metric_of(declared, part.domain)
    if declared is not None and declared.is_of_rows:
        secret = str(declared.told["secret"])
        joint = np.asarray(release.joints[secret])
        return evidence(
            channel, joint=joint, source="private", metric=metric, secret=secret, people=f"values of {secret}"
        )
    prior = (
        next((release.answers[name] for name in declared.needs if name in release.answers), None)
        if declared
        else None
    )
    return evidence(
        channel, prior=prior, source=channel.source if prior is not None else "public", metric=metric
    )
