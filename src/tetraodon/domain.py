"""The declared domain: attributes side by side, values ↔ cells of the whole domain.

The attributes and the definition of the cell of a value live in ``attributes``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .attributes import Attribute, Categorical, Integer, Numeric, Point
from .cellular import Cells
from .errors import SpecificationError, unknown
from .reading import kind_of, listed, table, under

MAX_DOMAIN = 2**63 - 1

__all__ = ["Attribute", "Categorical", "Domain", "Integer", "Numeric", "Point", "check_columns"]


def attribute_from_spec(name: str, spec: Mapping[str, Any], folder: Path | None = None) -> Attribute:
    """The attribute that ``to_spec`` wrote, or the table ``[domain.<name>]`` of a settings file.

    Args:
        folder: where relative paths of code files start.
    """
    where = f"domain.{name}"
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table such as {{ integer = [0, 99] }}, not {kind_of(spec)}.")
    spec = dict(spec)
    kinds = [k for k in ("integer", "numeric", "categorical", "point") if k in spec]
    if len(kinds) != 1:
        raise SpecificationError(f"{where}: exactly one of integer, numeric, categorical, point.")
    value = spec.pop(kinds[0])
    allowed = {
        "integer": {"step", "unit"},
        "numeric": {"cells", "width", "unit"},
        "categorical": {"ordered", "other", "hierarchy"},
        "point": {"box", "cell", "metric", "unit"},
    }[kinds[0]] | ({"missing"} if kinds[0] == "point" else {"missing", "column"})
    for key in spec:
        if key not in allowed:
            raise unknown(where, "key", key, sorted(allowed))
    with under(where):
        if kinds[0] == "categorical":
            if isinstance(spec.get("hierarchy"), str) and folder is not None:
                spec["hierarchy"] = folder / spec["hierarchy"]
            if isinstance(value, str):
                return Categorical(value if folder is None else folder / value, **spec)
            values = listed(value, "categorical", "a list of codes, or the path of a file")
            if values == ["?", "?"]:  # one "?" may be a code
                raise SpecificationError(
                    'categorical: "?" is still to be filled in: list every value that there can be, or state the path of a file '
                    "of codes, or delete the attribute."
                )
            return Categorical(values, **spec)
        if kinds[0] == "point":
            names = listed(value, "point", "the names of two columns")
            if len(names) != 2:
                raise SpecificationError("point: the names of two columns.")
            for key in ("box", "cell"):
                if key not in spec:
                    raise SpecificationError(f"{key}: is missing; add it.")
            return Point(*names, **spec)
        bounds = listed(value, kinds[0], "two bounds, [low, high]")
        if any(isinstance(b, str) and b == "?" for b in bounds):
            raise SpecificationError(
                f'{kinds[0]}: "?" is still to be filled in: state the least and the largest value that there can be, or delete '
                "the attribute."
            )
        if len(bounds) != 2:
            raise SpecificationError(f"{kinds[0]}: two bounds, [low, high].")
        return Integer(*bounds, **spec) if kinds[0] == "integer" else Numeric(*bounds, **spec)


def check_columns(domain: Domain) -> None:
    """Refuses two attributes that read one column: a change of its value would change both, which no secret states.

    Raises:
        SpecificationError: names both attributes and the column.

    >>> check_columns(Domain(age=Integer(0, 9), young=Integer(0, 1, column="age")))
    Traceback (most recent call last):
    ...
    tetraodon.errors.SpecificationError: domain.young: reads column 'age', as attribute 'age' does; ...
    """
    read: dict[str, str] = {}
    for name, attribute in domain.items():
        for column in attribute.columns(name):
            if column in read:
                raise SpecificationError(
                    f"domain.{name}: reads column {column!r}, as attribute {read[column]!r} does; declare one of them, and let "
                    "queries bin it."
                )
            read[column] = name


class Domain(Mapping[str, Attribute]):
    """The declared attributes, in order. Cells of the whole domain are numbered row-major: the last attribute runs fastest.

    It may have more cells than have numbers, 2^63 − 1: what is then refused is to look at all attributes at once.

    >>> domain = Domain(age=Integer(17, 90), sex=Categorical(["Female", "Male"]))
    >>> domain.shape, domain.size, domain.encode([[3], [1]]).tolist()
    ((74, 2), 148, [7])
    """

    def __init__(self, attributes: Mapping[str, Attribute] | None = None, /, **named: Attribute) -> None:
        expected = "a mapping from names to attributes"
        told = ({} if attributes is None else table(attributes, "domain", expected)) | named
        if not told:
            raise SpecificationError("domain: at least one attribute.")
        for name, attribute in told.items():
            if not isinstance(name, str) or not name:
                raise SpecificationError("domain: attribute names are non-empty texts.")
            if not isinstance(attribute, Integer | Numeric | Categorical | Point):
                raise SpecificationError(
                    f"domain.{name}: Integer, Numeric, Categorical or Point, not {type(attribute).__name__}."
                )
        self._attributes: dict[str, Attribute] = told
        size = 1
        for attribute in told.values():
            size *= attribute.size
        self.size: int = size

    def __getitem__(self, name: str) -> Attribute:
        return self._attributes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and list(self.items()) == list(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self._attributes.items()))

    def __repr__(self) -> str:
        return f"Domain({', '.join(f'{n}: {a.size}' for n, a in self.items())})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._attributes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of each attribute, special ones included."""
        return tuple(a.size for a in self._attributes.values())

    def attribute(self, name: str, where: str) -> Attribute:
        """The attribute, or an error that lists the declared ones."""
        if name not in self._attributes:
            raise unknown(where, "attribute", name, self.names)
        return self._attributes[name]

    def select(self, *names: str) -> Domain:
        """The domain of some attributes, kept in this domain's order."""
        for name in names:
            self.attribute(name, "domain.select")
        return Domain({n: a for n, a in self.items() if n in names})

    @property
    def is_numbered(self) -> bool:
        """Whether its cells have numbers: there are at most 2^63 − 1."""
        return self.size <= MAX_DOMAIN

    def parts(self) -> list[Domain]:
        """Runs of attributes, in their order, whose cells have numbers; the domain itself where its own have.

        >>> large = Domain({f"q{i}": Integer(1, 10**6) for i in range(7)})
        >>> [list(part) for part in large.parts()]
        [['q0', 'q1', 'q2'], ['q3', 'q4', 'q5'], ['q6']]
        """
        found: list[list[str]] = []
        size = MAX_DOMAIN + 1
        for name, attribute in self.items():
            size *= attribute.size
            if size > MAX_DOMAIN:
                found.append([])
                size = attribute.size
            found[-1].append(name)
        return [self.select(*names) for names in found]

    def check_numbered(self, what: str = "domain") -> None:
        """Refuse more cells than have numbers.

        Args:
            what: that needs them, for the message.

        Raises:
            SpecificationError: more than 2^63 − 1 cells; names the attributes.
        """
        if not self.is_numbered:
            names = list(self)
            shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            raise SpecificationError(
                f"{what}: {shown} have more than 2^63 − 1 cells together; name fewer attributes at once, or declare coarser ones."
            )

    def encode(self, cells: Sequence[Any]) -> Cells:
        """Whole-domain cell numbers from one cell array per attribute.

        Raises:
            SpecificationError: more cells than have numbers.
        """
        self.check_numbered()
        code: Any = np.int64(0)
        for size, cell in zip(self.shape, cells, strict=True):
            code = code * np.int64(size) + np.asarray(cell, dtype=np.int64)
        return np.asarray(code, dtype=np.int64)

    def decode(self, codes: object) -> tuple[Cells, ...]:
        """One cell array per attribute from whole-domain cell numbers.

        Raises:
            SpecificationError: more cells than have numbers.
        """
        self.check_numbered()
        rest = np.asarray(codes, dtype=np.int64)
        cells: list[Cells] = []
        for size in reversed(self.shape):
            rest, cell = np.divmod(rest, np.int64(size))
            cells.append(cell)
        return tuple(reversed(cells))

    def labels(self, code: int) -> tuple[str, ...]:
        """The published names of one whole-domain cell."""
        return tuple(a.label(int(c)) for a, c in zip(self.values(), self.decode(code), strict=True))

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``Domain.from_spec`` is its inverse."""
        return {name: attribute.to_spec() for name, attribute in self.items()}

    @staticmethod
    def from_spec(spec: Mapping[str, Mapping[str, Any]], folder: Path | None = None) -> Domain:
        """The domain that ``to_spec`` wrote, or ``[domain]`` of a settings file."""
        if not isinstance(spec, Mapping):
            raise SpecificationError("domain: a table of attributes.")
        return Domain({name: attribute_from_spec(name, s, folder) for name, s in spec.items()})


def a_domain(value: object, where: str) -> Domain:
    """A domain that a caller gave.

    Raises:
        SpecificationError: it is something else, which is named in kind.

    >>> a_domain(Domain(age=Integer(0, 9)), "domain").size
    10
    """
    if not isinstance(value, Domain):
        raise SpecificationError(f"{where}: a td.Domain, not {kind_of(value)}.")
    return value
