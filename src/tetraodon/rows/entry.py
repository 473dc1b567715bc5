"""What a manifest says about released rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..exact import show
from .losses import Part, realised
from .release import RowRelease
from .strategy import words_of


def entry_of(
    release: RowRelease,
    files: Mapping[str, Mapping[str, str]],
    evidence: Mapping[int, Any],
    saved: Mapping[int, str],
) -> dict[str, Any]:
    """The entry of one release.

    Args:
        files: path and digest of each published file.
        evidence: what can be said of each channel, by the part's place; left out where it is private.
        saved: file of each saved channel, by the part's place.
    """
    strategy = release.strategy
    query, cost = release.query, release.cost
    return {
        "kind": "rows",
        "name": release.name,
        "title": query.title,
        "query": query.to_spec(),
        "guarantee": release.guarantee,
        "spent": {"unit": release.spent.unit, "amount": show(release.spent.amount)},
        "mechanism": release.mechanism.to_spec(),
        "mechanism_name": release.mechanism.words,
        "cost": {
            "value": show(cost.value),
            "rule": cost.rule,
            "witness": None if cost.witness is None else list(cost.witness),
        },
        "rows": release.held.count,
        "attributes": release.held.columns,
        "kept": list(query.keep),
        "disclosed_exactly": release.disclosures(),
        "per_person": strategy.per_person,
        "permanent": None
        if query.permanent is None
        else {"id": query.permanent.id, "epoch": query.permanent.epoch},
        "channels": [_channel(p, evidence.get(i), saved.get(i)) for i, p in enumerate(strategy.parts)],
        "ledger_row": release.charge,
        "records": release.total,
        "files": {form: dict(f) for form, f in files.items()},
    }


def _channel(part: Part, evidence: Any, saved: str | None) -> dict[str, Any]:
    channel = part.channel
    assert channel is not None
    asked = channel.asked
    grid = channel.place.shape if channel.place.is_grid else None
    private = channel.is_private
    return {
        "attributes": list(part.names),
        "columns": [c for name, a in part.domain.items() for c in a.columns(name)],
        "kind": part.declared.kind if part.declared else str(channel.settings.get("kind", "table")),
        "name": channel.name if part.declared is None else words_of(part.declared),
        "asked": None if asked is None else {"epsilon": show(asked.epsilon), "per": asked.per},
        "realised": None if private else realised(channel, part.secrets),
        "source": channel.source,
        "private": private,
        "cells": channel.domain.size,
        "shape": None if grid is None else list(grid),
        "unit": channel.place.unit,
        "file": saved,
        "evidence": evidence,
    }
