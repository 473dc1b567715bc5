r"""An estimate of leakage by a network that is no classifier (MINE), beside the bounds that attackers give.

    I(X; Z) = max over functions T of  E T(x, z) − ln E_{p(x) p(z)} e^{T(x, z)}        (Donsker and Varadhan)

T is a network of the output with one figure for each secret. As secrets are few, the second mean is taken over all of them
exactly, and over outputs only by rows: Σ_x p_x e^{T(x, z)} = s(z), mean of s over rows.

*Its bias.* For the law itself every T gives a lower bound. From N rows the mean of s is an estimate, and minus its logarithm is
too large by about Var(s) / (2 N s̄²) nats on average (Jensen): the estimate may exceed the leakage. N rows cannot show much more
than ln N nats. T normalised, so that s is 1 everywhere, is a classifier, and E T − E ln s is never less than the figure here: that
is the attackers' bound, which has no such bias. Source: Belghazi et al. 2018; Donsker and Varadhan 1983.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from ...axes import Ints
from ..geometry import Floats
from ..lower_bound import LN2
from .networks import forward, fresh, plain, seen, standardising

STEPS = 60  # between two looks at the rows kept
LOOKS = 12
BATCH = 1024
RATE = 5e-3
WIDTHS = (64, 64)
DECAY = 0.3  # of weights; with it, and without waves, networks find more in noisy outputs than those that read values
MOST = 20.0  # nats that T may say


@dataclass(frozen=True)
class Estimate:
    """What Donsker and Varadhan's figure comes to.

    Attributes:
        bits: of rows that the network did not learn from.
        interval: by the normal law of the two means, without the bias.
        bias: bits by which it is too large on average, about.
    """

    bits: float
    interval: tuple[float, float]
    bias: float


def statistics_network(secrets: Ints, outputs: Floats, prior: Floats, rng: np.random.Generator) -> Any:
    """T as a function of outputs, shape (outputs, secrets), in nats, learned from these rows; needs JAX."""
    import jax

    def loss(told: Any, own: Any, xp: Any) -> Any:
        held = xp.clip(told, -MOST, MOST)
        right = xp.take_along_axis(held, own[:, None], axis=1).mean()
        return jax.scipy.special.logsumexp(held, b=xp.asarray(prior / len(told), xp.float32)) - right

    found = fitted(secrets, outputs, len(prior), loss, rng)
    return lambda asked: np.clip(found(asked), -MOST, MOST)


def classifying(told: Any, own: Any, xp: Any) -> Any:
    """Cross-entropy of logits, for ``fitted``."""
    import jax

    right = xp.take_along_axis(told, own[:, None], axis=1)[:, 0]
    return (jax.scipy.special.logsumexp(told, axis=1) - right).mean()


def fitted(secrets: Ints, outputs: Floats, n_secrets: int, loss: Any, rng: np.random.Generator) -> Any:
    """A network of outputs with one figure for each secret, of least loss; needs JAX.

    Of what it goes through, the state is kept that does best on a fifth of the rows: it would learn the others by heart.

    Args:
        loss: of figures, shape (rows, secrets), and the secrets of the rows.
    """
    import jax
    import jax.numpy as jnp
    import optax

    kept = max(1, len(secrets) // 5)
    inputs = standardising(outputs, np.full(len(secrets), 1.0 / len(secrets)), 0, rng)
    shown, own = jnp.asarray(seen(inputs, outputs), jnp.float32), jnp.asarray(secrets)
    start = fresh((shown.shape[1], *WIDTHS, n_secrets), rng)
    layers = tuple((jnp.asarray(w, jnp.float32), jnp.asarray(b, jnp.float32)) for w, b in start)
    rule = optax.adamw(optax.cosine_decay_schedule(RATE, STEPS * LOOKS, 0.02), weight_decay=DECAY)
    size = min(BATCH, len(secrets) - kept)

    def of(layers: Any, rows: Any) -> Any:
        return loss(forward(layers, shown[rows], jnp), own[rows], jnp)

    def step(held: Any, key: Any) -> Any:
        layers, state = held
        rows = jax.random.randint(key, (size,), kept, len(own))
        push, state = rule.update(jax.grad(of)(layers, rows), state, layers)
        return (optax.apply_updates(layers, push), state), None

    run = jax.jit(lambda held, keys: jax.lax.scan(step, held, keys)[0])
    check = jax.jit(lambda layers: of(layers, jnp.arange(kept)))
    held, best, least = (layers, rule.init(layers)), layers, np.inf
    for keys in jax.random.split(jax.random.key(int(rng.integers(2**31))), (LOOKS, STEPS)):
        held = run(held, keys)
        worth = float(check(held[0]))
        if worth < least:
            best, least = held[0], worth
    done = plain(best)
    return lambda asked: np.asarray(forward(done, seen(inputs, asked)))


def estimated(
    told: Floats, secrets: Ints, weights: Floats, prior: Floats, row: Ints, level: float
) -> Estimate:
    """The figure from T of outputs that the network did not learn from.

    Args:
        told: T, shape (outputs, secrets).
        secrets, weights: of outputs, weights summing to 1.
        row: of outputs; those of one row are no samples of their own.
        level: of the two-sided interval.

    >>> each = np.full(4, 0.25)
    >>> sure = np.log(np.array([[2.0, 1e-9], [2.0, 1e-9], [1e-9, 2.0], [1e-9, 2.0]]))
    >>> found = estimated(sure, np.array([0, 0, 1, 1]), each, np.array([0.5, 0.5]), np.arange(4), 0.99)
    >>> round(found.bits, 6), round(found.bias, 6)
    (1.0, 0.0)
    """
    right = told[np.arange(len(told)), secrets]
    scale = np.exp(told) @ prior
    mean = float(weights @ scale)
    pull = right - scale / mean
    rows = len(np.unique(row))
    off = np.bincount(row, weights * (pull - float(weights @ pull)))
    spread = np.bincount(row, weights * (scale / mean - 1))
    few = rows / max(rows - 1, 1)
    bits = (float(weights @ right) - float(np.log(mean))) / LN2
    reach = NormalDist().inv_cdf((1 + level) / 2) * float(np.sqrt(few * np.square(off).sum())) / LN2
    return Estimate(bits, (bits - reach, bits + reach), few * float(np.square(spread).sum()) / 2 / LN2)
