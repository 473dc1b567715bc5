"""Small networks as plain arrays: layers of weights and offsets, ReLU between them. The same lines run under numpy and JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..geometry import Floats
from ..lower_bound import LN2

Layers = tuple[tuple[Any, Any], ...]


def fresh(sizes: Sequence[int], rng: np.random.Generator, last: float = 1.0) -> Layers:
    """Layers with Glorot's uniform weights.

    Args:
        sizes: inputs, hidden units, …, outputs.
        last: factor of the last layer's weights; 0 makes the network say 0 for everything.
    """
    found = []
    for at, (m, n) in enumerate(pairwise(sizes)):
        width = np.sqrt(6.0 / (m + n)) * (last if at == len(sizes) - 2 else 1.0)
        found.append((rng.uniform(-width, width, (m, n)), np.zeros(n)))
    return tuple(found)


def standardising(
    values: Floats, weights: Floats, waves: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """A fixed first layer: values by their means and standard deviations, and ``waves`` sines and cosines of random directions
    with wave lengths from the whole spread down to a hundredth of it, for what changes within short distances.

    Returns:
        Means, shape (dimensions,), and directions, shape (dimensions, dimensions + waves): the first ones are axes.
    """
    mean = weights @ values
    spread = np.sqrt(weights @ np.square(values - mean))
    spread = np.where(spread > 0, spread, 1.0)
    turns = rng.normal(size=(values.shape[1], waves))
    turns /= np.linalg.norm(turns, axis=0, keepdims=True)
    lengths = 4.0 * 100.0 ** -rng.uniform(size=waves)
    return mean, np.concatenate(
        [np.diag(1 / spread), turns / spread[:, None] * (2 * np.pi / lengths)], axis=1
    )


def seen(inputs: tuple[Any, Any], values: Any, xp: Any = np) -> Any:
    """What a network sees of values: the axes, and sine and cosine of every wave."""
    mean, directions = inputs
    told = (values - mean) @ directions
    axes = len(mean)
    return xp.concatenate([told[:, :axes], xp.sin(told[:, axes:]), xp.cos(told[:, axes:])], axis=1)


def forward(layers: Layers, inputs: Any, xp: Any = np) -> Any:
    """What the network says, shape (rows, outputs).

    Args:
        xp: numpy, or jax.numpy.
    """
    told = inputs
    for weights, offsets in layers[:-1]:
        told = xp.maximum(told @ weights + offsets, 0.0)
    weights, offsets = layers[-1]
    return told @ weights + offsets


def softmax(logits: Any, xp: Any = np) -> Any:
    """Probabilities along the last axis."""
    top = logits.max(axis=-1, keepdims=True)
    told = xp.exp(logits - top)
    return told / told.sum(axis=-1, keepdims=True)


def distances(values: Any, points: Any, metric: str, xp: Any = np) -> Any:
    """Distances with gradients that stay finite where a value meets a point; shape (values, points)."""
    found = 0.0
    for axis in range(points.shape[1]):
        gap = values[:, axis, None] - points[None, :, axis]
        found = found + (xp.sqrt(gap * gap + 1e-10) if metric == "manhattan" else gap * gap)
    return xp.sqrt(found + 1e-10) if metric == "euclidean" else found


def information(joint: Any, xp: Any = np) -> Any:
    """I in nats of a joint law that sums to 1, shape (secrets, outputs)."""
    there = joint + 1e-30
    return (joint * (xp.log(there) - xp.log(there.sum(axis=0)) - xp.log(there.sum(axis=1))[:, None])).sum()


def bits(joint: Floats) -> float:
    """``information`` in bits, without what rounding makes of nothing."""
    return max(float(information(joint)) / LN2, 0.0)


def plain(tree: Any) -> Any:
    """The same nest of tuples and dicts with numpy arrays of doubles."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, tuple | list):
        return tuple(plain(value) for value in tree)
    return np.asarray(tree, dtype=np.float64)


def numbers(tree: Any) -> list[Floats]:
    """All arrays of a nest, in order."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in numbers(tree[key])]
    if isinstance(tree, tuple | list):
        return [leaf for value in tree for leaf in numbers(value)]
    return [np.asarray(tree)]


def packed(inputs: tuple[Floats, Floats], layers: Layers) -> dict[str, Floats]:
    """The arrays of a network by name, as files hold them."""
    found = {f"inputs.{i}": array for i, array in enumerate(inputs)}
    for i, (weights, offsets) in enumerate(layers):
        found |= {f"layer.{i}.weights": weights, f"layer.{i}.offsets": offsets}
    return found


def unpacked(arrays: Mapping[str, Floats], count: int) -> tuple[tuple[Floats, Floats], Layers]:
    """Inputs and so many layers; the inverse of ``packed``.

    Raises:
        ValueError: an array of a file, whichever, that is not of floating-point numbers.
        KeyError: one is missing.
    """
    if any(array.dtype.kind != "f" for array in arrays.values()):
        raise ValueError
    layers = tuple((arrays[f"layer.{i}.weights"], arrays[f"layer.{i}.offsets"]) for i in range(count))
    return (arrays["inputs.0"], arrays["inputs.1"]), layers
