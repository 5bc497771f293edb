"""The model twice: two query vectors over fixed positions, and the full CLS transformer that it abbreviates."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float64
from torch import Tensor, nn
from torch.nn import functional as F

from sparsexor._arguments import check_inputs, check_queries, check_real
from sparsexor._reduce import dot_rows
from sparsexor.attention import Attention, check_attention, softmax

LARGEST_ENTRY = 1e200
"""The largest entry of a query vector of `ClsTransformer`, and the square of the largest CLS norm. Beyond them
the matrices or the scores would overflow."""


def _check_model_inputs(x: Any, V: Float64[Tensor, "d m"]) -> Tensor:
    """Signs of shape (n, d) on the model's device; the model must still be in float64."""
    if V.dtype != torch.float64:
        raise TypeError(f"model: got dtype {V.dtype}; expected torch.float64 (convert it back: model.double())")
    x = check_inputs(x, len(V))
    if x.device != V.device:
        raise ValueError(f"x: got device {x.device}; expected the model's device {V.device}")
    return x


class TwoHeadAttention(nn.Module):
    r"""The reduced model :math:`f(x) = -(\gamma \cdot x)(\tilde\gamma \cdot x)`.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2; fixed.
    theta, theta_tilde
        Query vectors, shape (m,), copied; the 2m trainable parameters.
    attention
        How scores become weights.

    Raises
    ------
    TypeError
        If a tensor is not torch.float64, or ``attention`` is no attention.
    ValueError
        If a shape is wrong, an entry is not finite, or a row of V is not a unit vector.
    """

    V: Tensor

    def __init__(
        self,
        V: Float64[Tensor, "d m"],
        theta: Float64[Tensor, " m"],
        theta_tilde: Float64[Tensor, " m"],
        attention: Attention = softmax,
    ) -> None:
        super().__init__()
        V, theta, theta_tilde = (t.detach().clone() for t in check_queries(V, theta, theta_tilde))
        self.register_buffer("V", V)
        self.theta = nn.Parameter(theta)
        self.theta_tilde = nn.Parameter(theta_tilde)
        self.attention = check_attention(attention)

    def forward(self, x: Float64[Tensor, "n d"]) -> Float64[Tensor, " n"]:
        """Outputs f(x), shape (n,), for signs x of shape (n, d); other x raise TypeError or ValueError."""
        x = _check_model_inputs(x, self.V)
        gamma = self.attention.weights(self.V, self.theta)
        gamma_tilde = self.attention.weights(self.V, self.theta_tilde)
        return -dot_rows(x, gamma) * dot_rows(x, gamma_tilde)


class ClsTransformer(nn.Module):
    r"""A one-layer transformer with two heads and a CLS token, with its structural zeros in sight.

    The d + 1 tokens live in :math:`\mathbb R^{m+2}` = (position, bit, CLS mark):

    .. math:: t_{cls} = (0, 0, c), \qquad t_k = (v_k, x_k, 0), \quad k = 1 \dots d.

    Each head h has full matrices, multiplied by masks of zeros and ones. Free entries (*) are the parameters:

    .. math::

        W_Q^h = \begin{pmatrix} 0 & 0 & * \end{pmatrix}, \qquad
        W_K^h = \begin{pmatrix} I_m & 0 & 0 \end{pmatrix}, \qquad
        W_V^h = \begin{pmatrix} 0 & 1 & 0 \end{pmatrix},

    with m, m and 1 rows and blocks of m, 1 and 1 columns. Attention is the standard one, from CLS to all tokens,
    scores scaled by :math:`1/\sqrt m`, with CLS masked as a key. The output is :math:`-h_1 h_2`, a fixed readout,
    which is not a standard one: the usual linear readout of the two heads could not multiply.

    With :math:`w_h` the last column of :math:`W_Q^h`, the score of position k is :math:`c\, w_h \cdot v_k / \sqrt m`.
    So the model is :class:`TwoHeadAttention` with the query vectors :math:`\theta_h = (c/\sqrt m)\, w_h`.

    Parameters
    ----------
    V
        Positions, shape (d, m), unit rows, d >= 2.
    theta, theta_tilde
        The query vectors to start from, shape (m,), entries at most 1e200: :math:`w_h` is
        :math:`\theta_h \sqrt m / c`.
    cls_norm
        The norm c of the CLS token, from 1e-100 to 1e100.
    train_keys
        Whether the position block of each :math:`W_K^h` is a parameter too. It starts from the identity, but then
        moves, and the model leaves the reduced one at the first step.

    Raises
    ------
    TypeError
        If a tensor is not torch.float64, ``cls_norm`` not a number or ``train_keys`` not a bool.
    ValueError
        If a shape is wrong, an entry is not finite, a row of V is not a unit vector, or ``cls_norm`` or a
        query is out of range.
    """

    V: Tensor
    W_V: Tensor
    query_mask: Tensor
    key_mask: Tensor

    def __init__(
        self,
        V: Float64[Tensor, "d m"],
        theta: Float64[Tensor, " m"],
        theta_tilde: Float64[Tensor, " m"],
        cls_norm: float = 1.0,
        train_keys: bool = False,
    ) -> None:
        super().__init__()
        V, theta, theta_tilde = (t.detach() for t in check_queries(V, theta, theta_tilde))
        queries = torch.stack([theta, theta_tilde])
        for name, query in zip(("theta", "theta_tilde"), queries, strict=True):
            if float(query.abs().max()) > LARGEST_ENTRY:
                raise ValueError(
                    f"{name}: got an entry of size {float(query.abs().max()):.3g}; expected at most {LARGEST_ENTRY}"
                )
        self.cls_norm = check_real("cls_norm", cls_norm, LARGEST_ENTRY**-0.5, LARGEST_ENTRY**0.5)
        if not isinstance(train_keys, bool):
            raise TypeError(
                f"train_keys: got {train_keys!r} of type {type(train_keys).__name__}; expected True or False"
            )
        m = V.shape[1]
        position, bit, cls = slice(0, m), m, m + 1  # the columns of a token

        query_mask = V.new_zeros(2, m, m + 2)
        query_mask[:, :, cls] = 1
        W_Q = V.new_zeros(2, m, m + 2)
        W_Q[:, :, cls] = queries * math.sqrt(m) / self.cls_norm

        key_mask = V.new_zeros(2, m, m + 2)
        key_mask[:, :, position] = 1
        W_K = V.new_zeros(2, m, m + 2)
        W_K[:, :, position] = torch.eye(m, dtype=V.dtype, device=V.device)

        W_V = V.new_zeros(2, 1, m + 2)
        W_V[:, :, bit] = 1

        self.W_Q = nn.Parameter(W_Q)
        self.W_K = nn.Parameter(W_K, requires_grad=train_keys)
        for name, fixed in (("V", V.clone()), ("W_V", W_V), ("query_mask", query_mask), ("key_mask", key_mask)):
            self.register_buffer(name, fixed)

    def tokens(self, x: Float64[Tensor, "n d"]) -> Float64[Tensor, "n d_plus_1 m_plus_2"]:
        """The CLS token, then one token (v_k, x_k, 0) a position, for each of the n inputs."""
        x = _check_model_inputs(x, self.V)
        n, (d, m) = len(x), self.V.shape
        tokens = x.new_zeros(n, d + 1, m + 2)
        tokens[:, 0, m + 1] = self.cls_norm
        tokens[:, 1:, :m] = self.V
        tokens[:, 1:, m] = x
        return tokens

    def visible(self) -> Bool[Tensor, "1 d_plus_1"]:
        """Which tokens the one query, CLS, may look at: all but itself."""
        return torch.arange(len(self.V) + 1, device=self.V.device)[None] > 0

    def heads(self, x: Float64[Tensor, "n d"]) -> Float64[Tensor, "n 2"]:
        """What each head returns at the CLS token."""
        tokens = self.tokens(x)[:, None]  # (n, 1, d + 1, m + 2): every head sees the same tokens
        queries = tokens[:, :, :1] @ (self.W_Q * self.query_mask).mT  # (n, 2, 1, m): CLS alone asks
        keys = tokens @ (self.W_K * self.key_mask).mT  # (n, 2, d + 1, m)
        values = tokens @ self.W_V.mT  # (n, 2, d + 1, 1)
        heads = F.scaled_dot_product_attention(queries, keys, values, attn_mask=self.visible())
        return heads[:, :, 0, 0]

    def forward(self, x: Float64[Tensor, "n d"]) -> Float64[Tensor, " n"]:
        """Outputs f(x), shape (n,), for signs x of shape (n, d); other x raise TypeError or ValueError."""
        heads = self.heads(x)
        return -heads[:, 0] * heads[:, 1]

    @property
    def scale(self) -> float:
        r"""The factor :math:`c/\sqrt m` from the free column of :math:`W_Q^h` to the query vector."""
        return self.cls_norm / math.sqrt(self.V.shape[1])

    @property
    def theta(self) -> Float64[Tensor, " m"]:
        r"""The query vector :math:`(c/\sqrt m)\, w_1` of the first head (of the model with the keys of the start)."""
        return self.scale * self.W_Q[0, :, -1]

    @property
    def theta_tilde(self) -> Float64[Tensor, " m"]:
        """The query vector of the second head."""
        return self.scale * self.W_Q[1, :, -1]

    def learning_rate(self, eta: float) -> float:
        r"""The learning rate for :math:`W_Q` that moves the query vectors as ``eta`` moves them.

        By the chain rule the step :math:`w \leftarrow w - \eta' (c/\sqrt m) \nabla_\theta L` is
        :math:`\theta \leftarrow \theta - \eta' (c^2/m) \nabla_\theta L`, so :math:`\eta' = \eta\, m / c^2`.

        Raises
        ------
        TypeError, ValueError
            If eta is not a finite real number >= 0, or so large that the rate for W_Q is not finite.
        """
        rate = check_real("eta", eta, 0.0) / self.scale / self.scale
        if rate == math.inf:
            raise ValueError(f"eta: got {eta}; expected a rate at which that for W_Q, eta m / c^2, stays finite")
        return rate
