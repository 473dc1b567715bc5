"""The adversarial game, Algorithm 1: a generator of noise against a classifier that tries to tell the secret.

Each round the classifier goes back to its first weights and learns, by cross-entropy, to tell secrets from what the generator
puts out; then it stands still while the generator descends on ``stakes.loss``. Of the generators of all rounds the best on rows
held out is kept. Rounds are compiled whole, and run on whatever device JAX finds.

Both informations descend on a frozen classifier, whose best response would be to swap the secrets' places; it is the small
steps between two rounds that keep "posterior" from it ("paper" cannot tell a swap at all).
Source: Romanelli, Chatzikokolakis, Palamidessi 2020, Algorithm 1; the second information, and how rows are drawn, are derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..geometry import Floats
from ..lower_bound import LN2
from .networks import forward, fresh, plain, seen
from .noising import Noising, lengths, moved, needed, spherical
from .samples import Samples
from .stakes import OBJECTIVES, Rules, estimates, log_softmax, loss
from .watching import Checkpoint, Look

BATCHES = (128, 256, 512, 1024, 2048)
STEADY = 0.04  # of itself: what an estimate may vary by, as a standard deviation over batches
HELD_BATCHES = 32
MOST = 50_000  # rows learned from
CHECKED = 8192  # draws from rows held out, each round
CLASSIFIER = (64, 64)
# How many waves a classifier sees of outputs, and how much finer than 4 deviations the finest is. A smooth one guides the
# generator farther; the one that judges in the end sees more.
PLAYER = (0, 1.0)
JUDGE = (32, 60.0)
CLASSIFIER_RATE = 5e-3
GENERATOR_RATE = 1e-3
OVER = 50.0  # nats that an iterate loses for a distortion of twice the budget, when the best is chosen
BETTER = 0.02  # of what it was, and so many nats on top: what counts as a better generator
LEAST = 1e-5
MEMORY = 0.99  # of the running mean of the generator's weights, a step


@dataclass(frozen=True)
class Round(Look):
    """Where the game stands: ``held_out`` and ``leak`` are lower bounds by the round's classifier.

    Attributes:
        guessed: bits by the paper's estimate, of rows held out.
    """

    guessed: float = 0.0

    def words(self, bound: float | None) -> str:
        """For the line that is shown."""
        return f"{super().words(bound)}, by the paper's estimate {self.guessed:.3f}"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows from which batches are drawn: in strata, so that each batch has every secret with its share.

    Attributes:
        values, secrets: ordered by secret.
        edges: cumulated weights.
        targets: one-hot secret of each code.
    """

    values: Any
    secrets: Any
    edges: Any
    targets: Any

    @staticmethod
    def of(samples: Samples) -> Rows:
        """Rows on the device."""
        import jax.numpy as jnp

        order = np.argsort(samples.secrets, kind="stable")
        return Rows(
            jnp.asarray(samples.values[order], jnp.float32), jnp.asarray(samples.secrets[order]),
            jnp.asarray(np.cumsum(samples.weights[order]), jnp.float32), jnp.eye(samples.n_secrets, dtype=jnp.float32),
        )  # fmt: skip

    def drawn(self, key: Any, count: int, mean: Any) -> tuple[Any, Any, Any]:
        """A batch: values, one-hot secrets, and fresh noise of this mean length."""
        import jax
        import jax.numpy as jnp

        axes = self.values.shape[1]
        uniforms = jax.random.uniform(
            key, (count, 1 + needed(axes))
        )  # all at once: what is drawn once compiles once
        at = (jnp.arange(count) + uniforms[:, 0]) / count
        rows = jnp.minimum(jnp.searchsorted(self.edges, at), len(self.edges) - 1)
        noise = spherical(uniforms[:, 1:], mean, jnp)
        return self.values[rows], self.targets[self.secrets[rows]], noise


@dataclass(frozen=True, eq=False)
class Table:
    """What both players have before them.

    Attributes:
        train, check: rows learned from, and held out.
        begun: the generator at its start.
        first: weights to which the classifier goes back.
        log_prior: of secrets.
        waves: directions in which the classifier sees waves, of outputs in standard deviations.
    """

    train: Rows
    check: Rows
    begun: Noising
    first: Any
    log_prior: Any
    waves: Any

    @staticmethod
    def laid(
        train: Samples,
        held_out: Samples,
        begun: Noising,
        rng: np.random.Generator,
        sees: tuple[int, float] = PLAYER,
    ) -> Table:
        """The table of these rows, in scaled coordinates."""
        import jax
        import jax.numpy as jnp

        waves = _waves(begun.axes, *sees, rng)
        first = fresh((begun.axes + 2 * sees[0], *CLASSIFIER, train.n_secrets), rng)
        single = jax.tree.map(
            lambda a: jnp.asarray(a, jnp.float32), (first, begun.inputs, begun.layers, waves)
        )
        return Table(
            Rows.of(train), Rows.of(held_out), replace(begun, inputs=single[1], layers=single[2]), single[0],
            jnp.asarray(np.log(train.prior), jnp.float32), single[3],
        )  # fmt: skip

    def answering(self, layers: Any, key: Any, steps: int, size: int) -> Any:
        """A classifier (inputs and layers) of this generator's outputs, from its first weights by ``steps`` of cross-entropy."""
        import jax
        import jax.numpy as jnp
        import optax

        begun = self.begun
        rule = optax.adam(optax.cosine_decay_schedule(CLASSIFIER_RATE, steps, 0.02))

        def put_out(key: Any, count: int) -> tuple[Any, Any]:
            values, targets, noise = self.train.drawn(key, count, begun.mean)
            return values + moved(begun, layers, values, noise, jnp), targets

        some, _ = put_out(jax.random.fold_in(key, 0), CHECKED)
        spread = some.std(axis=0) + 1e-6
        inputs = some.mean(axis=0), self.waves / spread[:, None]

        def cross(own: Any, shown: Any, targets: Any) -> Any:
            return -(targets * log_softmax(forward(own, shown, jnp), jnp)).sum(axis=1).mean()

        def step(held: Any, key: Any) -> Any:
            own, state = held
            outputs, targets = put_out(key, size)
            push, state = rule.update(jax.grad(cross)(own, seen(inputs, outputs, jnp), targets), state, own)
            return (optax.apply_updates(own, push), state), None

        keys = jax.random.split(jax.random.fold_in(key, 1), steps)
        (own, _), _ = jax.lax.scan(step, (self.first, rule.init(self.first)), keys)
        return inputs, own

    def measured(
        self, layers: Any, classifier: Any, rows: Rows, key: Any, count: int
    ) -> tuple[Any, Any, Any]:
        """Both estimates in nats, and the distortion, of fresh draws."""
        import jax.numpy as jnp

        begun = self.begun
        values, targets, noise = rows.drawn(key, count, begun.mean)
        moves = moved(begun, layers, values, noise, jnp)
        answers = log_softmax(forward(classifier[1], seen(classifier[0], values + moves, jnp), jnp), jnp)
        return *estimates(answers, targets, self.log_prior, jnp), lengths(moves, begun.metric, jnp).mean()


def steady_batch(table: Table, rules: Rules, key: Any) -> int:
    """The least of ``BATCHES`` whose estimate of the start's information varies little over batches of rows held out."""
    import jax

    begun = table.begun
    classifier = jax.jit(lambda key: table.answering(begun.layers, key, rules.classifier_steps, BATCHES[2]))(
        key
    )
    which = OBJECTIVES.index(rules.objective)
    keys = jax.random.split(jax.random.fold_in(key, 2), HELD_BATCHES)
    for size in BATCHES:
        told = jax.jit(
            jax.vmap(
                lambda key, size=size: table.measured(begun.layers, classifier, table.check, key, size)[which]
            )
        )(keys)
        if float(np.std(told)) <= STEADY * float(np.mean(told)):
            return size
    return BATCHES[-1]


def play(
    table: Table,
    rules: Rules,
    start: int,
    tell: Callable[[Look], None],
    stop: Callable[[], bool],
    checkpoint: Checkpoint | None = None,
) -> tuple[Noising, list[Round], int]:
    """Rounds of the game; of the generators that were measured, the best on rows held out, with the batch that was used.

    Args:
        tell: is told of every round; ``stop`` ends the game early.
        checkpoint: where the state is kept after every round, and taken from where there is one.
    """
    import jax
    import jax.numpy as jnp
    import optax

    key = jax.random.key(start)
    size = rules.batch or steady_batch(table, rules, jax.random.fold_in(key, rules.rounds + 1))
    begun = table.begun
    total = rules.rounds * rules.generator_steps
    rule = optax.adam(optax.cosine_decay_schedule(GENERATOR_RATE, total, 0.02))

    def round_of(held: Any, at: Any) -> Any:
        layers = held[0]
        own = jax.random.fold_in(key, at)
        classifier = table.answering(layers, own, rules.classifier_steps, size)
        known = table.measured(layers, classifier, table.train, jax.random.fold_in(own, 2), CHECKED)
        other = table.measured(layers, classifier, table.check, jax.random.fold_in(own, 3), CHECKED)

        def step(held: Any, key: Any) -> Any:
            layers, state, mean = held
            batch = table.train.drawn(key, size, begun.mean)
            slope = jax.grad(loss)(layers, begun, classifier, batch, table.log_prior, rules, jnp)
            push, state = rule.update(slope, state, layers)
            layers = optax.apply_updates(layers, push)
            mean = jax.tree.map(lambda a, b: MEMORY * a + (1 - MEMORY) * b, mean, layers)
            return (layers, state, mean), None

        keys = jax.random.split(jax.random.fold_in(own, 4), rules.generator_steps)
        held, _ = jax.lax.scan(step, held, keys)
        return held, known, other

    run = jax.jit(round_of)
    state = (begun.layers, rule.init(begun.layers), begun.layers)
    kinds: Any = jax.tree.structure(state)
    looks: list[Round] = []
    best, least, waited, first = begun.layers, float(np.finfo(float).max), 0, 0
    found = None if checkpoint is None else checkpoint.load(Round)
    if found is not None:
        first, leaves, looks = found
        count = kinds.num_leaves
        state = jax.tree.unflatten(kinds, [jnp.asarray(leaf) for leaf in leaves[:count]])
        best = jax.tree.unflatten(jax.tree.structure(best), [jnp.asarray(leaf) for leaf in leaves[count:-2]])
        least, waited = float(leaves[-2]), int(leaves[-1])
    for at in range(first, rules.rounds + 1):
        if waited >= rules.patience:
            break
        if at == rules.rounds:  # only measured: the running mean, in which the game's to and fro cancels
            state = (state[2], *state[1:])
        here = state[0]
        state, known, other = run(state, at)
        posterior, guessed, distortion = (float(number) for number in other)
        look = Round(at, float(known[0]) / LN2, posterior / LN2, distortion, guessed / LN2)
        looks.append(look)
        tell(look)
        worth = posterior if rules.objective == "posterior" else guessed
        worth = max(worth, 0.0) + OVER * max(distortion - 1, 0.0)
        waited = 0 if worth < least * (1 - BETTER) - LEAST else waited + 1
        if worth <= least:  # among equals the later
            best, least = here, worth
        if checkpoint is not None:
            checkpoint.save(
                at + 1,
                [*jax.tree.leaves(state), *jax.tree.leaves(best), np.float64(least), np.int64(waited)],
                looks,
            )
        if stop():
            break
    return replace(begun, inputs=plain(begun.inputs), layers=plain(best)), looks, size


def answered(table: Table, start: int, steps: int, size: int) -> Any:
    """Inputs and layers of a classifier of the generator that the table begins with, as plain arrays."""
    import jax

    run = jax.jit(lambda key: table.answering(table.begun.layers, key, steps, size))
    return plain(run(jax.random.key(start)))


def _waves(axes: int, waves: int, finest: float, rng: np.random.Generator) -> Floats:
    """Axes, and random directions of waves of 4 down to 4/finest standard deviations; shape (axes, axes + waves)."""
    turns = rng.normal(size=(axes, waves))
    turns /= np.linalg.norm(turns, axis=0, keepdims=True)
    lengths_ = 4.0 * finest ** -rng.uniform(size=waves)
    return np.concatenate([np.eye(axes), turns * (2 * np.pi / lengths_)], axis=1)
