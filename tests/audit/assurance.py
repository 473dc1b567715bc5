"""docs/assurance.md: what is audited, what was found, and which broken twins were caught. ``make assurance`` writes it."""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from audit import answers, clusters, rows  # noqa: E402
from audit.judge import Finding, judged  # noqa: E402
from audit.subjects import Subject  # noqa: E402

PAGE = TESTS.parent / "docs" / "assurance.md"
TWINS = 40_000
HEAD = """# What is audited

Every mechanism and every kind of channel that claims a loss is put to two tests, and so are broken twins of it. `make assurance` runs
them and writes this page; `tests/audit` runs them with fewer draws in every test run, and `make test-slow` with as many as here.

* **Exact test.** On a tiny domain all neighbouring tables are listed from the definitions, by an oracle that shares no code with
  the package. The largest loss between any two follows from the numbers that carry noise and from the laws that are drawn from, in
  rational arithmetic. "1" is exactly what was claimed; less means a bound that is not attained there.
* **Draws.** The worst pair is released {draws:,} times each (fewer where a release takes milliseconds). One half of the draws
  suggests an event, the other half counts it: the loss is *at least* the figure shown, wrong with a chance of 10⁻⁹ (Clopper and Pearson; of ρ,
  by the Rényi divergence of the two probabilities). The *resolution* is the least true loss that such draws would have shown to
  exceed the claim with 99.9 %, in an event as likely as the one tried; "–" where no event was likely enough. This is *measured*: it can contradict a claim,
  and proves none. What is proved is proved by the rule named, see [sensitivity.md](sensitivity.md) and [channels.md](channels.md).
* **Twins.** Each is a plausible mistake. `exact` or `draws` says what caught it.

Every claim is ε = 1 (Laplace noise, channels) or ρ = 1 (Gaussian noise). What an audit cannot see: side channels, rows read wrongly before they
are counted, other domains than these. `tetraodon audit release.toml` puts your own releases to the test, on your domain ([settings.md](settings.md#audit)).

| what | rule | exact test | exact loss | draws: at least | resolution | twins caught |
|---|---|---|---|---|---|---|
"""


def fixed(subject: Subject) -> tuple[str, ...]:
    """What does not differ from run to run: name, rule, exact test, and twins."""
    return subject.name, subject.rule, subject.exact, *subject.twins


def line(subject: Subject, draws: int) -> str:
    """A row of the table.

    Raises:
        AssertionError: a sound mechanism is contradicted, or a twin is not.
    """
    found = judged(subject.run(), subject.tables, min(draws, subject.draws))
    assert found.caught is None, (subject.name, found)
    told = []
    for what, twin in subject.twins.items():
        with twin(subject) as ran:
            caught = judged(ran, subject.tables, min(TWINS, subject.draws), stop_early=True).caught
        assert caught is not None, (subject.name, what)
        told.append(f"{what} ({caught})")
    cells = (subject.name, subject.rule, subject.exact, *_figures(found), "; ".join(told))
    return f"| {' | '.join(cells)} |"


def _figures(found: Finding) -> tuple[str, str, str]:
    exact = math.inf if found.exact is None else float(found.exact)
    sharp = "–" if found.resolution is None else f"{found.resolution:.2f}"
    return f"{exact:.4g}", f"{found.bound:.2f}", sharp


def read() -> list[tuple[str, ...]]:
    """``fixed`` of every row of the committed page."""
    found = []
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in row.strip("|").split(" | ")]
        if len(cells) == 7 and cells[0] not in ("what", "---"):
            twins = [re.sub(r" \((exact|draws)\)$", "", t) for t in cells[6].split("; ")]
            found.append((*cells[:3], *twins))
    return found


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200_000)
    draws = parser.parse_args().draws
    lines = []
    for subject in [*answers.subjects(), *clusters.subjects(), *rows.subjects()]:
        lines.append(line(subject, draws))
        print(lines[-1], file=sys.stderr, flush=True)
    PAGE.write_text(HEAD.format(draws=draws) + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
