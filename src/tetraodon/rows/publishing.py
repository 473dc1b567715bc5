"""Files and manifest entry of released rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..channels.channel import Channel
from ..channels.geometry import unit_of
from ..channels.then import Then
from ..channels.words import attacker, bits, distortion_words
from ..files import sha256
from ..metrics import Metric
from .declared import metric_of
from .entry import entry_of
from .evidence import evidence
from .losses import Part
from .release import RowRelease

LEARNED = (
    "Nothing is proved: the channel itself was learned from these rows, so what comes out for each row depends on all of them, and "
    "so does the channel."
)
TABLE = "Computed for a released table"


def targets(release: RowRelease) -> dict[int, str]:
    """Endings of the files of saved channels, by the part's place. What was fitted on private rows is not saved, but for a channel
    learned from them whose evidence is to be published."""
    parts = release.strategy.parts
    saved = [i for i, p in enumerate(parts) if p.channel is not None and _is_saved(release, p)]
    if len(parts) == 1:
        return dict.fromkeys(saved, "channel.npz")
    return {i: f"channel-{i + 1}.npz" for i in saved}


def _is_saved(release: RowRelease, part: Part) -> bool:
    assert part.channel is not None
    return not part.channel.is_private or (is_learned(part) and release.publishes_evidence)


def is_learned(part: Part) -> bool:
    """Whether a part's channel was learned, from the rows or from what a floor let out of them."""
    return part.declared is not None and part.declared.kind == "learned"


def _shown(part: Part) -> Channel:
    """The channel as it is saved: of one that was learned without the counts that its certificate was worked out from, which
    nobody asked to publish."""
    assert part.channel is not None
    proof = part.channel.certificate
    if not is_learned(part) or proof is None:
        return part.channel
    return replace(part.channel, certificate=replace(proof, arrays={}))


def row_entry(release: RowRelease, stage: Path, files: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Write the channels that may be shown, and say what the manifest says.

    Evidence that was computed from private rows is left out unless the request says that it is to be published.
    """
    found, saved, told = dict(files), dict[int, str](), dict[int, Any]()
    for at, ending in targets(release).items():
        path = stage / f"{release.name}.{ending}"
        _shown(release.strategy.parts[at]).save(path)
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
    if declared is not None and declared.floor is not None:
        return _after_floor(release, at, part, metric)
    if declared is not None and declared.is_of_rows:
        secret = str(declared.told["secret"])
        joint = np.asarray(release.joints[at])
        found = evidence(
            channel, joint=joint, source="private", metric=metric, secret=secret, people=f"values of {secret}"
        )
        if declared.kind == "learned":
            found["words"][0] = LEARNED
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


def _after_floor(release: RowRelease, at: int, part: Part, metric: Metric | None) -> dict[str, Any]:
    """Of both steps together for values that lie as the floor let them out, and of the learned one for the secret.

    All of it is computed from what came out of the floor, which was charged, and from an attribute that is no secret.
    """
    assert part.channel is not None and part.declared is not None and isinstance(part.channel.law, Then)
    joint, secret = np.asarray(release.joints[at], dtype=np.float64), str(part.declared.told["secret"])
    proof, law = part.channel.certificate, part.channel.law.second
    learned = Channel(part.domain, law, part.domain, "learned", source="released", certificate=proof)
    found = evidence(
        replace(part.channel, certificate=None), prior=joint.sum(axis=0), source="released", metric=metric,
        epsilon=part.channel.epsilon(part.secrets),
    )  # fmt: skip
    seen = attacker(joint / joint.sum(), learned.pushed(joint))
    far = distortion_words(learned.distortion(joint.sum(axis=0), metric), unit_of(metric, part.domain))
    words = found["words"]
    found["words"] = [
        words[0],
        f"Proved: the second step was learned from what the first one let out, and from {secret}, which no secret of this policy "
        "changes; so it is post-processing and loses nothing more.",
        "Nothing is certified: how far the second step is from the best possible is not known."
        if proof is None
        else f"Certified: of {secret} the second step tells {proof.value:.4g} bits; no channel on what the first one let out, at the same "
        f"distance from it, tells less than {proof.bound:.4g}.",
        *words[2:],
        f"{TABLE}: of the {bits(seen.unknown)} about {secret} what the first step let out tells {bits(seen.ceiling)}, what is "
        f"published {bits(seen.leakage)}; the second step moves values on, so that {far.replace('the value', 'what the first let out')}.",
    ]
    return found | {"prior": "the values as the first step let them out"}
