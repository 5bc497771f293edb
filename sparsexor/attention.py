"""Attention over fixed positions: weights and their derivatives.

A head scores position k by ``s_k = v_k . theta`` and turns the scores into weights ``gamma``. The loss depends on
theta through the weights alone, so a gradient needs one thing from an attention: the vector-Jacobian product
``sum_k c_k d gamma_k / d theta``, called ``pullback`` here. Whatever has these methods can take softmax's place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float64
from torch import Tensor

from sparsexor._arguments import check_positions, check_query
from sparsexor._reduce import combine_rows, dot_rows, sum_positions

SMALL = 2.0**-32
"""Scores are formed of this part of theta, so that none overflows; as a power of two it costs no rounding."""


@runtime_checkable
class Attention(Protocol):
    """What the rest of the book asks of an attention.

    The methods trust their arguments: the public functions check them once and pass them on.
    """

    def weights(self, V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"]) -> Float64[Tensor, " d"]:
        """The weights ``gamma`` of the positions."""
        ...

    def pullback(
        self, V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"], cotangent: Float64[Tensor, " d"]
    ) -> Float64[Tensor, " m"]:
        """``sum_k cotangent_k d gamma_k / d theta`` in O(dm) time and memory."""
        ...

    def jacobian(self, V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"]) -> Float64[Tensor, "d m"]:
        """All ``d gamma_k / d theta``, one a row."""
        ...


@dataclass(frozen=True)
class Softmax:
    r"""Softmax attention, :math:`\gamma_k = e^{v_k \cdot \theta} / \sum_l e^{v_l \cdot \theta}`.

    Its Jacobian has the rows :math:`\partial \gamma_k / \partial \theta = \gamma_k (v_k - \bar v_\gamma)`, where
    :math:`\bar v_\gamma = \sum_l \gamma_l v_l` is the mean position that the head sees.
    """

    def weights(self, V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"]) -> Float64[Tensor, " d"]:
        """Positive weights of sum one; the largest score is subtracted first, so no theta overflows."""
        scores = dot_rows(V, SMALL * theta)
        powers = torch.exp((scores - scores.max()) / SMALL)
        return powers / sum_positions(powers)

    def pullback(
        self, V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"], cotangent: Float64[Tensor, " d"]
    ) -> Float64[Tensor, " m"]:
        r""":math:`\sum_k c_k \gamma_k (v_k - \bar v_\gamma) = \sum_k \gamma_k (c_k - \bar c_\gamma) v_k`."""
        gamma = self.weights(V, theta)
        mean_cotangent = sum_positions(gamma * cotangent)
        return combine_rows(gamma * (cotangent - mean_cotangent), V)

    def jacobian(self, V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"]) -> Float64[Tensor, "d m"]:
        r"""The rows :math:`\gamma_k (v_k - \bar v_\gamma)`."""
        gamma = self.weights(V, theta)
        return gamma[:, None] * (V - combine_rows(gamma, V))


softmax = Softmax()
"""The attention of the paper, and the default wherever ``attention`` is a keyword."""


def check_attention(attention: Any) -> Attention:
    """An attention: any object with the methods of :class:`Attention`."""
    if isinstance(attention, type) or not isinstance(attention, Attention):
        raise TypeError(
            f"attention: got {attention!r} of type {type(attention).__name__}; "
            "expected an object with the methods weights, pullback and jacobian, such as sparsexor.attention.softmax"
        )
    return attention


def softmax_attention(V: Float64[Tensor, "d m"], theta: Float64[Tensor, " m"]) -> Float64[Tensor, " d"]:
    r"""Softmax attention weights :math:`\gamma_k = e^{v_k \cdot \theta} / \sum_l e^{v_l \cdot \theta}`.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta
        Query vector, shape (m,), of any norm.

    Returns
    -------
    gamma
        Weights, shape (d,): non-negative, of sum one. Weights below about 1e-308 come out as 0.

    Raises
    ------
    TypeError
        If an argument is not a torch.float64 tensor.
    ValueError
        If a shape is wrong, an entry is not finite, or a row of V is not of norm 1 to within 1e-9.
    """
    V = check_positions(V)
    return softmax.weights(V, check_query("theta", theta, V))
