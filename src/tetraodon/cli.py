"""The command line. Exit codes: 0 done; 1 refused (budget, policy, data, output), nothing spent unless the message says
otherwise; 2 usage or specification error. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from . import __version__
from .errors import OutputError, SpecificationError, TetraodonError
from .terminal import json_text, say, text_of

app = typer.Typer(
    name="tetraodon",
    help="Policy in, release out, evidence attached.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
ledger_app = typer.Typer(help="Look at a ledger, or raise its total.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

FileArgument = Annotated[Path, typer.Argument(help="The settings file, release.toml.", show_default=False)]
AUDIT_DRAWS = 200_000
INTERRUPTED = 130
"""What Typer ends with on an interruption, without a word."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; never shows a traceback, whose text could quote data."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign shows another
    try:
        app(args=None if arguments is None else list(arguments))
    except TetraodonError as error:
        say(text_of([f"tetraodon: {error}"]), file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except SystemExit as ended:
        if ended.code != INTERRUPTED:
            raise
        _interrupted()
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = (
            ""
            if where is None
            else f" in {Path(where.tb_frame.f_code.co_filename).name}, line {where.tb_lineno}"
        )
        say(
            f"tetraodon: an unexpected {type(error).__name__}{place}; its text is withheld because it may quote data. "
            "Please report it. If this was a release, a charge may have been made: tetraodon ledger show tells.",
            file=sys.stderr,
        )
        raise SystemExit(1) from None


def _interrupted() -> NoReturn:
    say(
        "tetraodon: interrupted. A charge that was made stays made; see tetraodon ledger show. Staged rows go on with "
        "tetraodon release --resume.",
        file=sys.stderr,
    )
    raise SystemExit(1) from None


@contextmanager
def _working(text: str) -> Iterator[None]:
    """A spinner on a terminal, nothing in a pipe."""
    try:
        from rich.console import Console
    except ImportError:
        Console = None  # type: ignore[assignment, misc]
    if Console is None or not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(text):
        yield


def _print_json(value: Any) -> None:
    say(json_text(value))


def _version(asked: bool) -> None:
    if asked:
        say(f"tetraodon {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _template(name: str) -> str:
    return resources.files("tetraodon").joinpath("data", name).read_text(encoding="utf-8")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("tetraodon-demo"),
    as_json: JsonOption = False,
) -> None:
    """The sample table, a worked policy, private answers and a report, in one command."""
    settings = out / "release.toml"
    try:
        _clear_demo(out, settings)
        out.mkdir(parents=True, exist_ok=True)
        settings.write_text(_template("demo.toml"), encoding="utf-8")
        for name in ("adult.parquet", "README.md"):
            data = resources.files("tetraodon").joinpath("data", name).read_bytes()
            (out / name).write_bytes(data)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror}).") from None
    if not as_json:
        say(f"Wrote {settings} and the sample table beside it. Now: tetraodon release {settings}\n")
    release(settings, as_json=as_json)


def _clear_demo(out: Path, settings: Path) -> None:
    """Start over in the folder of an earlier demo, and nowhere else; only files that a demo wrote are removed."""
    if not out.exists():
        return
    wrote = [settings, out / "adult.parquet", out / "README.md", out / "adult.ledger", out / "published"]
    others = [p for p in out.iterdir() if p not in wrote] if out.is_dir() else [out]
    if others or (any(out.iterdir()) and not _is_demo(settings)):
        raise OutputError(
            f"{out}: is not an earlier demo, or holds other files; choose another folder with --out."
        )
    for path in wrote:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _is_demo(settings: Path) -> bool:
    return settings.is_file() and settings.read_bytes() == _template("demo.toml").encode()


@app.command()
def init(
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("release.toml"),
    columns: Annotated[
        Path | None, typer.Option(help="Take names and types of columns from this file's schema.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Which table of a DuckDB file.")] = None,
) -> None:
    """Write a commented release.toml to start from. It never looks at rows."""
    from .starting import settings_text

    if table is not None and columns is None:
        raise SpecificationError("init --table: goes with --columns, the file that has the table.")
    taken = OutputError(f"{out}: exists already; choose another name with --out.")
    if os.path.lexists(out):
        raise taken
    text = _template("init.toml") if columns is None else settings_text(columns, out, table)
    try:
        with out.open("x", encoding="utf-8") as file:  # never through a link that leads elsewhere
            file.write(text)
    except FileExistsError:
        raise taken from None
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror}).") from None
    say(f"Wrote {out}. Edit it, then: tetraodon plan {out}")


CompareOption = Annotated[
    list[str] | None,
    typer.Option(
        "--compare",
        help="Also under these secrets: full, attribute-wise, nothing, or '{ income = { within = 100 } }' (may be repeated).",
    ),
]


@app.command()
def plan(file: FileArgument, compare: CompareOption = None, as_json: JsonOption = False) -> None:
    """What each release would cost and how accurate it would be. Reads no data, spends nothing."""
    from .planning import plan_text, planned
    from .spec import load
    from .tuning import compared, compared_spec, compared_text, policies_of

    document = load(file)
    policies = policies_of(document, compare or ())
    with _working("pricing"):
        told = planned(document)
        beside = compared(document, policies)
    if as_json:
        _print_json(told | ({"compared": compared_spec(beside)} if beside else {}))
        return
    say(plan_text(told))
    if beside:
        say(f"\n{compared_text(beside)}")


@app.command()
def explain(file: FileArgument, as_json: JsonOption = False) -> None:
    """The policy in plain words."""
    from .editions import RENEWAL
    from .spec import load

    document = load(file)
    text = document.policy.explain(**{document.total.unit: document.total.amount})
    if document.renews:
        text += f"\n{RENEWAL}"
    if as_json:
        _print_json(
            {"policy": document.policy.to_spec(), "hash": document.policy.hash, "lines": text.split("\n")}
        )
    else:
        say(text)


@app.command()
def release(
    file: FileArgument,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the answers; default: published/ beside the file.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this release (may be repeated).")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Draw and charge afresh what was released before.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with staged rows of a run that ended early; charges nothing twice."
        ),
    ] = False,
    audit_first: Annotated[
        bool, typer.Option("--audit", help="Put every release to the test first; the report tells of it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Price the whole file, check the data, charge the ledger, draw once, write answers, manifest and report."""
    from .planning import run
    from .resuming import resumed
    from .spec import load

    if again and resume:
        raise SpecificationError(
            "release --resume: goes on with what was charged, and --again charges afresh; use one of them."
        )
    document = load(file)
    if document.ledger is None:
        say(
            "tetraodon: no ledger is named: this account is forgotten when the command ends.", file=sys.stderr
        )
    folder = file.parent / "published" if out is None else out
    with _working("releasing"):
        draws = AUDIT_DRAWS if audit_first else None
        if resume:
            found = resumed(document, folder, only or [], draws)
            manifest = found.manifest
            for note in found.notes:
                say(text_of([f"tetraodon: {note}"]), file=sys.stderr)
        else:
            manifest = run(document, folder, only or [], again, draws)
    told = json.loads(manifest.read_text(encoding="utf-8"))
    if as_json:
        _print_json(told)
        return
    from .planning import release_text
    from .requests import chosen

    made = [each.name for each in chosen(document.requests, [] if resume else only or [])]
    say(release_text(told, folder, made))


@app.command()
def audit(
    file: FileArgument,
    draws: Annotated[int, typer.Option(help="Outputs of each made-up table.")] = AUDIT_DRAWS,
    only: Annotated[list[str] | None, typer.Option(help="Only this release (may be repeated).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Try to contradict what each release claims, on made-up neighbouring tables. Reads no data, spends nothing."""
    from .auditing.audited import draws_of
    from .auditing.settings import audit_spec, audit_text, audited_document, is_contradicted
    from .spec import load

    document, count = load(file), draws_of(draws)
    with _working("auditing"):
        found = audited_document(document, count, only or ())
    if as_json:
        _print_json(audit_spec(found))
    else:
        say(audit_text(found))
    if is_contradicted(found):
        raise typer.Exit(1)


@app.command()
def tune(
    file: FileArgument,
    target: Annotated[
        str, typer.Option(help='The ± that is wished for, such as "± 100".', show_default=False)
    ],
    compare: CompareOption = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this release (may be repeated).")] = None,
    as_json: JsonOption = False,
) -> None:
    """The least epsilon or rho for a wished ±, by policy and by mechanism. Reads no data and no ledger, spends nothing."""
    from .spec import load
    from .tuning import policies_of, tune_text, tuned

    document = load(file)
    policies = policies_of(document, compare or ())
    with _working("pricing"):
        told = tuned(document, policies, target, only or ())
    if as_json:
        _print_json(told)
    else:
        say(tune_text(told))


@app.command()
def attack(
    original: Annotated[Path, typer.Argument(help="The private table.", show_default=False)],
    released: Annotated[Path, typer.Argument(help="What was released of it.", show_default=False)],
    secret: Annotated[str, typer.Option(help="The column that attackers want to know.", show_default=False)],
    model: Annotated[
        list[str] | None, typer.Option(help="Only this attacker (may be repeated); default: all.")
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="II: attackers learn on published rows. I: on clean ones.")
    ] = "II",
    ident: Annotated[
        str | None, typer.Option("--id", help="The column that tells who is who; default: row by row.")
    ] = None,
    features: Annotated[
        list[str] | None, typer.Option(help="Only this released column (may be repeated, or a,b,c).")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="number (scored by distance) or category; default: by its values.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts that the people are split into.")] = 2,
    repeats: Annotated[int, typer.Option(help="How many times they are split.")] = 5,
    most_people: Annotated[int, typer.Option(help="Of more people so many are drawn; 0 for all.")] = 20_000,
    as_json: JsonOption = False,
) -> None:
    """How well trained attackers find out a secret from a release. The figures are private; nothing is written."""
    from .attacking import measured, text

    with _working("attacking"):
        found = measured(
            original, released, secret, model or [], scenario, ident, features or [], kind, folds, repeats, most_people
        )  # fmt: skip
    if as_json:
        _print_json(found.to_spec())
    else:
        say(text(found))


LedgerArgument = Annotated[
    str,
    typer.Argument(
        help="The ledger: a file, or postgresql://user@host/base?ledger=name.", show_default=False
    ),
]


@ledger_app.command("show")
def ledger_show(file: LedgerArgument, as_json: JsonOption = False) -> None:
    """Every charge and disclosure, the loss by secret under every policy in force, and what is left."""
    from .ledger import Ledger
    from .planning import ledger_text, ledger_told

    ledger = Ledger.read(file)
    if as_json:
        _print_json(ledger_told(ledger))
    else:
        say(ledger_text(ledger))


@ledger_app.command("verify")
def ledger_verify(
    file: LedgerArgument,
    manifests: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Manifests that must not be newer than the ledger, with their files beside them."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the chain, the sums and, against manifests, that the ledger was not rolled back and their files are unchanged."""
    from .ledger import verify
    from .stores import called

    found = verify(file, manifests or [])
    if as_json:
        _print_json(
            {
                "ok": found.ok, "problems": list(found.problems), "warnings": list(found.warnings),
                "head": found.head, "rows": found.rows,
            }
        )  # fmt: skip
    else:
        for problem in found.problems:
            say(text_of([f"PROBLEM: {problem}"]))
        for warning in found.warnings:
            say(text_of([f"warning: {warning}"]))
        if found.ok:
            say(f"{called(file)}: sound; {found.rows} rows, head {found.head}.")
            if not manifests:
                say("Without a manifest a rolled-back ledger cannot be told from an honest one.")
    if not found.ok:
        raise typer.Exit(1)


@ledger_app.command("raise")
def ledger_raise(
    file: LedgerArgument,
    to: Annotated[str, typer.Option(help='The new total, exact: "2", "3/2".', show_default=False)],
    reason: Annotated[str, typer.Option(help="One line; every later report shows it.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Raise the total, in a row of the chain. It weakens what was promised, and every later report says so."""
    from .editions import raised_lines, raises_spec
    from .ledger import Ledger
    from .stores import called

    ledger = Ledger.existing(file)
    ledger.raise_total(to, reason)
    raises = raises_spec(ledger)
    if as_json:
        _print_json(raises[-1])
    else:
        say(f"{raised_lines(raises)[-1]}. State the new total in settings that use {called(file)}.")
