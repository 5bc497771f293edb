"""The task: d random signs, and a label that is the negative product of two of them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from sparsexor._arguments import check_count, check_device, check_inputs, check_rng, check_size, check_support

LARGEST_CUBE = 20
"""The largest d whose 2^d inputs are listed; 2^20 rows of 20 numbers take 160 MiB."""


@dataclass(frozen=True)
class SparseXor:
    r"""Sparse XOR on d signs: x is uniform on :math:`\{-1, +1\}^d` and :math:`y = -x_i x_j`.

    Parameters
    ----------
    d
        Number of signs, at least 2.
    support
        The pair (i, j), two different integers in 0..d-1, in either order.

    Raises
    ------
    TypeError
        If d or the support's entries are not integers.
    ValueError
        If d < 2 or the support is not allowed.

    Examples
    --------
    >>> task = SparseXor(3, support=(0, 2))
    >>> task.labels(torch.tensor([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]], dtype=torch.float64))
    tensor([-1.,  1.], dtype=torch.float64)
    """

    d: int
    _: KW_ONLY
    support: tuple[int, int]

    def __post_init__(self) -> None:
        d = check_count("d", self.d, minimum=2)
        support = check_support(self.support, d)
        object.__setattr__(self, "d", d)
        object.__setattr__(self, "support", support)

    def labels(self, x: Float64[Tensor, "n d"]) -> Float64[Tensor, " n"]:
        """Labels ``y = -x_i x_j`` of shape (n,), for signs x of shape (n, d).

        Raises
        ------
        TypeError
            If x is not a torch.float64 tensor.
        ValueError
            If x has another shape or entries other than -1 and +1.
        """
        x = check_inputs(x, self.d)
        i, j = self.support
        return -x[:, i] * x[:, j]

    def sample(
        self, n: int, rng: Any = None, device: str | torch.device = "cpu"
    ) -> tuple[Float64[Tensor, "n d"], Float64[Tensor, " n"]]:
        """n independent uniform inputs and their labels.

        Parameters
        ----------
        n
            Number of samples, at least 1.
        rng
            Anything numpy.random.default_rng takes: a seed, a generator, None for fresh entropy.
        device
            Where the tensors are made; the numbers do not depend on it.

        Returns
        -------
        x, y
            Shapes (n, d) and (n,).

        Raises
        ------
        TypeError, ValueError
            If n is not an integer >= 1, or ``rng`` or ``device`` is not allowed.
        """
        n = check_count("n", n, minimum=1)
        check_size("n", n, self.d)
        device = check_device(device)
        bits = check_rng(rng).integers(0, 2, size=(n, self.d))
        x = torch.from_numpy(2.0 * bits - 1.0).to(device)
        return x, self.labels(x)

    def inputs(self, device: str | torch.device = "cpu") -> Float64[Tensor, "two_to_d d"]:
        """All 2^d inputs, one a row, in the order of ``itertools.product((-1, 1), repeat=d)``.

        Row r holds the binary digits of r, the first coordinate the most significant, with digit 0 read as -1.

        Raises
        ------
        ValueError
            If d > 20, or the device is not allowed.
        """
        if self.d > LARGEST_CUBE:
            raise ValueError(f"d: got {self.d}; expected d <= {LARGEST_CUBE} to list all 2^d inputs")
        rows = torch.arange(2**self.d, device=check_device(device))
        shifts = torch.arange(self.d - 1, -1, -1, device=rows.device)
        return (2 * ((rows[:, None] >> shifts) & 1) - 1).to(torch.float64)
