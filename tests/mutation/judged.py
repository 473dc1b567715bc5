"""What the tests say of one change: they are collected once, and every change meets them in a child of that process.

The child puts the changed code in the place of the old, in the functions that are loaded already: nothing is imported or
collected again, and no file is written. Programs that a test starts do not see such a change, so that a few are called surviving
that these tests would notice. A change that takes part in loading a module cannot be put in like that: its child starts before
the package is loaded, from a changed file.
"""

from __future__ import annotations

import functools
import gc
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from measured import is_served
from mutator import Mutant

PASSED, FAILED, LONG, BROKEN = "survived", "killed", "too long", "broken"
CODES = {0: PASSED, 1: FAILED, 99: BROKEN}
PATIENCE = 5.0  # CPU seconds that a test has beside three times what it takes without a change
MEMORY = 16 << 30  # bytes that a child may take beyond what it starts with


@dataclass(frozen=True)
class Trial:
    """A change, or none, and the names of the tests that it meets, in this order."""

    mutant: Mutant | None
    tests: tuple[str, ...]


Told = Callable[[Trial, str, str], None]
Rounds = Callable[[Sequence[str]], Sequence[Trial]]


def options(files: Sequence[str]) -> list[str]:
    """Of pytest; whose own loader of files would not be given a changed text."""
    kept = ["-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
    return ["-x", "-q", "-n", "0", "--tb=line", "--assert=plain", "-m", "not slow", *kept, *files]


class Unshrunk:
    """A plugin of pytest: hypothesis keeps nothing, makes no example smaller once it has failed, and may take its time."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", derandomize=True, database=None, deadline=None, phases=phases)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def functions(folder: Path) -> dict[tuple[str, str, int], list[FunctionType]]:
    """All functions of the package that are loaded, by file, name and first line."""
    found: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(folder)):
            code = one.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(one)
    return found


def put_in(path: Path, mutant: Mutant, loaded: Mapping[tuple[str, str, int], list[FunctionType]]) -> bool:
    """Give every loaded function of the file its changed code; whether any code that is loaded differs now."""
    new = compile(mutant.applied(path.read_text(encoding="utf-8")), str(path), "exec")
    changed = False
    for code in _codes(new):
        for one in loaded.get((str(path), code.co_qualname, code.co_firstlineno), ()):
            if one.__code__ != code and one.__code__.co_freevars == code.co_freevars:
                one.__code__ = code
                changed = True
    for kept in gc.get_objects():  # what was worked out before the change
        if isinstance(kept, functools._lru_cache_wrapper) and kept.__module__.startswith("tetraodon"):
            kept.cache_clear()
    return changed


class Judge(Unshrunk):
    """A plugin of pytest that, instead of running the tests, lets every trial meet its own in a child."""

    def __init__(
        self, tree: Path, rounds: Rounds, seconds: Mapping[str, float], told: Told, until: float, workers: int
    ) -> None:
        self.tree, self.rounds, self.seconds, self.told = tree, rounds, seconds, told
        self.until, self.workers = until, workers

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        by_name = {item.nodeid: item for item in session.items}
        loaded = functions(self.tree / "src" / "tetraodon")
        running: dict[int, Trial] = {}
        while trials := self.rounds(list(by_name)):
            for trial in trials:
                while len(running) >= self.workers:
                    self._ended(running)
                if time.monotonic() > self.until:
                    break
                child = os.fork()
                if child == 0:
                    code = 99
                    try:
                        items = [by_name[name] for name in trial.tests]
                        code = self._met(session, trial, items, loaded)
                    finally:
                        os._exit(code)
                running[child] = trial
            while running:
                self._ended(running)
            if time.monotonic() > self.until:
                break
        return True

    def _met(self, session: pytest.Session, trial: Trial, items: list[pytest.Item], loaded: Any) -> int:
        """In the child: 0 where every test passes."""
        os.setsid()
        session.config.pluginmanager.unregister(name="terminalreporter")
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        resource.setrlimit(resource.RLIMIT_AS, (_taken() + MEMORY, resource.RLIM_INFINITY))
        if trial.mutant is not None and not put_in(self.tree / trial.mutant.path, trial.mutant, loaded):
            return 98
        for number, item in enumerate(items):
            timed(self.seconds.get(item.nodeid, 1.0))
            session.config.hook.pytest_runtest_protocol(
                item=item, nextitem=items[number + 1] if number + 1 < len(items) else None
            )
            if session.testsfailed:
                return 1
        return 0

    def _ended(self, running: dict[int, Trial]) -> None:
        child, found = waited(list(running))
        trial = running.pop(child)
        self.told(trial, *found)


def _taken() -> int:
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def timed(seconds: float) -> None:
    """End this process when it has worked much longer than a test takes; a test that waits for nothing ends later."""
    signal.setitimer(signal.ITIMER_PROF, PATIENCE + 3 * seconds)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 60 + 20 * seconds)


def waited(children: Sequence[int]) -> tuple[int, tuple[str, str]]:
    """The first of these to end, what it came to, and more words."""
    while True:
        for child in children:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                if os.WIFSIGNALED(status):
                    ended = os.WTERMSIG(status)
                    long = ended in (signal.SIGPROF, signal.SIGALRM, signal.SIGKILL)
                    return child, (LONG if long else FAILED, signal.Signals(ended).name)
                code = os.WEXITSTATUS(status)
                return child, (CODES.get(code, BROKEN), str(code))
        time.sleep(0.02)


class Only(Unshrunk):
    """A plugin of pytest: these tests in this order, each for its time, and after them those of which no time is known."""

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float], others: Collection[str]) -> None:
        self.order, self.seconds = {test: i for i, test in enumerate(tests)}, seconds
        self.others = {*seconds, *others} - self.order.keys()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        last = len(self.order)
        kept = (i for i in items if i.nodeid not in self.others and not is_served(i.nodeid))
        items[:] = sorted(kept, key=lambda item: self.order.get(item.nodeid, last))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        timed(self.seconds.get(item.nodeid, 1.0))


def alone(
    tree: Path, trial: Trial, files: Sequence[str], seconds: Mapping[str, float], others: Collection[str]
) -> tuple[str, str]:
    """What its tests say where the package is loaded anew from a changed file, also in programs that they start; that it cannot
    be loaded is a failure.

    Leaves the reports in output.txt beside the tree.

    Args:
        files: to be collected.
        others: tests that are not usable.
    """
    assert trial.mutant is not None
    path = tree / trial.mutant.path
    source = path.read_text(encoding="utf-8")
    path.write_text(trial.mutant.applied(source), encoding="utf-8")
    try:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                os.setsid()
                out = os.open(tree.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(out, 1)
                os.dup2(out, 2)
                timed(60.0)
                plugins = [Only(trial.tests, seconds, others)]
                code = min(int(pytest.main(options(files), plugins=plugins)), 1)
            finally:
                sys.stdout.flush()
                os._exit(code)
        return waited([child])[1]
    finally:
        path.write_text(source, encoding="utf-8")
