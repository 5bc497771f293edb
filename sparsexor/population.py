"""The population loss and its gradient in closed form: no enumeration, no samples, O(dm) for every d."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float64
from torch import Tensor

from sparsexor._arguments import check_queries, check_support, check_weights
from sparsexor._reduce import sum_positions
from sparsexor.attention import Attention, check_attention, softmax


def population_loss(
    gamma: Float64[Tensor, " d"], gamma_tilde: Float64[Tensor, " d"], support: Sequence[int]
) -> Float64[Tensor, ""]:
    r"""Mean squared error of :math:`f(x) = -(a \cdot x)(b \cdot x)` against :math:`y = -x_i x_j`, exactly.

    With :math:`a = \gamma`, :math:`b = \tilde\gamma` and x uniform over the signs, for every d and all real weights,

    .. math:: E(f - y)^2 = 1 - 2(a_i b_j + a_j b_i) + |a|^2 |b|^2 + 2 (a \cdot b)^2 - 2 \sum_k a_k^2 b_k^2.

    Parameters
    ----------
    gamma, gamma_tilde
        Weights of the two heads, shape (d,), d >= 2; any real numbers up to 1e70 in size, not only attention
        weights.
    support
        The pair (i, j), two different integers in 0..d-1.

    Returns
    -------
    loss
        A tensor of shape (). Its rounding error is a few units in the last place of the largest term, so a loss
        below about 1e-15 is not resolved.

    Raises
    ------
    TypeError
        If the weights are not torch.float64 tensors or the support is not a pair of integers.
    ValueError
        If a shape is wrong, an entry is not finite or above 1e70 in size, or the support is not allowed.
    """
    a, b = check_weights(gamma, gamma_tilde)
    i, j = check_support(support, len(a))
    a_dot_b = sum_positions(a * b)
    norms = sum_positions(a**2) * sum_positions(b**2)
    return 1 - 2 * (a[i] * b[j] + a[j] * b[i]) + norms + 2 * a_dot_b**2 - 2 * sum_positions((a * b) ** 2)


def loss_gradient(
    gamma: Float64[Tensor, " d"], gamma_tilde: Float64[Tensor, " d"], support: Sequence[int]
) -> Float64[Tensor, " d"]:
    r"""Derivatives of :func:`population_loss` with respect to the first head's weights.

    .. math::

        \partial L / \partial a_k = -2 (b_j [k = i] + b_i [k = j]) + 2 a_k |b|^2 + 4 (a \cdot b) b_k - 4 a_k b_k^2

    The loss is symmetric in the heads: ``loss_gradient(gamma_tilde, gamma, support)`` is the other head's.

    Parameters
    ----------
    gamma, gamma_tilde
        Weights of the head that moves and of the other head, shape (d,), d >= 2; any real numbers up to 1e70 in size.
    support
        The pair (i, j), two different integers in 0..d-1.

    Returns
    -------
    gradient
        Shape (d,).

    Raises
    ------
    TypeError, ValueError
        As :func:`population_loss`.
    """
    a, b = check_weights(gamma, gamma_tilde)
    i, j = check_support(support, len(a))
    gradient = 2 * a * sum_positions(b**2) + 4 * sum_positions(a * b) * b - 4 * a * b**2
    gradient[i] -= 2 * b[j]
    gradient[j] -= 2 * b[i]
    return gradient


def population_gradient(
    V: Float64[Tensor, "d m"],
    theta: Float64[Tensor, " m"],
    theta_tilde: Float64[Tensor, " m"],
    support: Sequence[int],
    attention: Attention = softmax,
) -> tuple[Float64[Tensor, " m"], Float64[Tensor, " m"]]:
    r"""Gradient of the population loss with respect to both query vectors.

    :math:`\nabla_\theta L = \sum_k (\partial L / \partial a_k) \, \partial a_k / \partial \theta`, which for softmax is
    :math:`\sum_k (\partial L / \partial a_k) \, a_k (v_k - \bar v_a)`, and the same with the heads exchanged.
    O(dm) time and memory.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta, theta_tilde
        Query vectors, shape (m,).
    support
        The pair (i, j), two different integers in 0..d-1.
    attention
        How scores become weights.

    Returns
    -------
    g, g_tilde
        The two gradients, shape (m,) each.

    Raises
    ------
    TypeError
        If a tensor is not torch.float64, the support is not a pair of integers, or ``attention`` is no attention.
    ValueError
        If a shape is wrong, an entry is not finite, a row of V is not a unit vector, or the support is not allowed.
    """
    V, theta, theta_tilde = check_queries(V, theta, theta_tilde)
    support = check_support(support, len(V))
    attention = check_attention(attention)
    a, b = attention.weights(V, theta), attention.weights(V, theta_tilde)
    g = attention.pullback(V, theta, loss_gradient(a, b, support))
    g_tilde = attention.pullback(V, theta_tilde, loss_gradient(b, a, support))
    return g, g_tilde
