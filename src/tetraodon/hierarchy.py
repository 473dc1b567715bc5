"""Levels above the values of a categorical attribute: which group each code, and each group in turn, belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import SpecificationError
from .listings import levels
from .reading import kind_of

Parents = tuple[tuple[str, str], ...]


def parents_of(told: object, values: Sequence[Any]) -> Parents:
    """(code, parent) of every declared value and of every level above one, in the order of the codes' texts.

    What the hierarchy says of other codes is left out, so that one file may serve many attributes.

    Args:
        told: a mapping from codes to parents, or the path of a CSV file with the columns code and parent. A parent may be a code
            itself, with a parent of its own; one that is none is a root.
        values: the declared values.

    Raises:
        SpecificationError: a value without a parent, or that stands above another; a code with two parents; levels that go
            round in a circle. The message begins with "hierarchy" and names declared codes alone.

    >>> parents_of({"a": "vowel", "b": "consonant", "vowel": "letter", "consonant": "letter", "1": "digit"}, ["a", "b"])
    (('a', 'vowel'), ('b', 'consonant'), ('consonant', 'letter'), ('vowel', 'letter'))
    """
    pairs = levels(Path(told)) if isinstance(told, str | os.PathLike) else _of_mapping(told)
    found = dict(pairs)
    if len(found) < len(set(pairs)):
        raise SpecificationError("hierarchy: a code has two parents; it belongs to one group of a level.")
    leaves = [str(v) for v in values]
    above = set(found.values())
    kept: dict[str, str] = {}
    for leaf in leaves:
        if leaf in above:
            raise SpecificationError(
                f"hierarchy: the value {leaf!r} stands above another code; give the levels names of their own."
            )
        if leaf not in found:
            raise SpecificationError(f"hierarchy: the value {leaf!r} has no parent; give every value one.")
        way: list[str] = []
        code = leaf
        while code in found and code not in kept:  # what is kept was followed to its root before
            if code in way:
                raise SpecificationError(
                    f"hierarchy: the levels above the value {leaf!r} go round in a circle; the last one has no parent."
                )
            way.append(code)
            code = found[code]
        kept |= {step: found[step] for step in way}
    return tuple(sorted(kept.items()))


def _of_mapping(told: object) -> list[tuple[str, str]]:
    if not isinstance(told, Mapping):
        raise SpecificationError(
            f"hierarchy: a table of codes and parents, or the path of a CSV file, not {kind_of(told)}."
        )
    return [(_name(code), _name(parent)) for code, parent in told.items()]


def _name(value: object) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | int | np.integer) or value == "":
        raise SpecificationError(
            f"hierarchy: codes and parents are texts, or integer codes, not {kind_of(value)}."
        )
    return str(value)
