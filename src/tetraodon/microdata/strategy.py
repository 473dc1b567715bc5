"""Microdata under a policy: what is asked, what leaves, and why nothing of it is proved.

Groups and channels are fitted on the very rows that are published, so what comes out depends on all of them and no ε holds along
any edge, whatever the policy says. The release is charged nothing and named beside every total, for this policy and for every
later one (docs/privacy.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..channels.attainable import Unreachable
from ..domain import Domain
from ..errors import PolicyError, Refused, SpecificationError, TetraodonError
from ..loss import Loss
from ..policy import Policy
from ..queries import Query
from ..sensitivity import Sensitivity, Term
from .declared import Layout, Read
from .settings import Hybrid

if TYPE_CHECKING:
    from .plan import Plan

FITTED = (
    "hybrid: groups and channels are fitted on the very rows that leave, so no epsilon is proved of them. Ask for "
    "guarantee = 'measured': nothing is charged, and the ledger names the release beside every total."
)
CHARGED = "hybrid: nothing of it is proved, so nothing is charged; leave epsilon and rho out."
NOTHING = "Nothing was spent."
TOO_NEAR = (
    "hybrid.distortion: no exchange within groups of these rows keeps it; how much is needed is a function of private rows and "
    f"withheld. Allow more distortion, fewer donors or wider groups. {NOTHING}"
)


@dataclass(frozen=True)
class Exchanged:
    """The mechanism of microdata, as ledgers and manifests name it.

    >>> Exchanged("optimal", "donors").words
    'optimal groups, columns from donors of the same group'
    """

    method: str
    published: str

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form."""
        return {"hybrid": {"method": self.method, "publish": self.published}}

    @property
    def words(self) -> str:
        """In a few words."""
        return f"{self.method} groups, columns from {self.published} of the same group"


@dataclass(frozen=True, eq=False)
class HybridStrategy:
    """A checked request for microdata. Made from public facts alone.

    Attributes:
        policy: under which it is asked; nothing is proved along its edges.
        layout: the request and its columns as declared.
    """

    policy: Policy
    layout: Layout
    loss = Loss("epsilon", Fraction(0))
    guarantee = "measured"
    cost = Sensitivity(Fraction(0), None, "no proved bound: measured")
    terms: tuple[Term, ...] = ()
    exact_terms: tuple[Term, ...] = ()
    draws = ()

    @property
    def query(self) -> Hybrid:
        """What is asked, with the exchanged columns by name."""
        return self.layout.settings

    @property
    def spent(self) -> Loss:
        """What is charged: nothing."""
        return self.loss

    @property
    def by_secret(self) -> Mapping[str, Fraction]:
        """The loss along each attribute's edges: none is known."""
        return {}

    @property
    def domain(self) -> Domain:
        """Of all columns that are read."""
        return self.layout.domain

    @property
    def mechanism(self) -> Exchanged:
        """What is run, by name."""
        return Exchanged(self.query.method, self.query.published)

    def fitted(self, read: Read, name: str) -> Plan:
        """Groups and channels for these rows.

        Args:
            name: of the release, for messages.

        Raises:
            Refused, SpecificationError: there are none, or not for so few rows; the message shows no private count.
        """
        from .fit import fit

        try:
            return fit(read.data, self.query)
        except Unreachable:  # its message says how near the rows come
            raise Refused(f"release {name!r}: {TOO_NEAR}") from None
        except TetraodonError as error:
            kind = SpecificationError if isinstance(error, SpecificationError) else Refused
            raise kind(f"release {name!r}: {error} {NOTHING}") from None

    def disclosed(self) -> list[str]:
        """What leaves, in words."""
        asked = self.query
        moved = columns_text(len(asked.insensitive))
        lines = [
            f"whole rows: {_names(asked.private)} generalised, {moved} exchanged within groups, without a proved bound"
        ]
        secret = [n for n in asked.insensitive if n not in self.policy.graph.unprotected]
        if asked.published == "donors":
            lines.append(
                f"{_names(asked.insensitive)}: real values of real people, in rows of people of the same group, their own row included (donors)"
            )
        else:
            lines.append(f"{_names(asked.insensitive)}: typical values of clusters of people (prototypes)")
        if secret:
            lines.append(f"secrets of this policy among the exchanged columns: {_names(tuple(secret))}")
        if asked.quasi_identifiers:
            lines.append(
                f"{_names(asked.quasi_identifiers)} of every row, in classes of at least {asked.class_size} rows"
            )
        return lines


def columns_text(count: int) -> str:
    """How many columns, in words.

    >>> columns_text(1), columns_text(12)
    ('1 column', '12 columns')
    """
    return f"{count} column{'s' * (count > 1)}"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def asked_for(query: Any) -> Any:
    """The request itself, where an estimator that holds one (``HybridObscuring``) is given in its place.

    Raises:
        SpecificationError: an estimator with facts of its own about the values, which a session takes from the domain.
    """
    if isinstance(query, Query) or not hasattr(type(query), "settings"):
        return query
    held = query.settings
    if not isinstance(held, Hybrid):
        return query
    for key, instead in (("hierarchy", "Categorical(hierarchy=…)"), ("map_width", "a Point")):
        if getattr(query, key, None) is not None:
            raise SpecificationError(
                f"hybrid.{key}: a session takes it from the domain; declare {instead} there."
            )
    return held


def check_unproved(guarantee: str, is_charged: bool) -> None:
    """Refuse to call proved what is not, or to charge for it.

    Raises:
        SpecificationError: why.
    """
    if guarantee != "measured":
        raise SpecificationError(FITTED)
    if is_charged:
        raise SpecificationError(CHARGED)


def priced(query: Hybrid, policy: Policy, guarantee: str = "measured") -> HybridStrategy:
    """Check a request for microdata. Reads and spends nothing.

    Raises:
        SpecificationError: another guarantee than "measured"; columns that are not declared or do not fit.

    >>> from ..attributes import Integer
    >>> from ..graphs import Within
    >>> people = Domain(age=Integer(17, 90), hours=Integer(0, 99))
    >>> found = priced(Hybrid("age", ["hours"], distortion="0.1", groups=4), Policy(people, Within(5, on="age")))
    >>> found.disclosed()[0]
    'whole rows: age generalised, 1 column exchanged within groups, without a proved bound'
    """
    check_unproved(guarantee, False)
    if policy.presence == "secret":
        raise PolicyError(
            "hybrid: every row leaves, so that all would see who is there, which this policy holds secret."
        )
    if not policy.people.is_plain:
        raise SpecificationError(
            "hybrid: one row of weight 1 for each person; its tests of rows are tests of people. Leave data.id and data.weight out, "
            "and give a table of one row a person."
        )
    return HybridStrategy(policy, Layout.of(query, policy.domain))
