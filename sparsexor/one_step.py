r"""One gradient step: how it is made, what decides whether it succeeds, and how long it has to be.

The learning rate is rigorous in floating point. Its error analysis writes u = 2^-53 for the unit roundoff and
L = ceil(log2 d) for the depth of a tree of sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from sparsexor._arguments import check_count, check_positions, check_query, check_real, check_support
from sparsexor._reduce import ROUNDOFF, dot_rows, norm, tree_depth
from sparsexor.attention import Attention, softmax
from sparsexor.population import population_gradient
from sparsexor.samples import check_seed, empirical_gradient

SMALLEST_MARGIN = 1e-300
"""Below this a margin is underflow, and 1 / margin is out of reach."""

LONGEST_QUERY = 20.0
"""Up to this size of u (m + 3) times the norm of a query the learning rate answers for its rounding. A score may be off
by about as much, and `sparsexor.worst_input.sup_error` gives up at 50 / 2.05."""


def gradient_step(
    V: Float64[Tensor, "d m"],
    theta: Float64[Tensor, " m"],
    theta_tilde: Float64[Tensor, " m"],
    support: Sequence[int],
    eta: float,
    n: int | None = None,
    seed: int | None = None,
    attention: Attention = softmax,
) -> tuple[Float64[Tensor, " m"], Float64[Tensor, " m"]]:
    r"""One step :math:`\theta - \eta \nabla_\theta L` for both heads at once.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta, theta_tilde
        Query vectors, shape (m,).
    support
        The pair (i, j), two different integers in 0..d-1.
    eta
        Learning rate, a finite number >= 0.
    n
        Number of fresh samples; None for the population loss.
    seed
        Seed of the samples: an integer in 0..2^64-1 if n is given, else None.
    attention
        How scores become weights.

    Returns
    -------
    theta, theta_tilde
        The queries after the step, shape (m,) each.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If a shape or value is not allowed, n comes without seed or seed without n, or eta takes the step to infinity.
    """
    eta = check_real("eta", eta, 0.0)
    if n is None:
        if seed is not None:
            raise ValueError(f"seed: got {seed!r} without n; expected None, as no samples are drawn")
        g, g_tilde = population_gradient(V, theta, theta_tilde, support, attention=attention)
    else:
        n = check_count("n", n, minimum=1)
        if seed is None:
            raise ValueError(f"seed: got None with n = {n}; expected an integer in 0..2^64-1")
        g, g_tilde = empirical_gradient(V, theta, theta_tilde, support, n, seed=check_seed(seed), attention=attention)
    stepped = theta - eta * g, theta_tilde - eta * g_tilde
    if not all(bool(torch.isfinite(query).all()) for query in stepped):
        raise ValueError(f"eta: got {eta}; expected a rate at which the queries stay finite")
    return stepped


@dataclass(frozen=True, eq=False)
class StepMargins:
    r"""What decides one step from the antisymmetric start, for head 1 with target p and head 2 with target q.

    Attributes
    ----------
    targets
        (p, q): of the two positions of the support, p has the larger descent score v . (-g), and q is the other.
    rates, rates_tilde
        :math:`r_l = (v_p - v_l) \cdot (-g)` and :math:`\tilde r_l = (v_q - v_l) \cdot (-\tilde g)`, shape (d,): how
        fast, per unit of eta, the target's score pulls away from that of l. They are 0 at the target.
    gaps, gaps_tilde
        :math:`(v_p - v_l) \cdot \theta` and :math:`(v_q - v_l) \cdot (-\theta)`, shape (d,): the lead at the start.
    margin, margin_tilde
        The smallest rate over all l but the target. The heads specialise for large eta if both are positive.
    rival, rival_tilde
        Where it is attained.
    gradient_norms
        The norms of g and of g_tilde.
    """

    targets: tuple[int, int]
    rates: Tensor
    rates_tilde: Tensor
    gaps: Tensor
    gaps_tilde: Tensor
    margin: float
    margin_tilde: float
    rival: int
    rival_tilde: int
    gradient_norms: tuple[float, float]


def descent_margins(V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"], support: Sequence[int]) -> StepMargins:
    """Targets, rates and gaps of one population step from the antisymmetric start (theta, -theta); O(dm).

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta
        Query vector of head 1 at the start, shape (m,); head 2 starts at -theta.
    support
        The pair (i, j), two different integers in 0..d-1.

    Returns
    -------
    StepMargins

    Raises
    ------
    TypeError, ValueError
        As :func:`sparsexor.population.population_gradient`; also if a score of theta overflows.
    """
    V = check_positions(V).detach()
    theta = check_query("theta", theta, V).detach()
    i, j = check_support(support, len(V))
    g, g_tilde = population_gradient(V, theta, -theta, (i, j))
    pull, pull_tilde, scores = dot_rows(V, -g), dot_rows(V, -g_tilde), dot_rows(V, theta)
    p, q = (i, j) if pull[i] >= pull[j] else (j, i)
    if not bool(torch.isfinite(2 * scores).all()):
        raise ValueError(f"theta: got norm {norm(theta):.6g}; expected one at which gaps of scores stay finite")
    rates, rates_tilde = pull[p] - pull, pull_tilde[q] - pull_tilde
    margin, rival = _smallest_but(rates, p)
    margin_tilde, rival_tilde = _smallest_but(rates_tilde, q)
    return StepMargins(
        targets=(p, q),
        rates=rates,
        rates_tilde=rates_tilde,
        gaps=scores[p] - scores,
        gaps_tilde=scores - scores[q],
        margin=margin,
        margin_tilde=margin_tilde,
        rival=rival,
        rival_tilde=rival_tilde,
        gradient_norms=(norm(g), norm(g_tilde)),
    )


def theorem2_learning_rate(
    V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"], support: Sequence[int], eps: float
) -> float:
    r"""A rate from which on one population step from (theta, -theta) learns every input to within eps.

    With the rates, gaps and targets of :class:`StepMargins` and :math:`\alpha = \varepsilon / 4`,

    .. math:: \eta_0 = \max_{\text{heads}} \max_{l \ne \text{target}} \frac{\log((d-1)/\alpha) - \text{gap}_l}{r_l},

    but at least 0. At any :math:`\eta \ge \eta_0` the target's score leads every other by
    :math:`\log((d-1)/\alpha)`, so the other weights of each head sum to at most :math:`\alpha`, and
    :math:`|f - y| \le 2(\alpha + \alpha) = \varepsilon` on every input.

    The rate is rounded up so that also ``sup_error`` after :func:`gradient_step`, both in floating point, is at
    most eps, for every eps >= 1e-250 and every rate from eta_0 up to :math:`u (m + 3) (N + \eta G) = 20`; beyond that
    the scores are lost in rounding. Here :math:`N = |\theta|`, and G is the larger of :math:`|g|, |\tilde g|`, since
    ``sup_error`` takes one rounding error for both heads. With :math:`K = (7m + 30)u`, the lead needed grows by
    :math:`K N + 4(L + 24)u + 8 u \log((d-1)/\alpha)` and each rate sinks by :math:`K G`. For computed gaps and rates are
    off by :math:`(2m + 4)u N` and :math:`(2m + 4)u G`, the rounded step moves a gap by
    :math:`2.01\,u (N + 2 \eta G)`, and ``sup_error`` counts twice the weights' relative error
    :math:`e = u (2.05 (m + 3)(N + \eta G) + L + 24)` and its own, :math:`(L + 20)u`.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta
        Query vector of head 1 at the start, shape (m,); head 2 starts at -theta.
    support
        The pair (i, j), two different integers in 0..d-1.
    eps
        The error allowed on any input, 0 < eps <= 1.

    Returns
    -------
    eta
        A finite number >= 0.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If a shape or value is not allowed, or a margin is not positive (or too small to be told from 0 in
        floating point): ``margin`` is head 1's, ``margin_tilde`` head 2's. If both heads want the same target,
        it is head 2's that is negative. Also if theta is so long that its scores are lost in rounding.
    """
    V = check_positions(V)
    eps = check_real("eps", eps, 0.0, 1.0)
    if eps == 0:
        raise ValueError("eps: got 0; expected a real number with 0 < eps <= 1")
    margins = descent_margins(V, theta, support)
    d, m = V.shape
    longest = LONGEST_QUERY / (ROUNDOFF * (m + 3))
    if not norm(theta) <= longest / 2:
        raise ValueError(
            f"theta: got norm {norm(theta):.6g}; expected at most {longest / 2:.3g}, for the scores' rounding"
        )
    lead = math.log(4 * (d - 1)) - math.log(eps)
    slope = ROUNDOFF * (7 * m + 30)
    lead += slope * norm(theta) + ROUNDOFF * (4 * (tree_depth(d) + 24) + 8 * lead)
    steepest = max(margins.gradient_norms)
    unsure = slope * steepest + SMALLEST_MARGIN
    _require_margins(margins, unsure)
    p, q = margins.targets
    times = (
        _slowest(lead, margins.gaps, margins.rates - unsure, p),
        _slowest(lead, margins.gaps_tilde, margins.rates_tilde - unsure, q),
    )
    eta = max(0.0, max(times) * (1 + 8 * ROUNDOFF))
    if not eta * steepest <= longest / 2:  # eta may also be infinite
        name, value = ("margin", margins.margin) if times[0] > times[1] else ("margin_tilde", margins.margin_tilde)
        raise ValueError(f"{name}: got {value:.6g}; expected > 0, by far more than the rounding error {unsure:.3g}")
    return eta


def _require_margins(margins: StepMargins, unsure: float) -> None:
    p, q = margins.targets
    shared = "; both heads want the same target" if margins.rival_tilde == p else ""
    for name, value, head, target, rival, note in [
        ("margin", margins.margin, 1, p, margins.rival, ""),
        ("margin_tilde", margins.margin_tilde, 2, q, margins.rival_tilde, shared),
    ]:
        if not value > unsure:
            raise ValueError(
                f"{name}: got {value:.6g} for head {head}, target {target} against position {rival}{note}; "
                f"expected > 0, by more than the rounding error {unsure:.3g}"
            )


def _slowest(lead: float, gaps: Float64[Tensor, " d"], rates: Float64[Tensor, " d"], target: int) -> float:
    """The largest (lead - gap) / rate over all positions but the target."""
    times = (lead - gaps) / rates
    times[target] = -math.inf
    return float(times.max())


def _smallest_but(values: Float64[Tensor, " d"], target: int) -> tuple[float, int]:
    """The smallest value over all positions but the target, and the first place where it is attained."""
    others = values.clone()
    others[target] = math.inf
    smallest = others.min()
    return float(smallest), int((others == smallest).nonzero()[0])
