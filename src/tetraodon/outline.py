"""The outline of release.toml: which tables and keys there are, and errors that name them.

pydantic checks the outer document; what is inside each table is read by the class that it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .errors import SpecificationError, unknown
from .reading import kind_of

if TYPE_CHECKING:
    from pydantic import ValidationError


def outline(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The document with all its keys, those left out at their defaults.

    Raises:
        SpecificationError: a key that is unknown, missing or of the wrong kind.
    """
    from pydantic import BaseModel, ConfigDict, Field, ValidationError

    class Part(BaseModel):
        model_config = ConfigDict(
            extra="forbid", strict=True, hide_input_in_errors=True, arbitrary_types_allowed=True
        )

    class Data(Part):
        source: str
        name: str | None = None
        edition: str = ""
        table: str | None = None
        null: list[str] = Field(default_factory=list)
        sql: str | None = None
        where: dict[str, Any] | None = None
        id: str | None = None
        max_rows_per_id: int | None = None
        keep_by: str | None = None
        row_counts: str | None = None
        weight: str | None = None
        weight_bounds: list[Any] | None = None
        weight_step: str | int | Decimal | None = None
        weights: str | None = None

    class Rules(Part):
        secrets: str | dict[str, Any]
        presence: str = "public"
        exempt: dict[str, Any] | None = None
        constraint: list[dict[str, Any]] = Field(default_factory=list)

    class Budget(Part):
        epsilon: str | int | Decimal | None = None
        rho: str | int | Decimal | None = None
        delta: str | int | Decimal | None = None
        ledger: str | None = None
        renews: str | None = None

    class Released(Part):
        name: str
        epsilon: str | int | Decimal | None = None
        rho: str | int | Decimal | None = None
        query: dict[str, Any] | None = None
        rows: list[Any] | None = None
        hybrid: dict[str, Any] | None = None
        audit: str | None = None
        keep: list[str] = Field(default_factory=list)
        channel: dict[str, Any] | None = None
        guarantee: str = "proved"
        publish_evidence: bool = False
        rows_per_person: int = 1
        permanent: dict[str, Any] | None = None
        staging: str | None = None
        mechanism: str | dict[str, Any] = "auto"
        present: dict[str, Any] | None = None

    class Outer(Part):
        data: Data
        domain: dict[str, dict[str, Any]]
        policy: Rules
        compare: dict[str, Any] = Field(default_factory=dict)
        budget: Budget
        release: list[Released] = Field(min_length=1)

    try:
        return Outer.model_validate(raw).model_dump()
    except ValidationError as error:
        raise _translated(error, Outer, raw) from None


def _translated(error: ValidationError, outer: Any, raw: Mapping[str, Any]) -> SpecificationError:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    first = found[0]
    path, given = _walk(first["loc"], raw, first["type"] == "missing")
    key = _key(path, raw)
    if first["type"] == "extra_forbidden":
        model: Any = outer
        for step in path[:-1]:
            inner = model.model_fields.get(step)
            if inner is not None:
                kind = inner.annotation
                model = getattr(kind, "__args__", (kind,))[0]
        place = key.rpartition(".")[0] or "top level"
        return unknown(place, "key", path[-1], list(model.model_fields))
    if first["type"] == "missing":
        return SpecificationError(f"{key}: is missing; add it.")
    if first["type"] == "too_short":
        return SpecificationError(f"{key}: at least one is needed.")
    wrong = {e["type"] for e in found if _walk(e["loc"], raw, False)[0] == path}
    if wrong & {"int_type", "decimal_type", "finite_number"}:
        expected = 'a number, such as 0.5 or "1/2"'
    else:
        kinds = {
            "string_type": "text",
            "dict_type": "a table",
            "model_type": "a table",
            "list_type": "a list",
        }
        expected = (
            " or ".join(dict.fromkeys(kinds[k] for k in kinds if k in wrong)) or "another kind of value"
        )
    return SpecificationError(f"{key}: expected {expected}, got {kind_of(given)}.")


def _walk(location: Sequence[int | str], raw: Any, is_missing: bool) -> tuple[list[str], Any]:
    """The keys of pydantic's location that the document has (it also names the kinds it tried), and what is there."""
    path: list[str] = []
    for step in location:
        inside = step in raw if isinstance(raw, Mapping) else isinstance(raw, list) and isinstance(step, int)
        if not inside:
            return ([*path, str(step)] if is_missing else path), raw
        raw = raw[step]
        path.append(str(step))
    return path, raw


def release_key(told: Any, index: int) -> str:
    """A release by its name, or by its place where it has none."""
    name = told.get("name") if isinstance(told, Mapping) else None
    return f"releases.{name if isinstance(name, str) and name else index + 1}"


def _key(path: list[str], raw: Mapping[str, Any]) -> str:
    """`release.0.query` as `releases.<name>.query`, an item of a list as the list."""
    if path[0] == "release" and len(path) > 1:
        index = int(path[1])
        return ".".join([release_key(raw["release"][index], index), *path[2:]])
    return "data.null" if path[:2] == ["data", "null"] else ".".join(path)
