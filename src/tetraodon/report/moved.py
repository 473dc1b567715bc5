"""The part of the page that tells of one release of rows: what they report, what the channels do, what an attacker learns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..attributes import Categorical
from ..exact import show
from ..plans import number
from .account import ledger_name
from .audits import audit_words
from .document import ChannelText, Document, Optimum, RowRelease
from .leaking import leaking
from .losses import cost, up
from .maps import ALONE, TALLEST, WIDTH
from .origins import panels
from .reported import Reported, picture
from .spots import spotted
from .svg import drawn
from .words import clean, counted, edge, listed, of_unit, percent, safe, small

SOURCES = {
    "none": "Nothing: it is made by formula.",
    "public": "A public table.",
    "disjoint": "Records of other persons, none of whom is in these rows.",
    "released": "Answers that were released before, and charged.",
    "private": "These very rows: its probabilities depend on all of them.",
}
AFTER_FLOOR = (
    "What the first step let out of these rows, which is charged, and an attribute that no secret of the policy changes; whatever is "
    "learned from these is post-processing."
)
LEFT_OUT = " (its figures; not the counts behind them)"
LEARNED = (
    "The channel of {names} was learned from these very rows: a network was trained on all of them, so what comes out for one row "
    "depends on all others, and the channel itself is a fact about them."
)
MEANS = (
    "found for one attacker, who knows how often each secret goes with each value and sees one row, on these rows "
    "alone. It bounds no other attacker and no other knowledge."
)
HIDDEN = (
    "The channel of {names} was computed from private rows. Its probabilities, its certificate and its expected distance tell "
    "about them, so none of these is published."
)
OPTIMA = {
    "information": "{value} leak; no channel within the same expected distance leaks less than {bound} (certified gap {gap}).",
    "distortion": "{value} on average; no channel that keeps as much gives less than {bound} (certified gap {gap}).",
    "bayes": "the best guess is wrong in {value}; no channel within the same expected distance makes it more than {bound} "
    "(certified gap {gap}).",
}  # fmt: skip
SHARE = re.compile(r"\d[\d.]* %")
PREFIX = re.compile(r"(Nothing is [a-z]+|[A-Z][^:]{3,90}): (.+)\Z", re.DOTALL)


def asked_rows(entry: RowRelease) -> str:
    """A release of rows in words."""
    replaced = listed([" and ".join(c.attributes) for c in entry.channels], 12)
    told = f"Every record as a row, with {replaced} replaced"
    return clean(f"{told}; {listed(entry.kept, 12)} unchanged." if entry.kept else f"{told}.")


def distance(entry: RowRelease, seen: Sequence[Reported]) -> tuple[str, str]:
    """How far values move, in HTML, and for whose values; for the table of releases."""
    told, priors = [], []
    for one in seen:
        channel, evidence = one.channel, one.channel.evidence
        if evidence is None or evidence.distortion is None:
            continue
        far = safe(f"about {_far(one, evidence.distortion)}{' changed' if one.is_share else ' away'}")
        whose = "" if len(entry.channels) == 1 else f"{safe(listed(channel.attributes, 3))} "
        told.append(f'<span class="far">{whose}{far}</span>')
        priors.append(evidence.prior)
    if not told:
        return "not published" if any(c.is_private for c in entry.channels) else "–", ""
    return "".join(told), safe(listed([_over(prior) for prior in dict.fromkeys(priors)], 3))


def _far(seen: Reported, amount: float) -> str:
    """An expected distance; where values are equally far from each other, the share of those that change."""
    if seen.is_share:
        return percent(amount)
    steps = isinstance(next(iter(seen.ground.domain.values())), Categorical)
    return of_unit(number(amount), seen.channel.unit or ("steps" if steps else ""))


def _over(prior: str) -> str:
    """Whose values an expected distance is of.

    >>> _over("uniform over 9 cells"), _over("a released histogram")
    ('on average if values were uniform over 9 cells', 'on average over a released histogram')
    """
    return f"on average if values were {prior}" if prior.startswith("uniform") else f"on average over {prior}"


def no_bound(entry: RowRelease) -> str:
    """Why nothing is proved of a measured release."""
    names = [n for channel in entry.channels if channel.is_private for n in channel.attributes]
    if any(channel.is_private and channel.kind == "learned" for channel in entry.channels):
        return LEARNED.format(names=safe(listed(names, 6)))
    if names:
        return f"The channel of {safe(listed(names, 6))} was computed from these very rows, so what comes out depends on all of them."
    return "Its channel keeps no ε that this policy would count."


def article(i: int, entry: RowRelease, seen: Sequence[Reported], document: Document) -> str:
    """One release of rows."""
    parts = [
        f'<article id="release-{i}">\n<div class="top">\n<h3>{safe(entry.name)}</h3>\n<p class="asked">{_published(entry)}</p>'
    ]
    if entry.is_measured:
        parts.append(
            f'<p class="alert"><b>No proved bound.</b> {no_bound(entry)} <b>Measured</b> means: {MEANS}</p>'
        )
    several = len(seen) > 1
    parts.append("</div>")
    for j, one in enumerate(seen):
        parts.append(
            _place(f"r{i}-{j + 1}", one, several, document, "" if several else _facts(entry, document))
        )
    if several:
        parts.append(
            f'<div class="evidence">\n<div>\n<h4>Evidence, all together</h4>\n<dl>\n{_facts(entry, document)}\n</dl>\n</div>\n</div>'
        )
    return "\n".join([*parts, "</article>"])


def _published(entry: RowRelease) -> str:
    told = f"{counted(entry.rows, 'row')} in random order. {safe(asked_rows(entry))}"
    if entry.permanent is not None:
        told += f" One answer for every {safe(entry.permanent[0])} in the epoch {safe(entry.permanent[1])}."
    return told


def _place(prefix: str, seen: Reported, several: bool, document: Document, facts: str) -> str:
    """One channel: plain words, figures, rows of it, evidence."""
    channel = seen.channel
    curve = leaking(channel, seen.is_share)
    room = ALONE if curve is None else (WIDTH, TALLEST)
    figures = [picture(seen, document.policy.domain, prefix, room)]
    if curve is not None:
        chart, label, notes = curve
        said = "".join(f" <span>{safe(note)}</span>" for note in notes)
        figures.append(
            f'<figure class="curve">{drawn(chart, label, f"{prefix}-c")}<figcaption><b>Leakage against distance</b>; '
            f"the dot is this release.{said}</figcaption></figure>"
        )
    alone = " alone" if curve is None and seen.ground.field is not None else ""
    head = f'<h4 class="place">{safe(seen.title)}: {safe(channel.name)}</h4>\n' if several else ""
    told = "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in _channel(seen))
    return (
        f'<div class="channel">\n{head}{_words(channel)}<div class="figures{alone}">\n{"".join(figures)}\n</div>\n{_panels(seen)}'
        f'<div class="evidence">\n<div>\n<h4>Evidence</h4>\n<dl>\n{facts}\n{told}\n</dl>\n</div>\n{_attack(channel)}\n</div>\n</div>'
    )


def _words(channel: ChannelText) -> str:
    """The plain words of the evidence, those of one kind under its name."""
    evidence = channel.evidence
    if evidence is None:
        names = safe(listed(channel.attributes, 6))
        told = (
            HIDDEN.format(names=names)
            if channel.is_private
            else f"No evidence was published for the channel of {names}."
        )
        return f'<p class="lead hidden">{told}</p>\n'
    return in_kinds(evidence.words)


def in_kinds(words: Sequence[str], strong: re.Pattern[str] = SHARE) -> str:
    """Sentences of evidence, those of one kind under its name.

    Args:
        strong: what a sentence is about; its first occurrence stands in bold.
    """
    groups: dict[str, list[str]] = {}
    for sentence in words:
        found = PREFIX.match(clean(sentence))
        kind, rest = (found[1], found[2]) if found else ("", clean(sentence))
        groups.setdefault(kind, []).append(rest)
    if not groups:
        return ""
    rows = []
    for kind, lines in groups.items():
        said = "".join(f"<p>{_strong(line, strong)}</p>" for line in lines)
        rows.append(f"<div><dt>{safe(kind)}</dt><dd>{said}</dd></div>")
    return f'<dl class="told">\n{"".join(rows)}\n</dl>\n'


def _strong(line: str, strong: re.Pattern[str]) -> str:
    """A sentence with what it is about in bold."""
    told = safe(line[:1].upper() + line[1:])
    return strong.sub(lambda found: f"<b>{found[0]}</b>", told, count=1)


def _panels(seen: Reported) -> str:
    found = panels(seen.channel, seen.ground)
    if found is None:
        return ""
    what = "place" if seen.is_map else "value"
    pictures = "\n".join(f'<div><p class="small">{title}</p>{svg}</div>' for title, svg in found.pictures)
    legend = f'<div class="legend">{found.legend}</div>\n' if found.legend else ""
    return (
        f'<figure class="panels">\n<div class="grid{" wide" if found.is_wide else ""}">\n{pictures}\n</div>\n{legend}<figcaption><b>Where a record with this {what} may be reported</b>. '
        f"{safe(found.told)}</figcaption>\n</figure>\n"
    )


def _facts(entry: RowRelease, document: Document) -> str:
    """What holds for the release as a whole."""
    charged = f"Nothing is charged, since nothing is proved: <b>{entry.guarantee}</b>"
    if entry.goes_out_again:
        charged = (
            f"Nothing more: the account has charged these permanent answers before, <b>{entry.guarantee}</b>"
        )
    elif not entry.is_measured:
        charged = cost(entry, document.budget)
    rows = [
        (
            "Cost" if entry.is_measured else "Exact cost",
            f"{charged}; row {entry.ledger_row} of {ledger_name(document)}.",
        )
    ]
    if entry.per_person is not None:
        rows.append(("Per person", f"{safe(_sum(entry.per_person))}."))
    if entry.witness is not None:
        told = safe(edge(spotted(entry.witness, document.policy.domain)))
        rows.append(("Attained by", f"{told[:1].upper()}{told[1:]}: {safe(entry.rule)}."))
    elif not entry.is_measured:
        rows.append(("Bounded by", f"{safe(entry.rule[:1].upper() + entry.rule[1:])}."))
    if entry.audit is not None:
        rows.append(("Audit", audit_words(entry.audit)))
    if entry.kept:
        rows.append(("Unchanged", _kept(entry)))
    if entry.permanent is not None:
        rows.append(
            (
                "Permanent",
                f"Every {safe(entry.permanent[0])} has one answer in the epoch {safe(entry.permanent[1])}, however many rows it has.",
            )
        )
    return "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)


def _sum(text: str) -> str:
    return text.replace("epsilon ", "ε ")


def _kept(entry: RowRelease) -> str:
    names = f"<b>{safe(listed(entry.kept, 12))}</b>"
    plural = len(entry.kept) > 1
    return (
        f"{names} {'leave' if plural else 'leaves'} in the same row as it is, outside every guarantee. Whoever knows "
        f"{'them' if plural else 'it'} of a person can look for that person among fewer rows: "
        f"{'quasi-identifiers' if plural else 'a quasi-identifier'}."
    )


def _channel(seen: Reported) -> list[tuple[str, str]]:
    """What holds for one channel."""
    channel = seen.channel
    made = (
        AFTER_FLOOR if channel.kind == "learned" and channel.source == "released" else SOURCES[channel.source]
    )
    rows = [("Channel", safe(f"{channel.name}{_asked(channel)}.")), ("Made from", made)]
    evidence = channel.evidence
    if evidence is not None:
        rows.append(("Comes out", f"{evidence.used_outputs:,} of {counted(channel.cells, 'cell')}."))
        if evidence.distortion is not None:
            far = _far(seen, evidence.distortion) + (" of the rows changed," if seen.is_share else "")
            rows.append(("Distance", safe(f"{far} {_over(evidence.prior)}.")))
        if evidence.optimum is not None:
            rows.append(
                (
                    "Certified" if evidence.optimum.bound is not None else "Not certified",
                    _optimum(evidence.optimum),
                )
            )
    if channel.file is not None:
        rows.append(
            (
                "Saved as",
                f"<code>{safe(channel.file)}</code>: law and certificate{LEFT_OUT if channel.kind == 'learned' else ''}, for "
                "<code>tetraodon.Channel.load</code>.",
            )
        )
    return rows


def _asked(channel: ChannelText) -> str:
    told = ""
    if channel.asked is not None:
        epsilon, per = channel.asked
        told = (
            f", asked to keep ε = {show(epsilon)} {f'for every {_each(per)}' if per else 'along every edge'}"
        )
    if channel.realised is not None:
        told += f"; it keeps {up(channel.realised)} along every edge of the policy"
    return told


def _each(per: str) -> str:
    return per


def _optimum(optimum: Optimum) -> str:
    def told(amount: float) -> str:
        return of_unit(f"{amount:.5g}", optimum.unit)

    if optimum.bound is None or optimum.gap is None:
        return f"{safe(told(optimum.value))}; no bound is known, so nothing says how near this is to the best possible."
    text = OPTIMA.get(optimum.kind, "{value}; no channel beats {bound} (certified gap {gap}).")
    text = text.format(
        value=told(optimum.value),
        bound=told(max(0.0, optimum.bound)),
        gap=of_unit(small(optimum.gap), optimum.unit),
    )
    return safe(text[:1].upper() + text[1:])


def _attack(channel: ChannelText) -> str:
    """What an attacker learns, between guessing and no protection."""
    evidence = channel.evidence
    if evidence is None or evidence.attack is None:
        return ""
    found = evidence.attack
    rows = (
        ("nothing: guessing", 0.0, found.guessing_error, ""),
        ("this row", found.bits, found.bayes_error, " class=chosen"),
        ("the value itself", found.plain_bits, found.plain_error, ""),
    )
    told = "".join(
        f'<tr{css}><th scope="row">{name}</th><td class="n">{_bits(bits)}</td><td class="n">{_share(1 - error)}</td></tr>'
        for name, bits, error, css in rows
    )
    kinds = [
        f[1]
        for s in evidence.words
        if (f := PREFIX.match(clean(s))) and f[1].startswith(("Measured", "Computed"))
    ]
    head = f"{safe(kinds[0])}. " if kinds else ""
    return (
        f'<table class="considered"><caption>{head}The secret: {safe(found.secret)}, one of {found.secrets:,}; '
        f"{_bits(found.prior_bits)} bits would tell all of it.</caption>"
        '<thead><tr><th scope="col">An attacker sees</th><th scope="col" class="n">Bits</th>'
        f'<th scope="col" class="n">Right guess</th></tr></thead><tbody>{told}</tbody></table>'
    )


def _share(amount: float) -> str:
    """A share to one decimal; no share is rounded to nothing."""
    return percent(amount) if 0 < amount < 0.001 else f"{100 * amount:.1f} %"


def _bits(amount: float) -> str:
    return "0" if amount < 1e-12 else f"{amount:.2f}" if amount >= 0.01 else "under 0.01"
