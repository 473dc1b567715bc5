"""Public counts as they are declared, written down and read again: in Python, in settings, in files of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.constraints import answers_file, bind_constraints, constraint_from_spec
from tetraodon.errors import SpecificationError, Unsupported
from tetraodon.policy import exempt_of

DOMAIN = td.Domain(
    region=td.Categorical(["n", "s"], missing="public"), age=td.Integer(0, 2), sex=td.Categorical(["f", "m"])
)
TABLE = td.Table({"region": ["n", "s", "n", None], "age": [0, 1, 2, 2], "sex": ["f", "m", "m", "f"]}, DOMAIN)
COUNTED = {
    ("n", 0): 1,
    ("n", 1): 0,
    ("n", 2): 1,
    ("s", 0): 0,
    ("s", 1): 1,
    ("s", 2): 0,
    ("missing", 0): 0,
    ("missing", 1): 0,
    ("missing", 2): 1,
}


def bound(*told: Any) -> Any:
    return bind_constraints(told, DOMAIN)[0]


@pytest.mark.parametrize(
    "told",
    [
        td.MarginalConstraint("region", "age", answers=COUNTED),
        td.MarginalConstraint("age", "region", answers={(a, r): n for (r, a), n in COUNTED.items()}),
        td.MarginalConstraint("region", "age", answers=list(COUNTED.values())),
        td.CountConstraint({"age": (1, 2), "sex": ["m"]}, 2),
    ],
    ids=["pairs", "pairs in another order", "list", "count"],
)
def test_true_answers_hold_and_false_ones_do_not(told: Any) -> None:
    known = bound(told)
    counts = TABLE.counts(*known.domain.names)
    assert not known.is_broken(counts)
    for more in ([1] + [0] * (len(known.answers) - 1), [0] * (len(known.answers) - 1) + [1]):
        wrong = [a + b for a, b in zip(known.answers, more, strict=True)]
        again = (
            td.CountConstraint({"age": (1, 2), "sex": ["m"]}, wrong[0])
            if isinstance(told, td.CountConstraint)
            else td.MarginalConstraint(*known.domain.names, answers=wrong)
        )
        assert bound(again).is_broken(counts)


@pytest.mark.parametrize(
    "told",
    [
        td.MarginalConstraint("region"),
        td.MarginalConstraint("sex", answers=[2, 2]),
        td.MarginalConstraint("region", "age", answers=COUNTED),
        td.MarginalConstraint("sex", answers={"f": 2, "m": 2}),
        td.CountConstraint({"age": (1, 2), "region": ["n", "s"]}, 3),
        td.CountConstraint({"sex": "m"}),
    ],
    ids=repr,
)
def test_constraints_come_back_from_their_specification(told: Any) -> None:
    again = constraint_from_spec(told.to_spec())
    assert again == told and again.to_spec() == told.to_spec() and constraint_from_spec(told) is told
    known = bound(told)
    assert bind_constraints([constraint_from_spec(known.to_spec())], DOMAIN)[0].answers == known.answers


def test_answers_in_cell_order_are_what_a_bound_constraint_writes() -> None:
    known = bound(
        td.MarginalConstraint(
            "age", "sex", answers={(a, s): 10 * a + (s == "m") for a in range(3) for s in "fm"}
        )
    )
    assert known.to_spec() == {"marginal": ["age", "sex"], "answers": [0, 1, 10, 11, 20, 21]}
    assert known.records == 63 and bound(td.MarginalConstraint("age")).records is None
    assert bound(td.CountConstraint({"sex": "m"}, 2)).records is None
    assert bound(td.MarginalConstraint("age")).to_spec() == {"marginal": ["age"]}


def test_a_file_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    path.write_text("\ufeffage,count,sex,note\n0,1,f,x\n1,2,m,y\n", encoding="utf-8")
    assert answers_file(path, ["sex", "age"], "here") == {("f", "0"): 1, ("m", "1"): 2}
    assert answers_file(path, ["sex"], "here") == {"f": 1, "m": 2}
    path.write_text("sex,count\nf,2\nm,2\n", encoding="utf-8")
    assert not bound(td.MarginalConstraint("sex", answers=answers_file(path, ["sex"], "here"))).is_broken(
        TABLE.counts("sex")
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"sex,count\n", r"known.csv: no cell has a count"),
        (b"", r"names each of the columns 'sex', 'count' once"),
        (b"sex,number\nf,1\n", r"names each of the columns"),
        (b"sex,count,count\nf,1,2\n", r"names each of the columns"),
        (b"sex,count\nf\n", r"known.csv, line 2: too few fields"),
        (b"sex,count\nf,1\nf,2\n", r"known.csv, line 3: a count for a cell that has one already"),
        (b"sex,count\n\nf,1.5\n", r"line 3: a count is a whole number of at least 0"),
        (b"sex,count\nf,-1\n", r"a count is a whole number of at least 0"),
        (b"sex,count\nf,many\n", r"not a number"),
        (b"sex,count\nf,9007199254740993\n", r"counts up to 2\^53"),
        (b"sex,count\n\xff,1\n", r"cannot be read \(UnicodeDecodeError\)"),
    ],
)  # fmt: skip
def test_a_file_of_answers_that_is_none(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "known.csv"
    path.write_bytes(content)
    with pytest.raises(SpecificationError, match=f"^here: .*{says}"):
        answers_file(path, ["sex"], "here")


def test_a_file_of_answers_that_is_not_there_is_named_briefly(tmp_path: Path) -> None:
    with pytest.raises(
        SpecificationError, match=r"^here: x{80}…: cannot be read \(FileNotFoundError\); give"
    ):
        answers_file(tmp_path / f"{'x' * 120}.csv", ["sex"], "here")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: td.CountConstraint({}, 1), "a condition on at least one attribute"),
        (lambda: td.CountConstraint({"sex": "f"}, -1), "whole number of at least 0"),
        (lambda: td.CountConstraint({"sex": "f"}, 2**53 + 1), r"counts up to 2\^53"),
        (lambda: td.MarginalConstraint(), "name at least one attribute"),
        (lambda: td.MarginalConstraint("sex", answers="12"), "a mapping, or a list in cell order, not text"),
        (lambda: constraint_from_spec({"answer": 1}), "one of marginal, where in a table"),
        (lambda: constraint_from_spec(5), "a table such as"),
        (lambda: constraint_from_spec({"marginal": ["sex"], "answer": 1}), "marginal: no key 'answer'.*Did you mean 'answers'"),
        (lambda: constraint_from_spec({"where": {"sex": ["f"]}, "answers": 1}), "where: no key 'answers'.*Did you mean 'answer'"),
        (lambda: constraint_from_spec({"marginal": ["sex"], "answers": [["f", 1], ["m"]]}), r"answers: \[value, count\] pairs"),
        (lambda: constraint_from_spec({"marginal": ["sex"], "answers": [["f", 1], ["f", 2]]}), "a cell is listed twice"),
        (lambda: bound("sex"), r"policy.constraint.1: CountConstraint or MarginalConstraint, not text"),
        (lambda: bound(td.MarginalConstraint("sx")), "Did you mean 'sex'"),
        (lambda: bound(td.CountConstraint({"sex": ["f", "m"]}, 4)), "holds for every value"),
        (lambda: bound(td.MarginalConstraint("sex", answers=[1])), "2 cells are declared, 1 counts given"),
        (lambda: bound(td.MarginalConstraint("sex", "age", answers=[1] * 6)), r"a list goes by the domain's order \(age, sex\)"),
        (lambda: bound(td.MarginalConstraint("sex", answers={("f", 1): 1})), "tuples of 1 values"),
        (lambda: bound(td.MarginalConstraint("sex", answers={"f": 1})), r"no count for \(m\)"),
        (lambda: bound(td.MarginalConstraint("age", answers={0: 1, "0": 2, 1: 0, 2: 0})), "two counts for one cell"),
        (lambda: bind_constraints([td.MarginalConstraint("one")], td.Domain(one=td.Integer(0, 0))), "says nothing"),
        (lambda: bind_constraints([td.MarginalConstraint("a")], td.Domain(a=td.Integer(0, 2**22))), "more than 2.22 cells"),
        (lambda: bind_constraints([td.MarginalConstraint("sex")] * 2000, DOMAIN), "are declared, .* are offered"),
        (lambda: bind_constraints("sex", DOMAIN), "a list of CountConstraint and MarginalConstraint"),
    ],
)  # fmt: skip
def test_declarations_that_are_none(make: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        make()


def test_a_release_needs_the_answer() -> None:
    with pytest.raises(SpecificationError, match="no answer is stated; releases need it"):
        bound(td.CountConstraint({"sex": "m"})).is_broken(TABLE.counts("sex"))


def test_counts_are_named_in_words() -> None:
    codes = td.Domain(code=td.Categorical([f"c{i}" for i in range(9)]), age=td.Integer(0, 9))
    [one] = bind_constraints(
        [td.CountConstraint({"code": [f"c{i}" for i in range(7)], "age": (2, 4)}, 1)], codes
    )
    assert (
        one.title == "the number of records with code = c0 or c1 or c2 or c3 or 3 others and age from 2 to 4"
    )
    [one] = bind_constraints([td.CountConstraint({"code": ["c0", "c5"]}, 1)], codes)
    assert one.title == "the number of records with code = c0 or c5"


# ---------- what a policy refuses ----------

POLICY = td.Policy(DOMAIN, td.Within(1, on="age"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: td.Policy(DOMAIN, td.Full(), people={"id": "a"}), "policy.people: a People, not a table"),  # type: ignore[arg-type]
        (lambda: td.Policy(DOMAIN, td.Full(), presence="no"), "policy.presence"),
        (lambda: td.Policy(DOMAIN, td.Within(1, on="age"), exempt={"age": [1]}), "is a secret of this policy"),
        (lambda: POLICY.sensitivity(td.CDF("age"), reading="one"), "reading: "),
        (lambda: POLICY.sensitivity(td.CDF("age"), norm="l3"), "norm: "),
        (lambda: POLICY.sensitivity(td.CDF("age"), records="1/2"), "records: "),
        (lambda: POLICY.sensitivity(td.CDF("age"), records=0), "records: "),
        (lambda: td.Policy.from_spec({"domain": {}}), r"policy\.secrets: required"),
        (lambda: td.Policy.from_spec(POLICY.to_spec() | {"order": ["age"]}), "policy.order: the attributes of the domain, each once"),
        (lambda: td.Policy.from_spec(POLICY.to_spec() | {"order": "age"}), "policy.order"),
        (lambda: exempt_of(["sex"]), "policy.exempt: a table such as"),
    ],
)  # fmt: skip
def test_policies_that_are_none(make: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        make()


def test_records_bound_what_known_counts_let_move() -> None:
    """Of one record nobody else can make up for a change: under a known count it stays within its class."""
    known = td.Policy(td.Domain(x=td.Integer(0, 9)), td.Within(1), [td.CountConstraint({"x": (0, 4)}, 1)])
    free = known.sensitivity(td.CDF("x"))
    assert known.sensitivity(td.CDF("x"), records=1).value < free.value


def test_policies_keep_the_order_of_their_attributes_and_who_is_exempt() -> None:
    policy = td.Policy(DOMAIN, td.Within(1, on="age"), exempt={"sex": ["m"]})
    told = policy.to_spec()
    assert told["exempt"] == {"sex": ["m"]} and td.Policy.from_spec(told).hash == policy.hash
    back = td.Policy.from_spec(told | {"order": list(reversed(DOMAIN.names))})
    assert back.domain.names == tuple(reversed(DOMAIN.names)) and back.hash != policy.hash


# ---------- what a channel refuses ----------

PAIR = td.Domain(sex=td.Categorical(["f", "m"]))
SWAP = td.Channel.of_matrix([[0.75, 0.25], [0.25, 0.75]], PAIR)
WIDE = td.Channel.of_matrix([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], PAIR, td.Domain(z=td.Integer(0, 2)))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: td.Channel.of_matrix(np.eye(2), PAIR, source="somebody"), "channel.source: one of"),
        (lambda: td.Channel.of_matrix(np.eye(3), PAIR), "channel"),
        (lambda: SWAP.then(WIDE).then(SWAP), "values are not the outputs of the first"),
        (lambda: WIDE.distortion(), "a channel to other outputs needs a table of losses"),
        (lambda: SWAP.rows([2]), "channel"),
        (lambda: SWAP.sample([-1]), "channel"),
        (lambda: SWAP.sample(["f"]), "channel"),
    ],
)  # fmt: skip
def test_channels_that_are_none(make: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        make()


def test_a_matrix_too_large_to_hold_is_refused_and_its_rows_are_not() -> None:
    plane = td.Domain(x=td.Numeric(0, 70, cells=70), y=td.Numeric(0, 70, cells=70))
    channel = td.channels.planar_geometric(plane, epsilon=1, epsilon_per=1)
    with pytest.raises(Unsupported, match=r"more than 2\^24 entries"):
        _ = channel.matrix
    assert channel.rows([0, 4899]).sum(axis=1) == pytest.approx(1)


def test_a_channel_says_what_it_is_and_what_it_was_fitted_on() -> None:
    private = td.Channel.of_matrix(np.eye(2), PAIR, source="private")
    assert repr(private) == "Channel(table: 2 values → 2 outputs, fitted on private rows)"
    assert repr(SWAP) == "Channel(table: 2 values → 2 outputs)" and private.guarantee == "measured"
    assert SWAP.then(WIDE).matrix == pytest.approx(SWAP.matrix @ WIDE.matrix)
    assert WIDE.distortion(metric=np.array([[0, 1, 2], [2, 1, 0]])) == pytest.approx(0.75)
