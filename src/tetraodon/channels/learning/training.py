"""Training of channels with output points: gradient steps on the leakage itself, compiled, with a multiplier for the distortion.

With finitely many outputs the leakage of the rows is a plain function of the parameters and needs no adversary to be
estimated: the best classifier is the posterior, in closed form. The multiplier follows the distortion of rows that are held
out, so that what is learned keeps the budget on fresh rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..geometry import Floats
from ..lower_bound import LN2
from .atoms import Atoms, told
from .networks import Layers, distances, forward, fresh, information, plain, seen, softmax, standardising
from .samples import Samples
from .starting import Start
from .watching import Checkpoint, Look

SHARP = (10.0, 60.0)  # from the first to the last step, for a budget of 1
RISE = 0.7  # part of the steps in which it grows
RATE = {"offsets": 0.005, "points": 0.005, "posterior": 1e-3}
PULL = 0.1  # rate of the multiplier
STIFF = 5.0
PART = 50  # steps between two looks at the held-out rows
MOST = 12_000  # rows that a step works on
CHECKED = 6_000  # rows held out that a step looks at
WIDTHS = (64, 64)
WAVES = 64
STRETCH = 1.1
NEAR = 0.01
HALVES = 11


def classifier(
    samples: Samples, steps: int, rng: np.random.Generator
) -> tuple[tuple[Floats, Floats], Layers]:
    """Inputs and layers of P(secret | value), by cross-entropy; samples in scaled coordinates."""
    import jax
    import jax.numpy as jnp
    import optax

    samples = samples.at_most(MOST, rng)
    inputs = standardising(samples.values, samples.weights, WAVES, rng)
    values = jnp.asarray(seen(inputs, samples.values), jnp.float32)
    layers = _single(fresh((values.shape[1], *WIDTHS, samples.n_secrets), rng))
    secrets = jnp.asarray(samples.secrets)
    weights = jnp.asarray(samples.weights * samples.rows, jnp.float32)
    size = min(1024, samples.rows)
    rule = optax.adam(optax.cosine_decay_schedule(5e-3, steps, 0.01))

    def loss(layers: Any, rows: Any) -> Any:
        logits = forward(layers, values[rows], jnp)
        found = optax.softmax_cross_entropy_with_integer_labels(logits, secrets[rows])
        return (weights[rows] * found).mean()

    def step(held: Any, key: Any) -> Any:
        layers, state = held
        rows = jax.random.randint(key, (size,), 0, samples.rows)
        push, state = rule.update(jax.grad(loss)(layers, rows), state, layers)
        return (optax.apply_updates(layers, push), state), None

    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), steps)
    (layers, _), _ = jax.jit(lambda held: jax.lax.scan(step, held, keys))((layers, rule.init(layers)))
    made: Layers = plain(layers)
    return inputs, made


def first(
    begun: Start, samples: Samples, network: tuple[tuple[Floats, Floats], Layers], metric: str
) -> Atoms:
    """The start in the generator's form, its offsets set so that every secret's outputs are as common as they should be.

    ``begun`` and ``samples`` in scaled coordinates.
    """
    if begun.multiplier > 0:
        offsets = -begun.gains / begun.multiplier
    else:
        offsets = np.log(np.maximum(begun.masses, 1e-7)) / SHARP[0]
    offsets = offsets - offsets.mean(axis=1, keepdims=True)
    atoms = Atoms(begun.points, np.clip(offsets, -1e3, 1e3), SHARP[0], *network, metric)
    wanted = np.maximum(begun.masses, 1e-7)
    part = samples.only(np.arange(0, samples.rows, max(1, samples.rows // 4000)))
    for _ in range(40):  # Sinkhorn's steps: exact where values show their secret
        joint = told(atoms, part).joint
        share = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        lift = np.log(wanted / np.maximum(share, 1e-9)) / SHARP[0]
        atoms = replace(atoms, offsets=atoms.offsets + np.clip(lift, -1.0, 1.0))
    return atoms


def refined(
    atoms: Atoms,
    multiplier: float,
    budget: float,
    train: Samples,
    held_out: Samples,
    steps: int,
    rng: np.random.Generator,
    tell: Callable[[Look], None],
    stop: Callable[[], bool],
    checkpoint: Checkpoint | None = None,
) -> tuple[Atoms, list[Look]]:
    """Gradient steps on leakage and distortion; of what was seen, the best on the rows held out.

    Args:
        atoms, train, held_out: in scaled coordinates.
        budget: for the distortion of the rows held out, about 1.
        multiplier: nats for a distortion of 1, to begin with.
        tell: is told of every look; ``stop`` ends training early.
        checkpoint: where the state is kept after every look, and taken from where there is one.
    """
    import jax
    import jax.numpy as jnp
    import optax

    learn = _arrays(train.at_most(MOST, rng), atoms.inputs, jnp)
    check = _arrays(held_out.at_most(CHECKED, rng), atoms.inputs, jnp)
    low, high = SHARP
    rise = max(1.0, RISE * steps)
    rules = {
        name: optax.chain(
            optax.adam(1.0), optax.scale(rate), optax.scale_by_schedule(optax.cosine_decay_schedule(1.0, steps, 0.02))
        )
        for name, rate in RATE.items()
    }  # fmt: skip
    held = {"offsets": atoms.offsets, "points": atoms.points, "posterior": atoms.posterior}
    params = _single(held)
    rule = optax.multi_transform(rules, {name: name for name in rules})

    def looked(params: Any, rows: Any, sharp: Any) -> Any:
        values, shown, given = rows
        apart = distances(values, params["points"], atoms.metric, jnp)
        hidden = softmax(forward(params["posterior"], shown, jnp), jnp)
        law = softmax(sharp * (hidden @ params["offsets"] - apart), jnp)
        return information(given.T @ law, jnp), (given.sum(axis=1) * (law * apart).sum(axis=1)).sum()

    def loss(params: Any, mu: Any, sharp: Any) -> Any:
        leak, distortion = looked(params, learn, sharp)
        over = distortion - budget
        return leak + mu * over + STIFF * jnp.maximum(over, 0.0) ** 2, leak

    def step(held: Any, at: Any) -> Any:
        params, state, mu = held
        sharp = low * jnp.exp(jnp.log(high / low) * jnp.minimum(at / rise, 1.0))
        (_, leak), slope = jax.value_and_grad(loss, has_aux=True)(params, mu, sharp)
        push, state = rule.update(slope, state, params)
        params = optax.apply_updates(params, push)
        other, distortion = looked(params, check, sharp)
        return (params, state, jnp.maximum(mu + PULL * (distortion - budget), 0.0)), (leak, other, distortion)

    run = jax.jit(lambda held, at: jax.lax.scan(step, held, at))
    state = (params, rule.init(params), jnp.float32(multiplier))
    kinds: Any = jax.tree.structure(state)
    looks: list[Look] = []
    best, least, begin = params, np.inf, 0
    found = None if checkpoint is None else checkpoint.load()
    if found is not None:
        begin, leaves, looks = found
        count = kinds.num_leaves
        state = jax.tree.unflatten(kinds, [jnp.asarray(leaf) for leaf in leaves[:count]])
        best = jax.tree.unflatten(jax.tree.structure(params), [jnp.asarray(v) for v in leaves[count:-1]])
        least = float(leaves[-1])
    for start in range(begin, steps, PART):
        count = np.arange(start, min(start + PART, steps), dtype=np.float32)
        state, (leak, other, distortion) = run(state, count)
        look = Look(start + len(count), float(leak[-1]) / LN2, float(other[-1]) / LN2, float(distortion[-1]))
        looks.append(look)
        tell(look)
        worth = look.held_out * LN2 + float(state[2]) * (look.distortion - budget)
        if look.step < rise or worth < least:  # while the sharpness grows, the last is the one
            best, least = state[0], worth if look.step >= rise else np.inf
        if checkpoint is not None:
            checkpoint.save(
                look.step, [*jax.tree.leaves(state), *jax.tree.leaves(best), np.float64(least)], looks
            )
        if stop():
            break
    reached = min(looks[-1].step / rise, 1.0) if looks else 0.0
    return _kept(atoms, best, low * (high / low) ** reached), looks


def calibrated(atoms: Atoms, samples: Samples, errors: float, every: Samples) -> Atoms | None:
    """The same with offsets stretched or shrunk until the distortion of these rows, and so many of its standard errors on top,
    come to the budget of 1, and that of every row does not exceed it. None where no factor keeps it.

    Offsets of 0 send every value to its nearest point, larger ones farther.
    """

    def keeps(factor: float) -> bool:
        tried = replace(atoms, offsets=atoms.offsets * factor)
        found = told(tried, samples)
        return found.distortion + errors * found.error <= 1 and (
            every is samples or told(tried, every).distortion <= 1
        )

    # Near 1 first: offsets are long beside 1/τ, so that a factor's last digits matter.
    factors = (0.0, 1.0 - NEAR, 1.0, 1.0 + NEAR, STRETCH)
    at = 2
    if keeps(1.0):
        while at + 1 < len(factors) and keeps(factors[at + 1]):
            at += 1
    else:
        at = next((lower for lower in (1, 0) if keeps(factors[lower])), -1)
    if at < 0:
        return None
    low, high = factors[at], factors[min(at + 1, len(factors) - 1)]
    for _ in range(HALVES if high > low else 0):
        half = (low + high) / 2
        low, high = (half, high) if keeps(half) else (low, half)
    return replace(atoms, offsets=atoms.offsets * low)


def _kept(atoms: Atoms, params: Any, sharp: float) -> Atoms:
    own = plain(params)
    return replace(
        atoms,
        points=own["points"],
        offsets=own["offsets"],
        posterior=own["posterior"],
        sharpness=float(sharp),
    )


def _arrays(samples: Samples, inputs: tuple[Floats, Floats], jnp: Any) -> Any:
    values, joint = samples.distinct
    return tuple(jnp.asarray(a, jnp.float32) for a in (values, seen(inputs, values), joint.T))


def _single(tree: Any) -> Any:
    """The same nest with JAX arrays of single precision."""
    import jax
    import jax.numpy as jnp

    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)
