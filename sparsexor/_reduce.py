"""Sums over the positions whose last bit does not depend on the number of threads.

``torch.sum`` over a whole tensor and BLAS products split their work among the threads, and floating-point
addition is not associative: one thread and two threads differ in the last bits. The two sums here have an order that
the shapes alone decide: a balanced tree of elementwise additions, and one serial sum a row.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float64
from torch import Tensor

ROUNDOFF = 2.0**-53
"""u: the largest relative error of one operation in float64."""


def sum_positions(terms: Float64[Tensor, " d *rest"]) -> Float64[Tensor, " *rest"]:
    """Sum over the first axis (of size at least 1) by a balanced tree: row k meets row k + half, again and again.

    The rounding error is at most about ``log2(d)`` units in the last place of ``sum(abs(terms))``; time and
    memory are those of ``terms``.
    """
    while len(terms) > 1:
        half = len(terms) // 2
        pairs = terms[:half] + terms[half : 2 * half]
        terms = torch.cat([pairs, terms[-1:]]) if len(terms) % 2 else pairs
    return terms[0]


def dot_rows(rows: Float64[Tensor, "n m"], vector: Float64[Tensor, " m"]) -> Float64[Tensor, " n"]:
    """The products ``rows @ vector``, each summed along its own contiguous row by one thread."""
    return (rows * vector).contiguous().sum(dim=1)


def combine_rows(weights: Float64[Tensor, " d"], rows: Float64[Tensor, "d m"]) -> Float64[Tensor, " m"]:
    """The combination ``sum_k weights_k rows_k``."""
    return sum_positions(weights[:, None] * rows)


def tree_depth(d: int) -> int:
    """ceil(log2 d), the additions that a term goes through in a balanced sum of d terms."""
    return (d - 1).bit_length()


def norm(vector: Float64[Tensor, " m"]) -> float:
    """The Euclidean norm, without overflow or underflow on the way."""
    return math.hypot(*vector.tolist())
