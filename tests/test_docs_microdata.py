"""docs/microdata.md: what it says of leakage, bounds, keys and limits is what the package does; its settings are read."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tetraodon as td
from tetraodon import spec
from tetraodon.microdata.fit import MOST_BOXED, MOST_CANDIDATES, MOST_ORDERED
from tetraodon.microdata.obfuscate import Block, obfuscate
from tetraodon.microdata.settings import KEYS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "microdata.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").split("## Microdata")[1]

AROUND = """
[data]
source = "people.csv"

[domain.age]
integer = [17, 90]

[domain.hours]
integer = [1, 99]

[domain.income]
numeric = [0, 100000]
width = 5000

[domain.education]
categorical = ["school", "college"]

[domain.region]
categorical = ["n", "s"]

[policy.secrets]
age = { within = 5 }

[budget]
epsilon = 4
"""


def people(rows: int = 160, seed: int = 2) -> pa.Table:
    """An age of eight years, two columns that drift with it, and where people live."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 8, rows)
    told: dict[str, Any] = {
        "age": age + 30,
        "area": np.array(["n", "s"])[(age + rng.integers(0, 8, rows)) // 8],
    }
    told |= {f"q_{j}": np.clip(age // 2 + rng.integers(0, 4, rows), 0, 6) for j in range(2)}
    return pa.table(told)


def fitted(**more: Any) -> td.HybridObscuring:
    told = {"distortion": "0.3", "groups": 3, "k": 10, "clusters": 4, "donors": 1} | more
    return td.HybridObscuring("age", {"prefix": "q_"}, **told).fit(people())


def least() -> Any:
    """The sum of the page, with numpy and nothing else."""
    [block] = [b for b in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL) if "def least" in b]
    lines = [line[4:] for line in block.splitlines() if line.startswith((">>> def least", "... "))]
    body = lines[: lines.index("    return total") + 1]
    assert len(body) <= 12 and "td." not in "\n".join(body)
    held: dict[str, Any] = {"np": np}
    exec("\n".join(body), held)
    return held["least"]


class Given:
    """A group as the page's sum takes it."""

    def __init__(self, block: Block) -> None:
        self.joint, self.cost = block.joint, block.cost


def test_the_sum_of_the_page_is_a_bound_whatever_it_is_given() -> None:
    sums, rng = least(), np.random.default_rng(5)
    for _ in range(20):
        joint = rng.random((2, 5, 4)) * (rng.random((2, 5, 4)) < 0.7) + 1e-3
        joint /= joint.sum()
        far = rng.random((2, 4, 4)) + 0.1
        blocks = [Block(j, c) for j, c in zip(joint, far, strict=True)]
        floor = sum(b.least() for b in blocks)
        found = obfuscate(blocks, floor + 0.05)
        given = [Given(b) for b in blocks]
        proved = sums(given, found.log_ratios, found.multiplier, floor + 0.05)
        assert proved == pytest.approx(found.bound, abs=1e-6)
        assert found.leak - 1e-4 < proved <= found.leak + 1e-9
        for _ in range(5):
            spoilt = [A + rng.normal(0, 0.5, A.shape) for A in found.log_ratios]
            assert (
                sums(given, spoilt, found.multiplier * rng.uniform(0, 2), floor + 0.05) <= found.leak + 1e-9
            )


def test_leakage_is_that_of_the_rows_that_are_published() -> None:
    """I(Y; X̂, Ỹ) from the law of every donor, row by row: at most that of clusters, and equal where rows tell their cluster."""
    hybrid = fitted()
    plan, labels = hybrid.plan_, hybrid.plan_.prepared.clusters.labels
    table, group = people(), plan.joint_group(plan.prepared.data.codes)
    _, looks = np.unique(np.stack([table["q_0"], table["q_1"]]), axis=1, return_inverse=True)
    joint = np.zeros((plan.prepared.data.n_values, 3, int(looks.max()) + 1))
    for law in plan.laws:
        for row, c in enumerate(law.rows.tolist()):
            for column, target in enumerate(law.columns.tolist()):
                givers = np.flatnonzero((group == law.group) & (labels == target))
                for u in np.flatnonzero((group == law.group) & (labels == c)):
                    value = plan.prepared.data.values[u]
                    np.add.at(
                        joint[value, law.group],
                        looks[givers],
                        law.matrix[row, column] / len(givers) / len(labels),
                    )
    assert joint.sum() == pytest.approx(1)
    told = td.leakage.information(joint.reshape(len(joint), -1))
    assert told <= hybrid.leakage_ + 1e-9
    together = len(np.unique(np.stack([looks.ravel(), labels]), axis=1).T) == looks.max() + 1
    assert together and told == pytest.approx(hybrid.leakage_, abs=1e-9)


def test_classes_are_the_third_part_of_what_is_told() -> None:
    hybrid = td.HybridObscuring(
        "age", {"prefix": "q_"}, groups=2, k=10, clusters=3, donors=1, distortion="0.5", quasi_identifiers="area", class_size=30
    ).fit(people())  # fmt: skip
    plan = hybrid.plan_
    assert plan.prepared.data.n_classes == 2
    joint = np.zeros((plan.prepared.data.n_values, 2, 2, 3))
    values = plan.prepared.present
    for law in plan.laws:
        members = values[np.isin(values, plan.groups[0][law.group].members)]
        seen = plan.prepared.counts[law.class_][np.isin(values, members)].sum(axis=1) > 0
        joint[np.ix_(members[seen], [law.class_], [law.group], law.columns)] += (law.joint @ law.matrix)[
            :, None, None
        ]
    assert joint.sum() == pytest.approx(1)
    assert td.leakage.information(joint.reshape(len(joint), -1)) == pytest.approx(hybrid.leakage_, abs=1e-9)


def test_under_invariance_every_row_of_a_group_gives_to_one() -> None:
    hybrid = fitted(invariant=True)
    for law in hybrid.plan_.laws:
        mass = law.joint.sum(axis=0)
        given = (mass @ law.matrix) / mass  # of rows of each cluster, in expectation
        assert given == pytest.approx(np.ones(len(given)), abs=1e-8)


def test_no_multiplier_finds_a_partition_off_the_hull() -> None:
    """The page's example: leakage 1, 0.9 and 0 at distances 0, 0.5 and 1; the budget is 0.5."""
    leaks, distances = np.array([1, 0.9, 0]), np.array([0, 0.5, 1])
    prices = leaks[:, None] + np.linspace(0, 5, 501) * distances[:, None]
    assert (prices.argmin(axis=0) != 1).all()
    assert (prices.min(axis=0) - np.linspace(0, 5, 501) * 0.5).max() == pytest.approx(0.5)


def test_an_alternating_plan_proves_nothing_and_several_columns_neither() -> None:
    search = fitted(method="alternating")
    assert search.bound_ is None and search.gap_ is None and len(search.history_) >= 1
    both = td.HybridObscuring(
        ["age", "area"], {"prefix": "q_"}, groups=2, k=5, clusters=3, donors=1, distortion="0.5"
    ).fit(people())
    assert both.bound_ is None and both.plan_.sizes == (2, 2)


def test_the_numbers_of_candidates_that_the_page_states() -> None:
    page = " ".join(PAGE.split())
    assert f"more than {MOST_ORDERED} values" in page and f"into {MOST_ORDERED} runs" in page
    assert f"More than {MOST_CANDIDATES:,} candidates" in page and f"maps of up to {MOST_BOXED} cells" in page

    def runs(n: int) -> int:
        return n * (n + 1) // 2

    assert runs(MOST_ORDERED) <= MOST_CANDIDATES and runs(30) ** 2 <= MOST_CANDIDATES


def test_the_releases_of_the_pages_are_read(tmp_path: Path) -> None:
    blocks = [b for text in (PAGE, SETTINGS) for b in re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)]
    assert len(blocks) == 2
    for block in blocks:
        path = tmp_path / "release.toml"
        path.write_text(AROUND + "\n" + block, encoding="utf-8")
        [request] = spec.load(path).requests
        assert request.query.word == "hybrid" and request.guarantee == "measured"
        assert request.audit == tmp_path / "people.audit.csv"


def test_every_key_is_named_with_its_default() -> None:
    for key in KEYS:
        assert f"`{key}`" in SETTINGS or f"\n{key} = " in SETTINGS, key
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", SETTINGS, flags=re.MULTILINE)
    told: dict[str, str] = {}
    for names, defaults in rows:
        keys = re.findall(r"`(\w+)`", names)
        told |= dict(zip(keys, [d.strip() for d in defaults.split(",")], strict=True))
    blank = {"any": None, "any number": None, "all rows": None, "none": (), "false": False}
    usual = td.HybridObscuring("age").get_params()
    assert len(told) == 18
    for key, default in told.items():
        stated: Any = blank.get(default, default.strip('`"'))
        if isinstance(stated, str) and stated.isdigit():
            stated = int(stated)
        assert usual[key] == stated or (key == "coarseness" and usual[key] is None and stated == 0), key


def test_examples_of_the_readme_run() -> None:
    found = doctest.testfile(str(ROOT / "README.md"), module_relative=False, encoding="utf-8")
    assert found.attempted > 20 and not found.failed


def test_one_group_of_everybody_is_not_offered() -> None:
    with pytest.raises(td.errors.SpecificationError, match="one of groups, alpha, beta and coarseness"):
        td.HybridObscuring("age", "all", distortion=1).fit(people())
