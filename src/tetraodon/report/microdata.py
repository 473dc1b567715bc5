"""The part of the page that tells of one release of microdata: its groups, what was exchanged, and what was measured."""

from __future__ import annotations

from .account import ledger_name
from .document import Document, Generalised, Microdata
from .words import clean, counted, listed, safe

NO_BOUND = (
    "Groups and exchange were computed from these very rows, so what comes out depends on all of them. <b>Measured</b> means: "
    "found on these rows alone. It bounds no other attacker and no other knowledge."
)
HIDDEN = (
    "How much the rows give away, and how far they lie from the truth, was computed from private rows. It tells about them, so it "
    "is not published."
)


def asked_microdata(entry: Microdata) -> str:
    """A release of microdata in words."""
    told = f"Every record as a row, {listed([g.column for g in entry.groups], 6)} generalised"
    told += f", {counted(len(entry.exchanged), 'column')} exchanged within groups"
    if entry.quasi_identifiers:
        told += f"; {listed(entry.quasi_identifiers, 6)} in classes"
    return clean(f"{told}.")


def microdata_article(i: int, entry: Microdata, document: Document) -> str:
    """One release of microdata."""
    told = "\n".join(f"<p>{safe(line)}</p>" for line in entry.words or ())
    words = f'<div class="told">\n{told}\n</div>' if told else f'<p class="lead hidden">{HIDDEN}</p>'
    tables = "\n".join(_groups(column, entry.rows) for column in entry.groups)
    return (
        f'<article id="release-{i}">\n<div class="top">\n<h3>{safe(entry.name)}</h3>\n'
        f'<p class="asked">{counted(entry.rows, "row")} in random order. {safe(asked_microdata(entry))}</p>\n'
        f'<p class="alert"><b>No proved bound.</b> {NO_BOUND}</p>\n</div>\n{words}\n'
        f'<div class="evidence">\n<div>\n<h4>Evidence</h4>\n<dl>\n{_facts(entry, document)}\n</dl>\n</div>\n{tables}\n</div>\n</article>'
    )


def _facts(entry: Microdata, document: Document) -> str:
    rows = [
        (
            "Cost",
            f"Nothing is charged, since nothing is proved: <b>{entry.guarantee}</b>; row {entry.ledger_row} of "
            f"{ledger_name(document)}.",
        ),
        ("Every group", safe(_needs(entry))),
        ("Exchanged", safe(f"{listed(entry.exchanged, 12)}.")),
    ]
    rows += [("Leaves", safe(f"{line}.")) for line in entry.disclosed]
    return "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)


def _needs(entry: Microdata) -> str:
    """What every group has, from the numbers that were stated."""
    need = entry.requirements
    variety = "entropy variety" if need.get("variety") == "entropy" else "values"
    said = []
    for low, high, what in (("k", "alpha", "rows"), ("l", "beta", variety)):
        least, most = need.get(low), need.get(high)
        told = f"at least {least} {what} ({low})"
        said.append(f"{told}, at most {most} ({high})" if most is not None else told)
    return f"{'; '.join(said)}."


def _groups(column: Generalised, rows: int) -> str:
    body = "".join(
        f'<tr><th scope="row">{safe(label)}</th><td class="n">{n:,}</td><td class="n">{100 * n / max(rows, 1):.1f} %</td></tr>'
        for label, n in column.groups
    )
    return (
        f'<table class="considered"><caption>Groups of {safe(column.column)}, as the rows show them; which values each stands for is '
        "in the file of groups.</caption>"
        f'<thead><tr><th scope="col">{safe(column.column)}</th><th scope="col" class="n">Rows</th>'
        f'<th scope="col" class="n">Share</th></tr></thead><tbody>{body}</tbody></table>'
    )
