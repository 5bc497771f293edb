"""Instances, oracles and bad arguments that several test files share. Nothing here uses sparsexor."""

from __future__ import annotations

import itertools
import os
import re
from typing import NamedTuple

# Tests and kernels run side by side, one thread each; set before torch starts. No result depends on it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

settings.register_profile("deterministic", derandomize=True, print_blob=False, deadline=None)
settings.load_profile("deterministic")

TOLERANCE = 1e-13
"""Allowed difference between a closed form and its oracle, for numbers of order one: some hundreds of roundings."""


class Instance(NamedTuple):
    V: Tensor
    theta: Tensor
    theta_tilde: Tensor
    support: tuple[int, int]

    @property
    def tolerance(self) -> float:
        """Scores of size t carry a rounding error of t ulp, which the weights inherit as a relative error."""
        return TOLERANCE * (1 + float(self.theta.norm() + self.theta_tilde.norm()))


def build_instance(
    d: int, m: int, support: tuple[int, int] = (0, 1), seed: int = 0, scale: float = 1.0, antisymmetric: bool = True
) -> Instance:
    """Random positions and queries of norm ``scale``, drawn and normalised here."""
    rows = np.random.default_rng([seed, d, m]).standard_normal((d + 2, m))
    rows = torch.from_numpy(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    theta = scale * rows[d]
    return Instance(rows[:d].clone(), theta, -theta if antisymmetric else scale * rows[d + 1], support)


@st.composite
def instances(draw, max_d: int = 9, max_m: int = 5, scales: tuple[float, ...] = (0.0, 0.3, 1.0, 8.0, 1e4)) -> Instance:
    """Small random instances: every order of the support, d = 2 and m = 1 too, and sometimes v_i = v_j."""
    d, m = draw(st.integers(2, max_d)), draw(st.integers(1, max_m))
    i = draw(st.integers(0, d - 1))
    j = draw(st.integers(0, d - 1).filter(lambda k: k != i))
    seed, scale = draw(st.integers(0, 10**6)), draw(st.sampled_from(scales))
    instance = build_instance(d, m, (i, j), seed, scale, antisymmetric=draw(st.booleans()))
    if draw(st.integers(0, 4)) == 0:
        instance.V[i] = instance.V[j]
    return instance


def cube(d: int) -> Tensor:
    """All 2^d inputs."""
    return torch.tensor(list(itertools.product([1.0, -1.0], repeat=d)), dtype=torch.float64)


def label(x: Tensor, support: tuple[int, int]) -> Tensor:
    return -x[:, support[0]] * x[:, support[1]]


def squared_error(gamma: Tensor, gamma_tilde: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The mean squared error over the rows of x, by the definition of the model."""
    return ((-(x @ gamma) * (x @ gamma_tilde) - y) ** 2).mean()


def autograd_gradient(instance: Instance, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """The gradient of the mean squared error over the rows of x by both queries, by torch's softmax and autograd."""
    queries = [query.clone().requires_grad_() for query in (instance.theta, instance.theta_tilde)]
    weights = [torch.softmax(instance.V @ query, dim=0) for query in queries]
    return torch.autograd.grad(squared_error(*weights, x, y), queries)


def assert_near(got: Tensor, oracle: Tensor, tolerance: float = TOLERANCE) -> None:
    torch.testing.assert_close(got, oracle, rtol=0, atol=tolerance)


def refuses(error: type[Exception], name: str):
    """The call below must raise exactly this kind of error, in a sentence about the argument ``name``."""
    return pytest.raises(error, match=rf"^{re.escape(name)}: got .*; expected .*")


_V = build_instance(5, 3).V
_NAN, _INF = _V.clone(), _V.clone()
_NAN[1, 1], _INF[1, 1] = torch.nan, torch.inf

BAD_POSITIONS = [
    (TypeError, _V.float()),
    (TypeError, _V.numpy()),
    (TypeError, None),
    (TypeError, "V"),
    (ValueError, _V[0]),
    (ValueError, _V[:1]),
    (ValueError, _V[:, :0]),
    (ValueError, _V[None]),
    (ValueError, 1.001 * _V),
    (ValueError, _V + 1e-7),
    (TypeError, _V.to_sparse()),
    (TypeError, _V.to(torch.complex128)),
    (ValueError, _V.to("meta")),
    (ValueError, _NAN),
    (ValueError, _INF),
]
"""Refused in place of the positions of ``build_instance(5, 3)``."""

BAD_QUERIES = [
    (TypeError, torch.ones(3)),
    (TypeError, torch.ones(3, dtype=torch.int64)),
    (TypeError, [1.0, 0.0, 0.0]),
    (TypeError, None),
    (ValueError, torch.ones(4, dtype=torch.float64)),
    (ValueError, torch.ones(1, 3, dtype=torch.float64)),
    (TypeError, torch.ones(3, dtype=torch.float64).to_sparse()),
    (ValueError, torch.ones(3, dtype=torch.float64).to("meta")),
    (ValueError, torch.full((3,), torch.nan, dtype=torch.float64)),
    (ValueError, torch.full((3,), torch.inf, dtype=torch.float64)),
]
"""Refused in place of a query vector for m = 3."""

BAD_SUPPORTS = [
    (ValueError, (1, 1)),
    (ValueError, (0, 5)),
    (ValueError, (-1, 2)),
    (ValueError, (0, 1, 2)),
    (ValueError, (0,)),
    (TypeError, (0.0, 1.0)),
    (TypeError, (True, 2)),
    (TypeError, ("0", "1")),
    (TypeError, "01"),
    (TypeError, {0, 1}),
    (TypeError, 1),
    (TypeError, None),
]
"""Refused as the support for d = 5."""

BAD_COUNTS = [
    (ValueError, 0),
    (ValueError, -3),
    (ValueError, 10**30),
    (TypeError, 2.0),
    (TypeError, True),
    (TypeError, "3"),
    (TypeError, None),
]
"""Refused as a number of things, of which there must be one at least."""

BAD_RNGS = [(ValueError, -1), (TypeError, 0.5), (TypeError, "seed"), (TypeError, True)]
BAD_DEVICES = [(ValueError, "gpu"), (ValueError, "cuda:99"), (TypeError, 0), (TypeError, None)]
