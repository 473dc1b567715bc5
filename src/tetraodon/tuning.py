"""What the command line says of policies side by side and of the least loss for a wished ±, for a whole settings file.

Everything comes from the file alone: no data, no ledger, nothing is spent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .compare import OWN, Comparison, side_by_side
from .errors import SpecificationError
from .exact import show
from .frontiers import Offer, key_of, least_loss, read_target
from .loss import Loss
from .plans import describe_workload, finite, name_of, number, unit_of
from .policy import Policy
from .pricing import is_scaled
from .requests import Request, chosen
from .secrets import secrets_from_spec
from .spec import Document
from .terminal import text_of

WORDS = ("full", "attribute-wise", "nothing")
SHOWN = 60


def policies_of(document: Document, asked: Iterable[str] = ()) -> dict[str, Policy]:
    """The file's policy, those of its [compare], and more as they are named on the command line.

    Args:
        asked: "full", "attribute-wise", "nothing", or secrets as [policy.secrets] has them, in TOML.

    Raises:
        SpecificationError: no such secrets.
    """
    found = {OWN: document.policy, **document.compared}
    for text in asked:
        name = text.strip()
        if name not in found:
            try:
                found[name] = document.policy.under(secrets_from_spec(_read(name), "--compare"))
            except SpecificationError as error:
                told = str(error)
                raise type(error)(told if told.startswith("--compare") else f"--compare: {told}") from None
    return found


def _read(text: str) -> Any:
    """Secrets from a word or an inline table."""
    if text in WORDS:
        return text
    expected = (
        f"--compare: {', '.join(WORDS)}, or secrets as in [policy.secrets], such as "
        "'{ capital_loss = { within = 100 } }'"
    )
    if not text.startswith("{"):
        raise SpecificationError(f"{expected}.")
    try:
        told = tomllib.loads(f"secrets = {text}", parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        raise SpecificationError(f"{expected}; this is not TOML.") from None
    if set(told) != {"secrets"}:
        raise SpecificationError(f"{expected}, in one line.")
    return told["secrets"]


def compared(document: Document, policies: Mapping[str, Policy]) -> list[tuple[str, Comparison]]:
    """For every release that has a ±, its policies side by side; none where there is one policy."""
    if len(policies) < 2:
        return []
    return [
        (request.name, side_by_side(policies, request.query, request.loss))
        for request in document.requests
        if is_scaled(request.query)
    ]


def compared_spec(told: Sequence[tuple[str, Comparison]]) -> list[dict[str, Any]]:
    """``compared`` in plain values."""
    return [{"name": name, **comparison.to_spec()} for name, comparison in told]


def compared_text(told: Sequence[tuple[str, Comparison]]) -> str:
    """``compared`` as text. What a policy gives up is the same for all releases, so it is said once."""
    lines: list[str] = []
    for at, (name, comparison) in enumerate(told):
        lines.append(f"{name}, {comparison.loss.show()}, beside {comparison.strongest!r}:")
        lines += [f"{line}" for line in comparison.lines() if at == 0 or "gives up: " not in line]
    return text_of(lines)


def tuned(
    document: Document, policies: Mapping[str, Policy], target: str, only: Sequence[str] = ()
) -> dict[str, Any]:
    """For every release the least loss for a wished ±: under each policy, and for each mechanism under the file's own.

    Args:
        target: such as "± 100"; with a unit only releases whose answers are in it are looked at.

    Raises:
        SpecificationError: no number above 0, a unit that no release has, no release of that name.
    """
    releases: list[dict[str, Any]] = []
    refused: SpecificationError | None = None
    units: list[str] = []
    for request in chosen(document.requests, only):
        if not is_scaled(request.query):
            releases.append(_skipped(request, "has no ± that can be traded against a loss"))
            continue
        own = Offer(request.query, document.policy)
        planned = own.at(request.loss)[0]
        unit = unit_of(planned.strategy)
        try:
            wished = read_target(target, unit, "--target")
        except SpecificationError as error:
            refused = error
            units.append(unit or "no unit")
            releases.append(_skipped(request, f"its answers are in {unit or 'no unit'}"))
            continue
        releases.append(_tuned(request, own, policies, wished, unit))
    if refused is not None and not any("target" in release for release in releases):
        if len(set(units)) > 1:
            each = ", ".join(dict.fromkeys(units))
            raise SpecificationError(
                f'--target: a number above 0 such as 100 or "± 100"; the answers are in {each}.'
            )
        raise refused
    return {"target": target.strip(), "coverage": 0.95, "releases": releases}


def _skipped(request: Request, why: str) -> dict[str, Any]:
    return {"name": request.name, "title": request.query.title, "skipped": why}


def _tuned(
    request: Request, own: Offer, policies: Mapping[str, Policy], wished: Fraction, unit: str
) -> dict[str, Any]:
    kind = request.loss.unit
    offers = {
        name: own if policy is own.policy else Offer(request.query, policy)
        for name, policy in policies.items()
    }
    if request.mechanism is not None:
        offers = {n: Offer(o.query, o.policy, (request.mechanism,)) for n, o in offers.items()}
    stated = offers[OWN].at(request.loss)[0]
    listed = dict.fromkeys(key_of(row.mechanism) for row in own.at(request.loss))
    return {
        "name": request.name,
        "title": request.query.title,
        "workload": describe_workload(stated.strategy),
        "unit": unit,
        "target": show(wished),
        "loss": kind,
        "asked": {
            kind: show(request.loss.amount),
            "half_width": finite(stated.half_width),
            "mechanism": name_of(stated.mechanism),
        },
        "policies": [_least(name, offer, wished, request) for name, offer in offers.items()],
        "mechanisms": [
            {"mechanism": name, "least": _shown(least_loss(own, wished, kind, name))} for name in listed
        ],
    }


def _least(name: str, offer: Offer, wished: Fraction, request: Request) -> dict[str, Any]:
    found = least_loss(offer, wished, request.loss.unit)
    at = Loss(request.loss.unit, found) if found else request.loss
    chosen = None if found is None else name_of(offer.at(at)[0].mechanism)
    return {"policy": name, "least": _shown(found), "mechanism": chosen}


def _shown(amount: Fraction | None) -> str | None:
    return None if amount is None else show(amount)


def tune_text(told: Mapping[str, Any]) -> str:
    """``tuned`` as text."""
    lines: list[str] = []
    for release in told["releases"]:
        if "skipped" in release:
            lines.append(f"{release['name']}: {release['skipped']}; left out.")
            continue
        kind, asked, unit = release["loss"], release["asked"], release["unit"]
        wide = "unbounded" if asked["half_width"] is None else f"± {number(asked['half_width'])}"
        wished = f"± {number(float(Fraction(release['target'])))} {unit}".rstrip()
        lines.append(
            f"{release['name']}: {release['title']}, for {wished} at 95 % ({release['workload']}); "
            f"the file asks for {kind} {asked[kind]}, {wide}"
        )
        width = max(len(_short(row["policy"])) for row in release["policies"])
        for row in release["policies"]:
            lines.append(f"  {_short(row['policy']):<{width}}  {_in_words(row, kind)}")
        each = ", ".join(f"{row['mechanism']} {_amount(row['least'])}" for row in release["mechanisms"])
        lines.append(f"    by mechanism, under {OWN}: {each}")
    lines.append(
        "The least losses have three digits, rounded up: planned there, the ± is reached. Nothing was read or spent."
    )
    return text_of(lines)


def _in_words(row: Mapping[str, Any], kind: str) -> str:
    if row["least"] is None:
        return f"no {kind} up to 10,000 is enough"
    if row["least"] == "0":
        return "no secret: exact at no cost"
    return f"{kind} {row['least']}, {row['mechanism']}"


def _amount(least: str | None) -> str:
    return "none" if least is None else "exact" if least == "0" else least


def _short(name: str) -> str:
    return name if len(name) <= SHOWN else f"{name[: SHOWN - 1]}…"
