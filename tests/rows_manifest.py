"""A folder as a release of rows leaves it, with numbers that are right for its channels, and hostile names where asked for."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tetraodon as td
from tetraodon.channels.geometry import Geometry
from tetraodon.channels.named import planar_geometric, randomised_response
from tetraodon.leakage.measures import bayes_error, entropy, information
from tetraodon.publish import publish

EVIL = '</text><script>alert("1")</script>\n& "q"'
REGIONS = ["north", "mid & <east>", EVIL]
JOBS = ["nurse", "teacher", 'cook "R&D"', EVIL, "__proto__"]
CHANNELS = ("home", "spend", "job", "plane")

DOMAIN = td.Domain(
    home=td.Point("lat", "lon", box=(("40.70", "40.80"), ("-74.02", "-73.93")), cell="350 m"),
    region=td.Categorical(REGIONS),
    spend=td.Numeric(0, 500, cells=100, unit="USD"),
    job=td.Categorical(JOBS, other="none of <these>", missing="public"),
    x=td.Numeric(0, 12, cells=12, unit="km"),
    y=td.Numeric(-4, 4, cells=8, unit="km"),
)
POLICY = td.Policy(
    DOMAIN,
    secrets=td.AttributeWise(
        home=td.Within("1 km"), spend=td.Within(50), job=td.Full(), x=td.Within(2), y=td.Within(2)
    ),
)


@dataclass(frozen=True)
class Moved:
    """A channel with the records that went through it.

    Attributes:
        names: its attributes.
        kind, channel, asked: as a manifest tells it.
        cells: of the true values.
    """

    names: tuple[str, ...]
    kind: str
    channel: Any
    asked: Mapping[str, Any] | None
    cells: np.ndarray


def records(count: int, seed: int = 3) -> dict[str, np.ndarray]:
    """Cells of people about a long island, by attribute."""
    rng = np.random.default_rng(seed)
    along = rng.beta(2, 2, count)
    lat = 40.705 + 0.085 * along + rng.normal(0, 0.004, count)
    lon = -74.012 + 0.055 * along + rng.normal(0, 0.006, count)
    home = DOMAIN["home"].cells(np.stack([lat, lon], axis=-1))
    return {
        "home": home,
        "region": rng.integers(0, len(REGIONS), count),
        "spend": DOMAIN["spend"].cells(np.clip(rng.gamma(2, 60, count), 0, 500)),
        "job": rng.choice(7, count, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.03, 0.02]),
        "plane": DOMAIN["x"].cells(rng.normal(6, 2, count).clip(0, 12)) * 8 + DOMAIN["y"].cells(rng.normal(0, 1.5, count).clip(-4, 4)),
    }  # fmt: skip


def moved(name: str, people: Mapping[str, np.ndarray]) -> Moved:
    """One of ``CHANNELS`` over people."""
    names = ("x", "y") if name == "plane" else (name,)
    domain = DOMAIN.select(*names)
    if name == "job":
        return Moved(
            names,
            "randomised-response",
            randomised_response(domain, 2),
            {"epsilon": "2", "per": None},
            people[name],
        )
    per, epsilon = {"home": ("500 m", "2"), "spend": ("20 USD", "1"), "plane": ("1 km", "1.5")}[name]
    channel = planar_geometric(domain, epsilon, per)
    return Moved(names, "planar-geometric", channel, {"epsilon": epsilon, "per": per}, people[name])


def drawn(one: Moved, seed: int = 5) -> np.ndarray:
    """An output for every record (a simulation: what is published is drawn elsewhere)."""
    rng = np.random.default_rng(seed)
    matrix = one.channel.rows(np.arange(one.channel.domain.size))
    limits = matrix.cumsum(axis=1)
    limits[:, -1] = 1.0
    return np.array(
        [np.searchsorted(limits[c], u) for c, u in zip(one.cells, rng.random(len(one.cells)), strict=True)]
    )


def columns(domain: td.Domain, cells: np.ndarray) -> dict[str, list[Any]]:
    """Published columns of cells, by the names in the table."""
    found: dict[str, list[Any]] = {}
    for (name, attribute), codes in zip(domain.items(), domain.decode(cells), strict=True):
        if isinstance(attribute, td.Point):
            row, column = np.divmod(codes, attribute.shape[1])
            for side, at, title in zip(attribute.sides, (row, column), attribute.columns(name), strict=True):
                found[title] = [float(side.low + side.width * (2 * int(c) + 1) / 2) for c in at]
        elif isinstance(attribute, td.Numeric):
            found[name] = [float(attribute.low + attribute.width * (2 * int(c) + 1) / 2) for c in codes]
        else:
            found[name] = [None if c == attribute.missing_cell else attribute.label(int(c)) for c in codes]
    return found


def evidence(one: Moved, secrets: int, kind: str) -> dict[str, Any]:
    """What can be said of a channel, for people who live in a few places each."""
    domain = one.channel.domain
    n = domain.size
    rng = np.random.default_rng(11)
    law = np.bincount(one.cells, minlength=n) / len(one.cells)
    # Who: everybody has his own part of the values.
    share = rng.dirichlet(np.full(secrets, 0.25), n)
    joint = (law[:, None] * share).T
    matrix = one.channel.rows(np.arange(n))
    place = Geometry(domain)
    try:
        cost = place.matrix(None)
        unit = place.unit
    except td.errors.SpecificationError:
        cost, unit = 1.0 - np.eye(n), None
    distortion = float(law @ (matrix * cost).sum(axis=1))
    bits, plain = information(joint @ matrix), information(joint)
    grid = np.linspace(0.15, 1.6, 8)
    own = bits if not kind.startswith("Measured") else 1.8 * bits
    least = 1.0 if kind.startswith("Measured") else 0.55
    optimum = [float(min(plain, least * bits * np.exp(1.6 * (1 - g)))) for g in grid]
    held = np.flatnonzero(law)
    spots = held[np.linspace(0, len(held) - 1, min(6, len(held))).astype(int)]
    error = bayes_error(joint @ matrix)
    guess, without = bayes_error(joint.sum(axis=1, keepdims=True)), bayes_error(joint)
    told = (
        f"an attacker who sees the output names the right one of {secrets} people {100 * (1 - error):.0f} % of the time; "
        f"guessing gives {100 * (1 - guess):.0f} %; without protection {100 * (1 - without):.0f} %"
    )
    first = "Proved: epsilon 2 for each output drawn, whoever looks and whatever he knows."
    if kind.startswith("Measured"):
        first = "Nothing is proved: the channel was fitted on private rows, so what comes out depends on all of them."
    return {
        "prior": "the values in the table of secrets", "distortion": distortion, "unit": unit, "used_outputs": int((law @ matrix > 1e-6).sum()),
        "leakage": {
            "secret": "user", "bits": bits, "prior_bits": entropy(joint.sum(axis=1)), "plain_bits": plain,
            "bayes_error": error, "guessing_error": guess, "plain_error": without, "secrets": secrets,
        },
        "certificate": {"kind": "information", "value": bits, "bound": bits - 0.0004, "unit": "bits", "gap": 0.0004},
        "words": [
            first, f"Certified: {bits:.4g} bits, no channel gives less than {bits - 0.0004:.4g} (certified gap 0.0004 bits).",
            f"{kind}: {told}.",
            f"{kind}: of the {entropy(joint.sum(axis=1)):.2f} bits about the secret the output tells {bits:.2f} bits; no output tells 0 bits, the value itself {plain:.2f} bits.",
        ],
        "curve": [
            {"name": "planar geometric", "distortion": [float(distortion * g) for g in grid],
             "leakage": [float(min(plain, 1.0 * own * np.exp(1.3 * (1 - g)))) for g in grid], "bound": None},
            {"name": "planar Laplace", "distortion": [float(distortion * g) for g in grid],
             "leakage": [float(min(plain, 1.08 * own * np.exp(1.3 * (1 - g)))) for g in grid], "bound": None},
            {"name": "exponential", "distortion": [float(distortion * g) for g in grid],
             "leakage": [float(min(plain, 1.2 * own * np.exp(1.3 * (1 - g)))) for g in grid], "bound": None},
            {"name": "least leaking (certified)", "distortion": [float(distortion * g) for g in grid], "leakage": optimum,
             "bound": [v - 0.0001 for v in optimum]},
        ],
        "rows": [
            {"cell": int(c), "label": ", ".join(domain.labels(int(c))),
             "outputs": [[int(z), float(matrix[c, z])] for z in np.flatnonzero(matrix[c] >= 1e-4)[:300]]}
            for c in spots
        ],
    }  # fmt: skip


def channel_spec(
    one: Moved, told: Mapping[str, Any] | None, source: str = "none", file: str | None = None
) -> dict[str, Any]:
    """One channel as a manifest tells it."""
    domain, place = one.channel.domain, Geometry(one.channel.domain)
    grid = list(place.shape) if place.is_grid else None
    return {
        "attributes": list(one.names), "columns": [c for n, a in domain.items() for c in a.columns(n)], "kind": one.kind,
        "name": one.kind.replace("-", " "), "asked": one.asked, "realised": None if source == "private" else 3.9999,
        "source": source, "private": source == "private", "cells": domain.size, "shape": grid,
        "unit": place.unit, "file": file, "evidence": told,
    }  # fmt: skip


def entry(
    folder: Path,
    name: str,
    channels: Sequence[tuple[Moved, dict[str, Any]]],
    keep: Mapping[str, np.ndarray] | None = None,
    guarantee: str = "proved",
    forms: Sequence[str] = ("parquet", "csv"),
) -> dict[str, Any]:
    """Write the files of a release, and return its entry."""
    keep = {} if keep is None else keep
    told: dict[str, list[Any]] = {}
    for one, _ in channels:
        told |= columns(one.channel.domain, drawn(one))
    for kept, cells in keep.items():
        told[kept] = [DOMAIN[kept].label(int(c)) for c in cells]
    rows = len(next(iter(told.values())))
    files = {form: write(folder / f"{name}.{form}", told) for form in forms}
    for one, spec in channels:
        if spec["file"] is not None:
            one.channel.save(folder / spec["file"])
            files["channel"] = listed(folder / spec["file"])
    proved = guarantee == "proved"
    titles = [", ".join(one.names) for one, _ in channels]
    lines = [f"the {n} of every record, in the same row as its replaced values" for n in keep]
    if not proved:
        lines.append(f"rows of {', '.join(titles)} through a channel without a proved bound")
    count = len(channels)
    return {
        "kind": "rows", "name": name, "title": f"rows of {', '.join(titles)}",
        "query": {"rows": [list(one.names) for one, _ in channels], "keep": list(keep)}, "guarantee": guarantee,
        "spent": {"unit": "epsilon", "amount": "4" if proved else "0"},
        "mechanism": {"channels": [one.kind for one, _ in channels]},
        "mechanism_name": "; ".join(one.kind.replace("-", " ") for one, _ in channels),
        "cost": {
            "value": "4" if proved else "0", "rule": "the largest move of the edges" if proved else "no proved bound: measured",
            "witness": [{channels[0][0].names[0]: "a <1>"}, {channels[0][0].names[0]: "b"}] if proved else None,
        },
        "rows": rows, "attributes": list(told), "kept": list(keep), "disclosed_exactly": lines,
        "per_person": {
            "epsilon": str(8 * count), "places": count, "rows": 2, "each": "4",
            "text": f"epsilon {8 * count} per person = {count} place{'s' * (count > 1)} × 2 rows × 4",
        } if proved else None,
        "permanent": None, "channels": [spec for _, spec in channels], "ledger_row": 3, "records": rows, "files": files,
    }  # fmt: skip


def write(path: Path, told: Mapping[str, list[Any]]) -> dict[str, str]:
    """A table as Parquet or CSV; returns its path and digest."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table(dict(told)), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow(told)
            out.writerows(["" if v is None else v for v in row] for row in zip(*told.values(), strict=True))
    return listed(path)


def listed(path: Path) -> dict[str, str]:
    """Name and digest of a file."""
    return {"path": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def manifest(
    folder: Path,
    count: int,
    make: Callable[[Path, dict[str, np.ndarray]], list[dict[str, Any]]],
    answers: bool,
) -> Path:
    """A manifest with row releases, beside answers where asked for.

    Args:
        make: the entries of row releases, from the folder and the people.
    """
    people = records(count)
    rows = {
        "lat": np.full(count, 40.75), "lon": np.full(count, -73.98), "region": np.array(REGIONS)[people["region"]],
        "spend": np.full(count, 10.0), "job": np.array([*JOBS, "?", None], dtype=object)[people["job"]],
        "x": np.full(count, 5.0), "y": np.full(count, 1.0),
    }  # fmt: skip
    session = td.Session(
        td.Table(rows, DOMAIN, name="check-ins"), POLICY, epsilon="10", ledger=folder.parent / "rows.ledger"
    )
    release = session.release(td.Histogram("job"), "1", name="jobs")
    path = publish(folder, [(release, ("csv",))], session.context)
    spec = json.loads(path.read_text())
    made = make(folder, people)
    spec["releases"] = [*(spec["releases"] if answers else []), *made]
    lines = [line for e in made for line in e["disclosed_exactly"]]
    spec["budget"]["outside"] = list(dict.fromkeys([*spec["budget"]["outside"], *lines]))
    spec["budget"] |= (
        {"spent": "5", "remaining": "5", "elsewhere": "0"}
        if any(e["spent"]["amount"] != "0" for e in made)
        else {}
    )
    path.write_text(json.dumps(spec, ensure_ascii=False))
    return path


COMPUTED = "Computed for a public table"
MEASURED = "Measured on private rows, for this attacker and this table alone"


def all_kinds(folder: Path, people: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """A map with a kept attribute, a measured map, one without evidence, numbers, categories and a plane, two at once."""
    each = {name: moved(name, people) for name in CHANNELS}

    def spec(name: str, **more: Any) -> tuple[Moved, dict[str, Any]]:
        return each[name], channel_spec(each[name], evidence(each[name], 6, COMPUTED), **more)

    home = each["home"]
    fitted = channel_spec(home, evidence(home, 21, MEASURED), source="private") | {
        "kind": "least-leaking",
        "name": "least leaking",
        "asked": None,
    }
    hidden = channel_spec(home, None, source="private") | {
        "kind": "least-leaking",
        "name": "least leaking",
        "asked": None,
    }
    return [
        entry(folder, "places", [spec("home", file="places.channel.npz")], {"region": people["region"]}),
        entry(folder, "fitted", [(home, fitted)], guarantee="measured", forms=("csv",)),
        entry(folder, "hidden", [(home, hidden)], guarantee="measured", forms=("parquet",)),
        entry(folder, "spending", [spec("spend")], forms=("csv",)),
        entry(folder, "work", [spec("job", source="public")], {"region": people["region"]}),
        entry(folder, "two", [spec("plane"), spec("job")], {"region": people["region"]}, forms=("csv",)),
    ]  # fmt: skip
