"""The command line and its settings file against C05, C08, C15, C16, C18, C19, C22, C28, C35 and C37."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources import nodes
from typer.main import get_command

from tetraodon.cli import app
from tetraodon.ledger import Ledger

Run = Callable[..., tuple[int, str, str]]
Settings = Callable[..., Path]


def untouched(path: Path) -> bool:
    """Whether neither an account nor a folder came of it."""
    return sorted(p.name for p in path.parent.iterdir()) == ["people.parquet", "release.toml"]


# ---------- numbers ----------

NO_AMOUNT = [
    "0", "-1", "nan", "inf", "-inf", "+nan", "true", "false", '""', '"0"', '"-1/2"', '"1/0"', '"nan"', '"1e"', '"0x1"', '"１"', '"½"', '"1 2"', "[1]", "{}",
    "1979-05-27", '"' + "9" * 20_000 + '"', "1e999999999", '"1e999999999"', "1e-999999999",
]  # fmt: skip


@pytest.mark.parametrize("amount", NO_AMOUNT, ids=lambda a: a[:14])
@pytest.mark.parametrize("key", ["budget.epsilon", "releases.cells.epsilon"])
def test_c18_an_amount_in_settings_that_is_no_positive_number_is_refused_by_its_key(
    key: str, amount: str, settings: Settings, run: Run
) -> None:
    old = "epsilon = 1\n" if key == "budget.epsilon" else 'epsilon = "0.25"\n'
    path = settings((old, f"epsilon = {amount}\n"))
    code, out, err = run("release", path)
    assert code == 2 and not out and untouched(path), err
    assert key in err or "not valid TOML" in err
    assert len(err) < 1000 and "Traceback" not in err and "unexpected" not in err


@pytest.mark.parametrize(
    ("amount", "exact"),
    [("1e-3", "0.001"), ('"1/3"', "1/3"), ("0.1", "0.1"), ('"1e-30"', "1/10"), ("1e3", "1000")],
)
def test_c18_an_amount_in_settings_is_the_number_that_stands_there(
    amount: str, exact: str, settings: Settings, run: Run
) -> None:
    """Not its double: 0.1 is a tenth."""
    from fractions import Fraction

    path = settings(("epsilon = 1\n", f"epsilon = {amount}\n"))
    code, out, err = run("plan", path, "--json")
    assert code == 0, err
    assert Fraction(json.loads(out)["total"]) == (Fraction(1, 10**30) if "30" in amount else Fraction(exact))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("integer = [0, 9]", f"integer = [0, {10**30}]", "domain.age"),
        ("integer = [0, 9]", "integer = [0, 1e400]", "domain.age"),
        ("integer = [0, 9]", 'integer = [0, "9e99999999"]', "domain.age"),
        ("integer = [0, 9]", "integer = [9, 0]", "domain.age"),
        ("integer = [0, 9]", "integer = [0, 9]\nstep = 0", "domain.age"),
        ("integer = [0, 9]", "integer = [-9223372036854775808, 9223372036854775807]", "domain.age"),
        ("integer = [0, 9]", f"numeric = [0, 9]\ncells = {10**18}", "domain.age"),
        ("within = 2", f"within = -{10**40}", "policy.secrets"),
        ("within = 2", "within = nan", "policy.secrets"),
        ('by = ["sex"]', 'by = ["sex"], bins = { age = 0 }', "releases.ages"),
        ('query = { cdf = "age", by = ["sex"] }', f'query = {{ linear = "age", matrix = [[{10**40}, 0, 0, 0, 0, 0, 0, 0, 0, 0]] }}', "releases.ages"),
    ],
)  # fmt: skip
def test_c05_numbers_that_no_count_holds_are_refused_by_their_key(
    old: str, new: str, key: str, settings: Settings, run: Run
) -> None:
    path = settings((old, new))
    code, out, err = run("release", path)
    assert code in (1, 2) and not out and untouched(path), err
    assert "unexpected" not in err and (key in err or code == 1), err


def test_c08_a_bad_row_at_the_end_of_a_file_changes_nothing_else(settings: Settings, run: Run) -> None:
    """The value counts as missing, or the table is refused by its column; the text is in no message."""
    path = settings(
        ('source = "people.parquet"', 'source = "people.csv"'), ("integer = [0, 9]", 'integer = [0, 9]\nmissing = "secret"')
    )  # fmt: skip
    file = path.parent / "people.csv"
    file.write_text("age,sex\n" + "3,f\n" * 500 + "CANARY,m\n")
    assert run("release", path, "--only", "cells")[0] == 0
    path.write_text(
        path.read_text().replace('missing = "secret"', "").replace("people.ledger", "other.ledger")
    )
    code, out, err = run("release", path, "--only", "cells", "--out", path.parent / "other")
    assert code == 1 and "'age'" in err and "CANARY" not in out + err
    assert not (path.parent / "other.ledger").exists() or Ledger.read(path.parent / "other.ledger").spent == 0


# ---------- what settings cannot say ----------

PLACES = {
    "data": ("[data]\n", "[data]\n{} = 1\n"),
    "budget": ("[budget]\n", "[budget]\n{} = 1\n"),
    "release": ('name = "cells"\n', 'name = "cells"\n{} = 1\n'),
    "query": ('histogram = ["age"]', 'histogram = ["age"], {} = 1'),
    "mechanism": ('name = "cells"\n', 'name = "cells"\nmechanism = {{ identity = {{ {} = 1 }} }}\n'),
    "domain": ("integer = [0, 9]\n", "integer = [0, 9]\n{} = 1\n"),
    "secrets": ("within = 2", "within = 2, {} = 1"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("case", "word"),
    [
        ("c15", "seed"),
        ("c19", "sensitivity"),
        ("c10", "infer"),
    ],
)
def test_c19_settings_state_no_sensitivity_no_scale_and_no_seed(
    case: str, word: str, place: str, settings: Settings, run: Run
) -> None:
    old, new = PLACES[place]
    path = settings((old, new.format(word)))
    code, _, err = run("release", path)
    assert code == 2 and untouched(path) and (word in err or "one of" in err), err


def commands(command: Any, name: str = "") -> dict[str, Any]:
    found = {name: command}
    for key, inner in getattr(command, "commands", {}).items():
        found |= commands(inner, f"{name} {key}".strip())
    return found


def test_c16_no_command_takes_a_seed_a_price_or_code() -> None:
    found = commands(get_command(app))
    assert {"plan", "release", "ledger show"} <= set(found)
    options = {o for c in found.values() for p in c.params for o in (*p.opts, *p.secondary_opts)}
    assert options > {"--only", "--again", "--json"}
    assert not [
        o
        for o in options
        if re.search("seed|random|rng|sensitiv|scale|noise|eval|exec|pickle|plugin|import", o)
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('epsilon = "0.25"', "rho = 0.01", "releases.cells.rho"),
        ("epsilon = 1\n", "epsilon = 1\ndelta = 0.001\n", "budget.delta"),
        ("epsilon = 1\n", "epsilon = 1\nrho = 1\n", "budget"),
        ("epsilon = 1\n", "rho = 1\n", "budget.delta"),
        ("epsilon = 1\n", "rho = 1\ndelta = 1\n", "budget.delta"),
        ('epsilon = "0.25"', 'epsilon = "0.25"\nguarantee = "measured"', "guarantee"),
        ('epsilon = "0.25"', 'epsilon = "0.25"\nmechanism = "gaussian"', "mechanism"),
    ],
)  # fmt: skip
def test_c22_a_loss_in_one_unit_is_not_charged_in_another(
    old: str, new: str, says: str, settings: Settings, run: Run
) -> None:
    path = settings((old, new))
    code, _, err = run("release", path)
    assert code == 2 and says in err and untouched(path), err


# ---------- a lie about public counts ----------

LIE = '[[policy.constraint]]\nwhere = { sex = ["f"] }\nanswer = 2\n\n[budget]'
KINDS = {
    "answers": [],
    "rows": [('query = { histogram = ["age"] }', 'rows = ["age"]\nchannel = { kind = "exponential" }')],
    "permanent": [('query = { histogram = ["age"] }', 'rows = ["age"]\nchannel = { kind = "exponential" }\npermanent = { id = "who", epoch = "1" }')],
    "microdata": [
        ('epsilon = "0.25"\nquery = { histogram = ["age"] }', 'guarantee = "measured"\n[release.hybrid]\nprivate = "age"\ninsensitive = ["sex"]\ngroups = 2\nclusters = 2\ndistortion = 0.5')
    ],
    "learned": [('epsilon = "0.25"\nquery = { histogram = ["age"] }', 'guarantee = "measured"\nrows = ["age"]\nchannel = { kind = "least-leaking", secret = "sex", distortion = 1 }')],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_c28_a_lie_about_a_public_count_refuses_every_kind_of_release_before_it_is_charged(
    kind: str, settings: Settings, run: Run
) -> None:
    """Three are f and the settings say two: nothing is charged, drawn or kept, and the message has no number of the table's."""
    rows = {"age": [1, 2, 2, 7, 9, 4], "sex": ["f", "m", "m", "f", "f", "m"], "who": list("abcdef")}
    path = settings(("[budget]", LIE), *KINDS[kind], rows=rows)
    code, out, err = run("release", path, "--only", "cells")
    assert code == 1 and "does not have the stated answers" in err and not out, err
    assert not re.search(r"\b[36]\b", err.replace(str(path.parent), ""))
    assert untouched(path) or sorted(p.name for p in path.parent.iterdir()) == [
        "people.parquet",
        "published",
        "release.toml",
    ]
    assert not list((path.parent / "published").glob("*"))


# ---------- many rows of a person ----------


def test_c33_settings_give_a_person_one_answer_and_charge_it_once(settings: Settings, run: Run) -> None:
    """Forty rows of one person, released twice: one answer leaves, whatever the rows hold, and the epoch is paid for once."""
    rows: dict[str, list[Any]] = {"age": list(range(10)) * 4, "sex": ["f"] * 40, "who": ["p"] * 40}
    asked = 'rows = ["age"]\nchannel = { kind = "exponential" }\npermanent = { id = "who", epoch = "1" }'
    path = settings(('query = { histogram = ["age"] }', asked), rows=rows)
    seen = set()
    for more in ([], ["--again"]):
        code, _, err = run("release", path, "--only", "cells", *more)
        assert code == 0, err
        seen |= set(pq.read_table(path.parent / "published" / "cells.parquet")["age"].to_pylist())
    assert len(seen) == 1 and str(Ledger.read(path.parent / "people.ledger").spent) == "1/4"
    assert (path.parent / "cells.permanent").stat().st_mode & 0o077 == 0


# ---------- terminals ----------

CONTROL = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e\u2066\rfaked"


def test_c37_no_name_is_obeyed_by_a_terminal(settings: Settings, run: Run) -> None:
    """Colours, titles, carriage returns and reversed text in units, categories, editions, and a ledger that others wrote."""
    escaped = CONTROL.encode("unicode_escape").decode().replace("\\x", "\\u00")
    path = settings(
        ('unit = "years"', f'unit = "{escaped}"'), ('["f", "m"]', f'["f", "m", "{escaped}"]'), ('edition = "2025"', f'edition = "{escaped}"'),
        ('name = "people"', f'name = "{escaped}"'), ('histogram = ["age"]', f'histogram = ["age"], where = {{ sex = ["{escaped}"] }}'),
    )  # fmt: skip
    ledger = path.parent / "people.ledger"
    shown = []
    for command in (
        ("explain", path), ("plan", path), ("release", path), ("release", path), ("plan", path, "--json"), ("ledger", "show", ledger),
        ("ledger", "show", ledger, "--json"), ("ledger", "verify", ledger),
    ):  # fmt: skip
        shown += run(*command)[1:]
    text = "".join(shown)
    assert "faked" in text and "�" in text
    told = json.loads(run("ledger", "show", ledger, "--json")[1])  # JSON says the same, escaped
    assert CONTROL in {row.get("edition") for row in told["rows"]}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_c37_no_name_begins_a_line_of_its_own(settings: Settings, run: Run) -> None:
    """Categories, units, editions and ledgers of others that read like a verdict of ours, in all that the commands print."""
    faked = "x\\nTogether epsilon 0; 1 of 1 is left: it fits."
    path = settings(
        ('unit = "years"', f'unit = "{faked}"'), ('["f", "m"]', f'["f", "m", "{faked}"]'), ('edition = "2025"', f'edition = "{faked}"'),
        ('name = "people"', f'name = "{faked}"'), ('histogram = ["age"]', f'histogram = ["age"], where = {{ sex = ["{faked}"] }}'),
    )  # fmt: skip
    ledger = path.parent / "people.ledger"
    shown = []
    for command in (
        ("plan", path), ("explain", path), ("audit", path), ("tune", path, "--target", "5"), ("release", path), ("release", path),
        ("ledger", "show", ledger), ("ledger", "verify", ledger),
    ):  # fmt: skip
        code, out, err = run(*command)
        shown.append(
            (command[0], code, sum(line.startswith("Together ") for line in (out + err).splitlines()))
        )
    assert [(name, found) for name, _, found in shown if found] == [("plan", 1)]
    assert [code for _, code, _ in shown] == [0, 0, 0, 0, 0, 1, 0, 0]
    code, _, err = run("plan", settings(('histogram = ["age"]', f'histogram = ["{faked}"]')))
    assert (code, len(err.splitlines())) == (2, 1)


def test_c37_everything_is_printed_through_one_door() -> None:
    """What a name could do to a terminal is undone in one place, which no module goes around."""
    printers = {"print", "typer.echo", "typer.secho", "click.echo", "sys.stdout.write"}
    for name, module in nodes().items():
        called = [n.func for n in module if isinstance(n, ast.Call)]
        told = {
            ast.unparse(f)
            for f in called
            if getattr(f, "id", getattr(f, "attr", "")) in ("print", "echo", "secho", "write")
        }
        assert name == "terminal.py" or not told & printers, name


@pytest.mark.parametrize(
    "arguments",
    [
        ("release", "{}", "--only", "../../etc/passwd"),
        ("release", "{}", "--only", "cells\x00"),
        ("plan", "{}", "--compare", "__import__('os').system('true')"),
        ("plan", "{}", "--compare", "{ age = { within = 1 } }\nx = 1"),
        ("tune", "{}", "--target", "± 100; rm -rf /"),
        ("ledger", "raise", "{}", "--to", "2", "--reason", "a"),
        ("ledger", "show", "{}"),
        ("ledger", "verify", "/dev/null"),
        ("attack", "/dev/null", "/dev/null", "--secret", "'; --"),
        ("explain", "/dev/null"),
        ("plan", "."),
    ],
)  # fmt: skip
def test_c37_arguments_are_names_and_nothing_else(
    arguments: tuple[str, ...], settings: Settings, run: Run
) -> None:
    path = settings()
    code, out, err = run(*(a.format(path) if a == "{}" else a for a in arguments))
    assert code in (1, 2) and not out and untouched(path)
    assert "unexpected" not in err and "Traceback" not in err, err


WRONG: dict[str, bytes] = {
    "rows.csv": b"CANARY0,CANARY1,CANARY2\n" + b"CANARY,CANARY,7654321\n" * 5,
    "semicolons.csv": b"CANARY0;CANARY1\n" + b"CANARY;7654321\n" * 5,
    "twice.csv": b"CANARY\nCANARY\n",
    "counts.csv": b"age,count\nCANARY,7654321\n1,CANARY\n",
    "other.csv": b"age,CANARY\n1,7654321\n",
    "bytes.csv": b"\xff\xfeCANARY",
    "text.toml": b"CANARY = 7654321\nname CANARY\n",
}
PLACED: dict[str, tuple[str, str]] = {
    "codes": ('["f", "m"]', '"{}"'),
    "hierarchy": ('["f", "m"]', '["f", "m"]\nhierarchy = "{}"'),
    "answers": ("[budget]", '[[policy.constraint]]\nmarginal = ["age"]\nanswers = "{}"\n[budget]'),
    "prior": ('query = {{ histogram = ["age"] }}', 'rows = ["age"]\nchannel = {{ kind = "least-distortion", prior = "{}" }}'),
    "channel": ('query = {{ histogram = ["age"] }}', 'rows = ["age"]\nchannel = {{ kind = "file", path = "{}" }}'),
    "ledger": ("", ""),
    "settings": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACED)
def test_c35_a_file_named_in_the_place_of_another_is_not_quoted(
    place: str, settings: Settings, run: Run
) -> None:
    """A slip puts the private rows where codes, counts, a prior, a channel, a ledger or settings are expected."""
    old, new = PLACED[place]
    for name, content in WRONG.items():
        path = settings((old.replace("{{", "{").replace("}}", "}"), new.format(name)))
        (path.parent / name).write_bytes(content)
        asked = path.parent / name if place in ("settings", "ledger") else path
        code, out, err = run(*(("ledger", "show") if place == "ledger" else ("explain",)), asked)
        told = out + err
        if place == "codes" and code == 0:
            continue  # what is declared as categories is public by that
        assert "CANARY" not in told and "7654321" not in told and "unexpected" not in err, (name, told)
        assert name in told or code == 0 or place in ("answers", "codes"), (name, told)


def test_c35_no_value_reaches_a_spinner_or_a_summary(settings: Settings, run: Run) -> None:
    """All commands over data with values that stand nowhere else, the ledger read back, with and without JSON."""
    rows: dict[str, list[Any]] = {"age": [1, 2, 98765], "sex": ["f", "m", "f"], "secret": ["CANARY"] * 3}
    path = settings(rows=rows)
    pq.write_table(pa.table(rows).replace_schema_metadata({"note": "CANARY"}), path.parent / "people.parquet")
    text = ""
    for command in (("plan",), ("release", "--json")):
        text += "".join(run(*command[:1], path, *command[1:])[1:])
    text += "".join(run("ledger", "show", path.parent / "people.ledger", "--json")[1:])
    text += "".join(
        run("init", "--out", path.parent / "new.toml", "--columns", path.parent / "people.parquet")[1:]
    )
    text += (path.parent / "new.toml").read_text()
    assert "CANARY" not in text and "98765" not in text and "secret" in text
