r"""How wrong the model can be on any of the 2^d inputs.

With :math:`a = \gamma`, :math:`b = \tilde\gamma`, the model is :math:`f(x) = -(a \cdot x)(b \cdot x)` and the label
:math:`y = -x_i x_j`. Weights are non-negative of sum one, so :math:`|f| \le 1` and :math:`|f - y| = 1 - y f`.

The bounds are rigorous in floating point. Their error analysis writes u = 2^-53 for the unit roundoff and
L = ceil(log2 d) for the depth of a tree of sums, and assumes IEEE double arithmetic and an ``exp`` that is right to 4
units in the last place wherever it does not underflow. Source: the chapter "One step", theorem `exact-sup`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from sparsexor._arguments import check_queries, check_support, check_weights
from sparsexor._reduce import ROUNDOFF, norm, sum_positions, tree_depth
from sparsexor.attention import Attention, Softmax, check_attention, softmax

UNDERFLOW = 2.0**-1020
"""More than one weight can lose to underflow in its exponential, its share and its ratio of weights together."""

SUM_TOLERANCE = 1e-9
"""How far above 1 the sum of attention weights may be."""

LARGEST_ERROR = 50.0
"""Rounding errors of scores up to which `sup_error` works with them, at the cost of a factor of up to e^50 in the bound."""

NODES = 256
"""Nodes that the branch and bound of `sup_over_inputs` may open."""

WORK = 2**22
"""Coordinates that those nodes may visit together; at d = 100,000 it opens 41 nodes."""


def sup_error(
    V: Float64[Tensor, "d m"],
    theta: Float64[Tensor, " m"],
    theta_tilde: Float64[Tensor, " m"],
    support: Sequence[int],
    attention: Attention = softmax,
) -> float:
    r"""An upper bound of the largest \|f(x) - y\| over all 2^d inputs, rounded outward; O(dm + d log d).

    It holds for the model in exact arithmetic at the given floating-point V, theta and theta_tilde, and for any
    queries. Up to rounding it is the largest error itself whenever that is below 1, and otherwise whenever the branch
    and bound of :func:`sup_over_inputs` closes.

    *Weights.* A computed weight is within a factor :math:`e^{\pm e}` of the exact one, up to underflow, with
    :math:`e = u\,(2.05\,(m + 3)\,|\theta| + L + 24)`: a score of m products is off by at most
    :math:`1.01\,m\,u\,|\theta|` in whatever order they are added; taking off the largest score costs another
    :math:`2.01\,u\,|\theta|` and the exponential 8u; each of these enters twice, with the weight and with the sum of
    all; the tree of that sum and the division add :math:`1.01 (L + 2) u`.

    *Both heads specialised*, the one on p, the other on q, {p, q} = {i, j}: their other weights sum to
    :math:`\alpha, \beta \le 1/2`. Then the exact largest error is computed with a small relative error from those other
    weights alone, so it is meaningful at 1e-30 too (see ``_specialised_sup``).

    *Otherwise* the bound is that of :func:`sup_over_inputs` for the computed weights, plus the 1-norms of the errors of
    both heads' weights: f is a product of two factors that are at most 1.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta, theta_tilde
        Query vectors, shape (m,).
    support
        The pair (i, j), two different integers in 0..d-1.
    attention
        Only softmax so far: other weights need neither be positive nor have sum one.

    Returns
    -------
    bound
        A number in (0, 2]. It is at least d * 2^-1018, for the sake of weights that underflow.

    Raises
    ------
    TypeError
        If a tensor is not torch.float64, the support is not a pair of integers, or ``attention`` is no attention.
    ValueError
        If a shape is wrong, an entry is not finite, a row of V is not a unit vector, the support is not allowed, or
        the attention is not softmax.
    """
    V, theta, theta_tilde = (t.detach() for t in check_queries(V, theta, theta_tilde))
    i, j = check_support(support, len(V))
    if not isinstance(check_attention(attention), Softmax):
        raise ValueError(
            f"attention: got {attention!r}; expected sparsexor.softmax, as the bound is proved for no other"
        )
    d, m = V.shape
    error = max(ROUNDOFF * (2.05 * (m + 3) * norm(query) + tree_depth(d) + 24) for query in (theta, theta_tilde))
    if not error <= LARGEST_ERROR:  # the scores are lost in rounding: all that is left is |f| <= 1
        return 2.0
    a, b = attention.weights(V, theta), attention.weights(V, theta_tilde)
    bound = min(_specialised_sup(a, b, p, q, error) for p, q in ((i, j), (j, i)))
    if bound == math.inf:
        bound = sup_over_inputs(a, b, (i, j))[1] + 2 * (1 + 1e-9) * math.expm1(error) + 4 * d * UNDERFLOW
    return min(2.0, math.nextafter(bound, math.inf))


def _specialised_sup(a: Float64[Tensor, " d"], b: Float64[Tensor, " d"], p: int, q: int, error: float) -> float:
    r"""The largest error over all inputs if head 1 is specialised on p and head 2 on q, else infinity.

    For an input x let :math:`\alpha_x` be the sum of the :math:`a_k` with :math:`x_k \ne x_p` and :math:`\beta_x` that
    of the :math:`b_k` with :math:`x_k \ne x_q`. As each head's weights have sum one,
    :math:`1 - y f = h(\alpha_x, \beta_x)` with
    :math:`h(\alpha, \beta) = 1 - (1 - 2\alpha)(1 - 2\beta) = 2\alpha(1 - 2\beta) + 2\beta`, which increases in both up to
    1/2. If x_p = x_q, the worst is every other sign against them. If not, every other sign is against one of the two;
    the worst split is a vertex of a polygon (1 - h is a product of non-negative affine functions, so quasi-concave),
    that is, it cuts the order of :math:`b_k / a_k`.

    Every sum has positive terms, and :math:`h(c\alpha, c\beta) \le c\,h(\alpha, \beta)` for c >= 1. So the weights'
    relative error, L + 1 additions, 3 roundings of h, 3 for the rounded order of the ratios and 9 for the last line
    make a factor of at most :math:`\exp(e + (L + 20)u)`; underflow takes at most 4d times what one weight can lose off
    the computed number, before that factor.
    """
    d = len(a)
    factor = math.exp(error + (tree_depth(d) + 20) * ROUNDOFF)
    others, others_tilde = a.clone(), b.clone()
    others[p] = 0
    others_tilde[q] = 0
    sums = sum_positions(torch.stack([others, others_tilde], dim=1))
    if not factor * (float(sums.max()) + d * UNDERFLOW) <= 0.5:
        return math.inf
    rest, rest_tilde = _by_ratio(_outside(a, p, q), _outside(b, p, q))
    against_p = torch.cat([a[q : q + 1], a[q] + _running_sums(rest)])
    against_q = torch.cat([b[p] + _running_sums(rest_tilde.flip(0)).flip(0), b[p : p + 1]])
    agreeing = torch.stack([sum_positions(w) if len(w) else a.new_zeros(()) for w in (rest, rest_tilde)])
    alpha = torch.cat([against_p, agreeing[:1]])
    beta = torch.cat([against_q, agreeing[1:]])
    worst = float((2 * alpha * (1 - 2 * beta) + 2 * beta).max())
    return factor * (worst + 4 * d * UNDERFLOW)


def sup_over_inputs(
    gamma: Float64[Tensor, " d"], gamma_tilde: Float64[Tensor, " d"], support: Sequence[int]
) -> tuple[float, float]:
    r"""Bounds of the largest \|f(x) - y\| over all 2^d inputs, for given weights.

    Fix :math:`\sigma = x_i x_j`; as f and y do not change with the sign of x, let x_i = 1. Then
    :math:`1 - y f = 1 - \sigma A B` with :math:`A = a_i + \sigma a_j + \sum_{k \notin S} x_k a_k`, B alike. Relax the
    signs outside S to :math:`-1 \le x_k \le 1`: (A, B) ranges over a zonogon, whose sides are the (2 a_k, 2 b_k) in the
    order of the ratios b_k / a_k. On the way along a side, AB is convex and -AB concave, so AB is largest at a
    vertex, an input, and -AB is largest at a vertex or at one point inside a side, where it is at most
    a_k b_k more than at the side's better end. Such a point has :math:`-AB \ge 0`, so the vertices are exact if the
    result is below 1. Where they are not, a branch and bound fixes the sign of the side's k both ways and bounds each
    half alike, until the bounds meet or `NODES` is spent. (To close it for all weights is NP-hard: it contains the
    Partition problem.)

    Computed coordinates are off by at most (3.1 L + 8)u, among them 2u for the rounded order of the ratios; their
    product by twice that; the point inside a side costs 17u, its value 10u. So each bound is moved outward by
    (7 L + 50)u.

    Parameters
    ----------
    gamma, gamma_tilde
        Weights of the two heads, shape (d,), d >= 2: non-negative, of sum at most 1 (to 1e-9).
    support
        The pair (i, j), two different integers in 0..d-1.

    Returns
    -------
    lower, upper
        The largest error lies between them, their own rounding included. They differ by at most
        :math:`\max_{k \notin S} a_k b_k` and rounding, and mostly by rounding alone (by up to 4e-9 where the sums
        make use of the tolerance above 1).

    Raises
    ------
    TypeError
        If the weights are not torch.float64 tensors or the support is not a pair of integers.
    ValueError
        If a shape is wrong, a weight is not finite or negative, a sum is above 1, or the support is not allowed.
    """
    gamma, gamma_tilde = (w.detach() for w in check_weights(gamma, gamma_tilde))
    i, j = check_support(support, len(gamma))
    total = _check_sum("gamma", gamma) * _check_sum("gamma_tilde", gamma_tilde)
    a, b = _by_ratio(_outside(gamma, i, j), _outside(gamma_tilde, i, j))
    (a_i, a_j), (b_i, b_j) = gamma[[i, j]].tolist(), gamma_tilde[[i, j]].tolist()
    disagreeing = _vertex_products((a_i - a_j, b_i - b_j), a, b)
    error = (7 * tree_depth(len(gamma)) + 50) * ROUNDOFF
    lower, upper = _branch_and_bound(_Node.make([a_i, a_j], [b_i, b_j], a, b), float(disagreeing.max()), error)
    return 1 + lower - error, max(1 + upper, total - 1) + error


def _branch_and_bound(root: _Node, attained: float, tolerance: float) -> tuple[float, float]:
    """Bounds of the larger of ``attained`` and the largest -AB below ``root``."""
    lower = max(attained, root.attained)
    budget = min(NODES, WORK // max(1, len(root.a)))
    heap = [(-root.relaxed, 0, root)]
    opened = 0
    while -heap[0][0] > lower + tolerance and opened < budget:
        node = heapq.heappop(heap)[2]
        for child in node.halves():
            opened += 1
            lower = max(lower, child.attained)
            heapq.heappush(heap, (-child.relaxed, opened, child))
    return lower, max(lower, -heap[0][0])


@dataclass(frozen=True)
class _Node:
    """The inputs with x_i x_j = 1 and some signs fixed: bounds of -AB over them."""

    fixed: tuple[list[float], list[float]]
    a: Tensor
    b: Tensor
    attained: float
    relaxed: float
    side: int

    @classmethod
    def make(
        cls, fixed_a: list[float], fixed_b: list[float], a: Float64[Tensor, " n"], b: Float64[Tensor, " n"]
    ) -> _Node:
        """The node whose free weights a, b are in the order of b / a; the fixed terms carry their signs."""
        centre = math.fsum(fixed_a), math.fsum(fixed_b)
        attained = float((-_vertex_products(centre, a, b)).max())
        relaxed, side = _best_side(centre, a, b)
        return cls((fixed_a, fixed_b), a, b, attained, max(attained, relaxed), side)

    def halves(self) -> list[_Node]:
        """The two nodes with one more sign fixed, that of the side on which the relaxed maximum lies."""
        k, (fixed_a, fixed_b) = self.side, self.fixed
        a, b = (torch.cat([w[:k], w[k + 1 :]]) for w in (self.a, self.b))
        a_k, b_k = float(self.a[k]), float(self.b[k])
        return [_Node.make([*fixed_a, sign * a_k], [*fixed_b, sign * b_k], a, b) for sign in (1, -1)]


def _lower_chain(weights: Float64[Tensor, " n"]) -> Float64[Tensor, " n+1"]:
    """One coordinate of the zonogon's vertices from its lowest to its highest, relative to its centre."""
    sums = torch.cat([weights.new_zeros(1), _running_sums(weights)])
    return 2 * sums - sums[-1]


def _vertex_products(
    centre: tuple[float, float], a: Float64[Tensor, " n"], b: Float64[Tensor, " n"]
) -> Float64[Tensor, " 2*n+2"]:
    """AB at every vertex; the upper chain is the lower one mirrored at the centre."""
    p, q = _lower_chain(a), _lower_chain(b)
    return torch.cat([(centre[0] + p) * (centre[1] + q), (centre[0] - p) * (centre[1] - q)])


def _best_side(centre: tuple[float, float], a: Float64[Tensor, " n"], b: Float64[Tensor, " n"]) -> tuple[float, int]:
    """The largest -AB over the zonogon's sides, and the number k of the first side where it is attained."""
    if not len(a):
        return -math.inf, -1
    p, q = _lower_chain(a), _lower_chain(b)
    A = centre[0] + torch.cat([p[:-1], -p[1:]])
    B = centre[1] + torch.cat([q[:-1], -q[1:]])
    step_a, step_b = torch.cat([a, a]) * 2, torch.cat([b, b]) * 2
    # d/dt (A + t step_a)(B + t step_b) = 0; 0/0 means that AB is constant on the side, and any t will do
    t = -(A * step_b + B * step_a) / (2 * step_a * step_b)
    t = torch.nan_to_num(t, nan=0.0).clamp(0, 1)
    values = -(A + t * step_a) * (B + t * step_b)
    largest = values.max()
    return float(largest), int((values == largest).nonzero()[0]) % len(a)


def _running_sums(terms: Float64[Tensor, " n"]) -> Float64[Tensor, " n"]:
    """The sums of the first 1, 2, ..., n terms; none passes through more than ceil(log2 n) additions."""
    reach = 1
    while reach < len(terms):
        terms = torch.cat([terms[:reach], terms[reach:] + terms[:-reach]])
        reach *= 2
    return terms


def _outside(weights: Float64[Tensor, " d"], i: int, j: int) -> Float64[Tensor, " d-2"]:
    """The weights of the positions outside the support."""
    first, last = min(i, j), max(i, j)
    return torch.cat([weights[:first], weights[first + 1 : last], weights[last + 1 :]])


def _by_ratio(
    a: Float64[Tensor, " n"], b: Float64[Tensor, " n"]
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, " n"]]:
    """Both heads' weights in the order of b / a; where both are 0 the place does not matter."""
    order = torch.argsort(b / a, stable=True)
    return a[order], b[order]


def _check_sum(name: str, weights: Any) -> float:
    """The sum of weights that are non-negative and of sum at most 1."""
    if bool((weights < 0).any()):
        raise ValueError(f"{name}: got a negative weight, {float(weights.min()):.6g}; expected weights >= 0")
    total = float(sum_positions(weights))
    if total > 1 + SUM_TOLERANCE:
        raise ValueError(f"{name}: got weights of sum {total:.12g}; expected at most 1, to within {SUM_TOLERANCE}")
    return total
