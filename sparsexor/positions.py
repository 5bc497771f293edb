"""Random positions on the unit sphere, and the antisymmetric start of the two query vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from sparsexor._arguments import check_count, check_device, check_rng, check_size


def _unit_rows(rng: np.random.Generator, count: int, m: int) -> np.ndarray:
    """Independent uniform points of the unit sphere of R^m, one a row: normalised Gaussian vectors."""
    rows = rng.standard_normal((count, m))
    norms = np.linalg.norm(rows, axis=1)
    while (norms == 0).any():  # has probability zero, but a float can be exactly 0
        rows[norms == 0] = rng.standard_normal((int((norms == 0).sum()), m))
        norms = np.linalg.norm(rows, axis=1)
    return rows / norms[:, None]


def sample_positions(d: int, m: int, rng: Any = None, device: str | torch.device = "cpu") -> Float64[Tensor, "d m"]:
    """d independent positions, uniform on the unit sphere of R^m.

    Parameters
    ----------
    d
        Number of positions, at least 2.
    m
        Dimension of a position, at least 1 (for m = 1 the positions are random signs).
    rng
        Anything numpy.random.default_rng takes: a seed, a generator, None for fresh entropy.
    device
        Where the tensor is made; the numbers do not depend on it.

    Returns
    -------
    V
        Shape (d, m), unit rows.

    Raises
    ------
    TypeError, ValueError
        If d is not an integer >= 2, m not an integer >= 1, or ``rng`` or ``device`` is not allowed.
    """
    d = check_count("d", d, minimum=2)
    m = check_count("m", m, minimum=1)
    check_size("d", d, m)
    device = check_device(device)
    return torch.from_numpy(_unit_rows(check_rng(rng), d, m)).to(device)


def antisymmetric_start(
    m: int, rng: Any = None, device: str | torch.device = "cpu"
) -> tuple[Float64[Tensor, " m"], Float64[Tensor, " m"]]:
    """The start of training: theta uniform on the unit sphere of R^m, and theta_tilde = -theta exactly.

    Parameters
    ----------
    m
        Dimension, at least 1.
    rng, device
        As in :func:`sample_positions`. Give the positions and the start one generator, or two different seeds: with the
        same seed, theta would be the first position.

    Returns
    -------
    theta, theta_tilde
        Shape (m,) each.

    Raises
    ------
    TypeError, ValueError
        If m is not an integer >= 1, or ``rng`` or ``device`` is not allowed.
    """
    m = check_count("m", m, minimum=1)
    check_size("m", 1, m)
    device = check_device(device)
    theta = torch.from_numpy(_unit_rows(check_rng(rng), 1, m)[0]).to(device)
    return theta, -theta
