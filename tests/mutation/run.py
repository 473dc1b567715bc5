"""Mutation testing: `make test-mutation`. Changes the code that decides what is private, one place at a time, and sees whether a
test notices.

One run of the fast tests in a private copy tells which test executes which line and how long it takes. Each change then meets the
tests that execute it, the fastest first, until one of them fails: a first round of some seconds for all, and a second one of all
other tests for those that are left, unless a reason is known why they change nothing. What was found out is kept in the work
folder, for the files that are as they were, so that a run that was stopped goes on. The end is a page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import measured
import pytest
from judged import BROKEN, FAILED, LONG, PASSED, Judge, Trial, alone, options
from mutator import Mutant, sampled

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "mutation.md"
REASONS = HERE / "survivors.json"
COUNT = 300
# What is changed: all that draws noise, keeps the account, prices and observes linear queries, and bounds what neighbours move.
CODE = (
    "noise.py", "_laws.py", "_tables.py", "_gaussian.py", "_uniform.py", "ledger.py", "chain.py", "accounts.py", "admission.py",
    "mechanisms/strategy.py", "sensitivity",
)  # fmt: skip
TESTS = (
    "tests/test_noise.py", "tests/test_noise_gaussian.py", "tests/test_zcdp.py", "tests/test_ledger.py", "tests/hostile/test_c20_ledger.py",
    "tests/test_composition.py", "tests/test_editions.py", "tests/hostile/test_attack_account.py", "tests/test_sensitivity.py",
    "tests/test_rule_r.py", "tests/test_counterexamples.py", "tests/test_counterexamples_people.py", "tests/test_constraint_goldens.py",
    "tests/test_lattices.py", "tests/test_steinitz.py", "tests/test_presence.py", "tests/test_people.py", "tests/test_mechanisms.py",
    "tests/test_error.py", "tests/test_answers.py", "tests/channels/test_choices.py", "tests/hostile/test_mechanism_attacks.py",
    "tests/test_sensitivity_limits.py", "tests/test_sensitivity_exact.py", "tests/test_kronecker.py", "tests/test_kron_strategy.py", "tests/test_marginals_strategy.py",
    "tests/test_policy.py", "tests/test_graphs.py", "tests/channels/test_channel.py", "tests/channels/test_named.py", "tests/test_engine.py",
    "tests/test_table.py", "tests/test_session.py", "tests/test_bad_declarations.py", "tests/hostile/test_data.py",
    "tests/test_constraints.py", "tests/test_rows.py", "tests/hostile/test_row_attacks.py", "tests/hostile/test_office_attacks.py",
    "tests/hostile/test_blowfish_attacks.py",
    "tests/hostile/test_ledger_under_fire.py::test_a_ledger_and_what_stands_beside_it_belong_to_their_owner_alone", "src/tetraodon/constraints.py", "src/tetraodon/policy.py", "src/tetraodon/engine.py",
    "src/tetraodon/entries.py", "src/tetraodon/verification.py",
    *(f"src/tetraodon/{name}" for name in CODE),  # their doctests
)  # fmt: skip
LIBRARIES = (
    "numpy",
    "scipy.sparse",
    "scipy.optimize",
    "scipy.stats",
    "pyarrow.parquet",
    "ibis",
    "duckdb",
    "pandas",
)
FIRST_SECONDS = 25.0  # of tests, in the first round
LEAST = 0.9  # of the changes that change something must be killed
OPEN, MISSED = "open", "not executed"
STATED = {
    PASSED: "no test notices",
    OPEN: "no test of the first round notices; the others have not been run",
    MISSED: "no test executes it",
    BROKEN: "could not be tried",
}


class Results:
    """What every change came to, in a file that is written after each; what concerns files that are no longer as they were is left out."""

    def __init__(self, path: Path, prints: Mapping[str, str]) -> None:
        self.path, self.prints = path, prints
        self.found: dict[str, dict[str, str]] = {}
        self.read()

    def read(self) -> None:
        kept = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        self.found = {key: one for key, one in kept.items() if one["print"] == self.prints.get(one["path"])}

    def outcome(self, mutant: Mutant) -> str | None:
        return self.found.get(mutant.key, {}).get("outcome")

    def keep(self, mutant: Mutant, outcome: str) -> None:
        one = {"outcome": outcome, "path": mutant.path, "print": self.prints[mutant.path]}
        self.found[mutant.key] = one
        self.path.write_text(json.dumps(self.found, indent=1), encoding="utf-8")
        done = Counter(told["outcome"] for told in self.found.values())
        where = f"{mutant.key} {mutant.path}:{mutant.line} {_cell(mutant.old)} → {_cell(mutant.new)}"
        print(f"{sum(done.values()):4} {outcome:12} {where}", flush=True)


class Rounds:
    """Which tests each change meets next: :meth:`after_loading` in a process that has loaded the package, :meth:`before_loading`
    in one that has not."""

    def __init__(
        self,
        tree: Path,
        sample: Sequence[Mutant],
        found: measured.Measured,
        results: Results,
        known: frozenset[str],
    ) -> None:
        self.tree, self.found, self.results, self.known = tree, found, results, known
        self.tests: dict[str, list[str]] = {}
        self.loading: list[Mutant] = []
        self.loaded: list[Mutant] = []
        self.new: list[str] | None = None
        for mutant in sample:
            source = (tree / mutant.path).read_text(encoding="utf-8")
            tests, at_load = measured.executing(mutant, source, found)
            usable = tests & found.seconds.keys()
            self.tests[mutant.key] = sorted(usable, key=lambda test: found.seconds[test])
            (self.loading if at_load else self.loaded).append(mutant)

    def _first(self, mutant: Mutant) -> list[str]:
        first, spent = [], 0.0
        for test in self.tests[mutant.key]:
            spent += self.found.seconds[test]
            if spent <= FIRST_SECONDS:
                first.append(test)
        return first

    def before_loading(self) -> list[Trial]:
        """The first round of what takes part in loading; where all is tried once, the rest for every change that is left."""
        undone = [m for m in self.loading if self.results.outcome(m) is None]
        if undone or any(self.results.outcome(m) is None for m in self.loaded):
            return [Trial(m, tuple(self._first(m))) for m in undone]
        undone = [m for m in (*self.loading, *self.loaded) if self.results.outcome(m) == OPEN]
        return [Trial(m, tuple(self.tests[m.key])) for m in undone if m.key not in self.known]

    def after_loading(self, collected: Sequence[str]) -> list[Trial]:
        """First one trial without a change, which must pass; then the first round of all others."""
        if self.new is None:
            seen = self.found.seconds.keys() | self.found.unusable
            self.new = [t for t in collected if t not in seen and not measured.is_served(t)]
            quick = [test for test, seconds in self.found.seconds.items() if seconds < 0.02]
            return [Trial(None, (*self.new, *quick))]
        undone = [m for m in self.loaded if self.results.outcome(m) is None]
        return [Trial(m, (*self._first(m), *self.new)) for m in undone]

    def left_out(self, trial: Trial) -> bool:
        """Whether there are tests that an undecided change has still to meet."""
        assert trial.mutant is not None
        return not set(self.tests[trial.mutant.key][-1:]) <= set(trial.tests)


def present(tree: Path) -> list[str]:
    """The tests, as pytest is told them."""
    return [test for test in TESTS if (tree / test.partition("::")[0]).exists()]


def judged(tree: Path, rounds: Rounds, results: Results, until: float, workers: int) -> None:
    """Let the changes meet their tests."""

    def told(trial: Trial, outcome: str, more: str) -> None:
        if trial.mutant is None:
            if outcome != PASSED:
                raise RuntimeError(f"tests do not pass without a change: {outcome} ({more})")
            return
        if outcome == PASSED and not rounds.tests[trial.mutant.key] and trial.mutant in rounds.loaded:
            results.keep(trial.mutant, MISSED)
        else:
            results.keep(trial.mutant, OPEN if outcome == PASSED and rounds.left_out(trial) else outcome)

    files = present(tree)
    seconds, unusable = rounds.found.seconds, rounds.found.unusable
    unmeasured = {f for f in files if not any(test.startswith(f) for test in seconds)}

    def one_by_one() -> None:
        for trial in rounds.before_loading():
            if time.monotonic() < until:
                needed = {test.partition("::")[0] for test in trial.tests} | unmeasured
                told(trial, *alone(tree, trial, sorted(needed), seconds, unusable))

    one_by_one()
    if any(results.outcome(m) is None for m in rounds.loaded):
        apart = os.fork()  # the package is loaded there, and not here
        if apart == 0:
            code = 1
            try:
                plugin = Judge(tree, rounds.after_loading, seconds, told, until, workers)
                code = int(pytest.main(options(files), plugins=[plugin]))
            finally:
                sys.stdout.flush()
                os._exit(code)
        os.waitpid(apart, 0)
        results.read()
        one_by_one()


def page(
    sample: Sequence[Mutant], outcomes: Mapping[str, str], reasons: Mapping[str, str], whole: int
) -> str:
    """The page of the documentation.

    A reason that starts with "equivalent" says why nobody could see the change; the score is of the others.
    """
    tested = [m for m in sample if m.key in outcomes]
    killed = [m for m in tested if outcomes[m.key] in (FAILED, LONG)]
    alive = sorted((m for m in tested if m not in killed), key=lambda m: (m.path, m.line))
    equal = [m for m in alive if reasons.get(m.key, "").startswith("equivalent")]
    left = [m for m in alive if m not in equal]
    counts = [Counter(_file(m) for m in told) for told in (tested, killed, equal, left)]
    share = 100 * len(killed) / max(len(tested) - len(equal), 1)
    lines = [
        "# Mutation testing",
        "",
        "Written by `make test-mutation`; do not edit. Of the code that draws noise, keeps the account, prices linear queries and bounds what",
        "neighbours move, one place at a time is changed: comparisons, arithmetic, numbers, truth values, returned values, statements, min and",
        f"max. {whole:,} changes are possible; the {len(sample)} with the least SHA-256 are the sample, which anybody can draw again. A change is",
        "killed if a test of the fast tier fails, or works three times as long as without the change and five seconds more. What survives without",
        "a reason has met every fast test that executes it; what is called equivalent is so by reading, and has met the fastest of them.",
        "",
        f"Tried: **{len(tested)}** of {len(sample)}. Killed: **{len(killed)}** ({sum(outcomes[m.key] == LONG for m in killed)} of them by the time they took). "
        f"Equivalent, with a reason below: **{len(equal)}**. Surviving: **{len(left)}**.",
        "",
        f"**Score: {len(killed)} / ({len(tested)} − {len(equal)}) = {share:.1f} %**",
        "",
        "| file | tried | killed | equivalent | surviving |",
        "|---|---:|---:|---:|---:|",
        *(f"| `{name}` | {' | '.join(str(count[name]) for count in counts)} |" for name in sorted(counts[0])),
        "",
        "## Surviving",
        "",
        "| where | change | why it survives |",
        "|---|---|---|",
        *(_row(m, reasons.get(m.key, STATED[outcomes[m.key]])) for m in left),
        "",
        "## Equivalent",
        "",
        "| where | change | why nobody could see it |",
        "|---|---|---|",
        *(_row(m, reasons[m.key].removeprefix("equivalent: ")) for m in equal),
    ]
    return "\n".join(lines) + "\n"


def _file(mutant: Mutant) -> str:
    return mutant.path.removeprefix("src/tetraodon/")


def _row(mutant: Mutant, told: str) -> str:
    where = f"`{_file(mutant)}`, {mutant.inside or 'top'}"
    return f"| {where} | `{_cell(mutant.old)}` → `{_cell(mutant.new)}` | {told} |"


def _cell(text: str) -> str:
    told = " ".join(text.split()).replace("|", "\\|")
    return told if len(told) <= 90 else f"{told[:87]}…"


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", type=Path, default=ROOT / ".mutation", help="folder for the copy and the results"
    )
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="stop after so long; the next run goes on"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--again", nargs="*", default=[], metavar="KEY", help="try these once more; 'survivors' for all"
    )
    told = parser.parse_args(None if arguments is None else list(arguments))
    until = time.monotonic() + 60 * told.minutes
    told.work.mkdir(parents=True, exist_ok=True)
    tree = measured.copied(ROOT, told.work)
    measured.measure(told.work, tree, present(tree), CODE)
    changes, prints = measured.every(tree, CODE), measured.prints(tree, CODE)
    sample, results = sampled(changes, told.count), Results(told.work / "results.json", prints)
    for mutant in sample:
        alive = results.outcome(mutant) not in (FAILED, LONG, None)
        if mutant.key in told.again or ("survivors" in told.again and alive):
            del results.found[mutant.key]
    reasons = json.loads(REASONS.read_text(encoding="utf-8"))
    os.environ.update(measured.environment(tree))
    sys.dont_write_bytecode = True  # what was compiled is told by time and size alone
    os.chdir(tree)
    sys.path.insert(0, str(tree / "src"))
    for name in LIBRARIES:
        __import__(name)
    rounds = Rounds(tree, sample, measured.read(told.work, tree, CODE), results, frozenset(reasons))
    judged(tree, rounds, results, until, told.workers)
    outcomes = {m.key: found for m in sample if (found := results.outcome(m)) is not None}
    PAGE.write_text(page(sample, outcomes, reasons, len(changes)), encoding="utf-8")
    killed = sum(one in (FAILED, LONG) for one in outcomes.values())
    equal = sum(
        reasons.get(key, "").startswith("equivalent")
        for key, one in outcomes.items()
        if one not in (FAILED, LONG)
    )
    print(f"{killed} of {len(outcomes)} killed, {equal} equivalent; {len(sample) - len(outcomes)} not tried")
    return int(len(outcomes) < len(sample) or killed < LEAST * (len(outcomes) - equal))


if __name__ == "__main__":
    raise SystemExit(main())
