"""The gradient of the mean squared error over finitely many samples, plain and in blocks.

Only the weights of the two heads meet the samples: each block adds its share to the derivatives by the weights,
two vectors of length d, and one pullback at the end turns their means into gradients by the queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from sparsexor._arguments import (
    check_count,
    check_inputs,
    check_queries,
    check_size,
    check_support,
    check_tensor,
)
from sparsexor._reduce import combine_rows, dot_rows
from sparsexor.attention import Attention, check_attention, softmax

BLOCK = 256
"""Samples a block. It fixes the stream of samples and the order of the sums, so changing it changes results."""

MOST_WORKERS = 1024
"""More threads than this no machine should be asked for."""


def check_seed(seed: Any) -> int:
    """A seed: an integer in 0..2^64-1, the range of a Philox key."""
    return check_count("seed", seed, minimum=0, maximum=2**64 - 1)


def sample_block(seed: int, block: int, d: int, size: int = BLOCK) -> Float64[Tensor, "size d"]:
    """The first ``size`` inputs of one block of the stream ``seed``: independent uniform signs, on the CPU.

    Block number ``block`` starts numpy's Philox generator with the key ``seed`` at the counter ``block * 2^64``. A
    sample takes ``ceil(d / 64)`` words of 64 bits; bit k % 64 of its word k // 64 decides coordinate k, and a set
    bit is a -1. So any block is drawn without the ones before it, and a smaller ``size`` gives a prefix.

    Raises
    ------
    TypeError, ValueError
        If seed or block is not an integer in 0..2^64-1, d not an integer >= 2, or size not one in 1..BLOCK.
    """
    seed, block = check_seed(seed), check_count("block", block, minimum=0, maximum=2**64 - 1)
    d, size = check_count("d", d, minimum=2), check_count("size", size, minimum=1, maximum=BLOCK)
    check_size("d", size, d)
    words_a_sample = (d + 63) // 64
    words = np.random.Philox(key=seed, counter=block << 64).random_raw(size * words_a_sample)
    octets = words.astype("<u8").view(np.uint8).reshape(size, 8 * words_a_sample)
    bits = np.unpackbits(octets, axis=1, count=d, bitorder="little")
    return torch.from_numpy(1.0 - 2.0 * bits)


def _weight_gradients(
    a: Float64[Tensor, " d"], b: Float64[Tensor, " d"], x: Float64[Tensor, "n d"], y: Float64[Tensor, " n"]
) -> Float64[Tensor, "2 d"]:
    """The sums over samples of ``d (f - y)^2 / d a = -2 (f - y) (b . x) x``, and of the same by b."""
    head, head_tilde = dot_rows(x, a), dot_rows(x, b)
    residual = -head * head_tilde - y
    return torch.stack([combine_rows(-2 * residual * head_tilde, x), combine_rows(-2 * residual * head, x)])


def _block_gradients(
    a: Float64[Tensor, " d"], b: Float64[Tensor, " d"], support: tuple[int, int], n: int, seed: int, workers: int
) -> Iterator[Float64[Tensor, "2 d"]]:
    """The share of each block in the sums over n samples, in the order of the blocks."""
    i, j = support

    def share(block: int) -> Tensor:
        x = sample_block(seed, block, len(a), size=min(BLOCK, n - block * BLOCK)).to(a.device)
        return _weight_gradients(a, b, x, -x[:, i] * x[:, j])

    blocks = range((n + BLOCK - 1) // BLOCK)
    if workers == 1:
        yield from map(share, blocks)
        return
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(blocks), 4 * workers):  # a few blocks at a time: memory must not grow with n
            yield from pool.map(share, blocks[start : start + 4 * workers])


def empirical_gradient(
    V: Float64[Tensor, "d m"],
    theta: Float64[Tensor, " m"],
    theta_tilde: Float64[Tensor, " m"],
    support: Sequence[int],
    n: int,
    seed: int = 0,
    workers: int = 1,
    attention: Attention = softmax,
) -> tuple[Float64[Tensor, " m"], Float64[Tensor, " m"]]:
    r"""Gradient of the mean squared error over n fresh uniform samples, with respect to both query vectors.

    :math:`\nabla_\theta \frac1n \sum_r (f(x^r) - y^r)^2` with :math:`f(x) = -(a \cdot x)(b \cdot x)` and
    :math:`y = -x_i x_j`. The samples are those of :func:`sample_block` for the blocks 0, 1, 2, ...: n samples are the
    first n of every larger n. O(nd + dm) time, and memory that does not depend on n.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta, theta_tilde
        Query vectors, shape (m,).
    support
        The pair (i, j), two different integers in 0..d-1.
    n
        Number of samples, from 1 to 2^53.
    seed
        Names the stream of samples: an integer in 0..2^64-1.
    workers
        Number of threads that draw and add blocks, from 1 to 1024; the result does not depend on it, to the last bit.
    attention
        How scores become weights.

    Returns
    -------
    g, g_tilde
        The two gradients, shape (m,) each, cut off from autograd.

    Raises
    ------
    TypeError
        If a tensor is not torch.float64, a number is not an integer, or ``attention`` is no attention.
    ValueError
        If a shape is wrong, an entry is not finite, a row of V is not a unit vector, the support is not allowed, or n,
        seed or workers is out of range.
    """
    V, theta, theta_tilde = (t.detach() for t in check_queries(V, theta, theta_tilde))
    support = check_support(support, len(V))
    n = check_count("n", n, minimum=1)
    seed = check_seed(seed)
    workers = check_count("workers", workers, minimum=1, maximum=MOST_WORKERS)
    attention = check_attention(attention)
    a, b = attention.weights(V, theta), attention.weights(V, theta_tilde)
    total = torch.zeros(2, len(V), dtype=V.dtype, device=V.device)
    for share in _block_gradients(a, b, support, n, seed, workers):
        total += share
    return attention.pullback(V, theta, total[0] / n), attention.pullback(V, theta_tilde, total[1] / n)


def _check_batch(batch: Any, V: Float64[Tensor, "d m"]) -> tuple[Tensor, Tensor]:
    """One batch (x, y) of signs, of the shapes (n, d) and (n,), on V's device."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(f"batches: got an item of type {type(batch).__name__}; expected pairs (x, y)")
    x = check_inputs(batch[0], len(V))
    y = check_tensor("y", batch[1], (len(x),))
    if not bool((y.abs() == 1).all()):
        raise ValueError("y: got entries other than -1 and +1; expected an (n,) tensor of signs")
    for name, value in (("x", x), ("y", y)):
        if value.device != V.device:
            raise ValueError(f"{name}: got device {value.device}; expected V's device {V.device}")
    return x.detach(), y.detach()


def empirical_gradient_from_data(
    V: Float64[Tensor, "d m"],
    theta: Float64[Tensor, " m"],
    theta_tilde: Float64[Tensor, " m"],
    batches: Iterable[tuple[Float64[Tensor, "_n d"], Float64[Tensor, " _n"]]],
    attention: Attention = softmax,
) -> tuple[Float64[Tensor, " m"], Float64[Tensor, " m"]]:
    """Gradient of the mean squared error over given samples, with respect to both query vectors.

    Every sample counts the same, whatever the sizes of the batches. Batches are read one after the other, so they
    may come from a generator.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta, theta_tilde
        Query vectors, shape (m,).
    batches
        Pairs (x, y) of float64 signs of shapes (n, d) and (n,), at least one sample in all; n may vary.
    attention
        How scores become weights.

    Returns
    -------
    g, g_tilde
        The two gradients, shape (m,) each, cut off from autograd.

    Raises
    ------
    TypeError
        If a tensor is not torch.float64, ``batches`` does not yield pairs, or ``attention`` is no attention.
    ValueError
        If a shape is wrong, an entry is not allowed, a row of V is not a unit vector, or there is no sample.
    """
    V, theta, theta_tilde = (t.detach() for t in check_queries(V, theta, theta_tilde))
    attention = check_attention(attention)
    if isinstance(batches, Tensor) or not isinstance(batches, Iterable):
        raise TypeError(f"batches: got {type(batches).__name__}; expected an iterable of pairs (x, y)")
    a, b = attention.weights(V, theta), attention.weights(V, theta_tilde)
    total = torch.zeros(2, len(V), dtype=V.dtype, device=V.device)
    n = 0
    for batch in batches:
        x, y = _check_batch(batch, V)
        n += len(x)
        for x_part, y_part in zip(x.split(BLOCK), y.split(BLOCK), strict=True):
            if len(x_part):
                total += _weight_gradients(a, b, x_part, y_part)
    if n == 0:
        raise ValueError("batches: got no samples; expected at least one")
    return attention.pullback(V, theta, total[0] / n), attention.pullback(V, theta_tilde, total[1] / n)
