"""Checks of arguments that every public function shares.

Each check returns the value in the form the caller works with, or raises one error that names the
argument, what came, and what is allowed: ``TypeError`` for the wrong kind of thing (a float32 tensor, a
string for a number), ``ValueError`` for the right kind with a value that is not allowed.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

UNIT_TOLERANCE = 1e-9
"""How far the norm of a position may be from 1: the largest rounding error of a normalised float64 row is far below."""


LARGEST_COUNT = 2**53
"""Above this float64 does not hold every integer, so a mean over more samples would divide by another number."""

LARGEST_SIZE = 2**34
"""Numbers in the largest tensor that is made: 128 GiB."""

LARGEST_WEIGHT = 1e70
"""The largest weight: the loss, a sum of products of four weights, stays finite."""


def check_count(name: str, value: Any, minimum: int, maximum: int = LARGEST_COUNT) -> int:
    """An integer between ``minimum`` and ``maximum``, both included (bools are not numbers here)."""
    allowed = f"an integer in {minimum}..{_power_of_two(maximum)}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}: got {value!r} of type {type(value).__name__}; expected {allowed}")
    number = int(value)
    if not minimum <= number <= maximum:
        raise ValueError(f"{name}: got {_shown(number)}; expected {allowed}")
    return number


def _power_of_two(number: int) -> str:
    """2^k and 2^k - 1 written as such, where the digits would say less."""
    for rest, text in ((0, ""), (1, "-1")):
        if number >= 2**20 and (number + rest).bit_count() == 1:
            return f"2^{number.bit_length() - 1 + rest}{text}"
    return str(number)


def _shown(number: Any) -> str:
    """A number for a message; Python refuses to write out an integer of more than 4300 digits."""
    try:
        return str(number)
    except ValueError:
        return f"a {type(number).__name__} of more than 4300 digits"


def check_size(name: str, rows: int, columns: int) -> None:
    """That a tensor of ``rows`` rows of ``columns`` numbers is not beyond any memory."""
    if rows * columns > LARGEST_SIZE:
        raise ValueError(
            f"{name}: got {rows} rows of {columns} numbers each; expected at most 2^34 = {LARGEST_SIZE} numbers"
        )


def check_real(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_ends: bool = False
) -> float:
    """A finite real number between ``low`` and ``high`` (ends included unless ``open_ends``)."""
    brackets = "()" if open_ends else "[]"
    allowed = f"a finite real number in {brackets[0]}{low}, {high}{brackets[1]}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: got {value!r} of type {type(value).__name__}; expected {allowed}")
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction above the largest float
        number = math.inf
    inside = low < number < high if open_ends else low <= number <= high
    if not (math.isfinite(number) and inside):
        raise ValueError(f"{name}: got {_shown(value)}; expected {allowed}")
    return number


def check_support(support: Any, d: int) -> tuple[int, int]:
    """Two different positions out of 0, ..., d - 1, as a pair of ints in the order given."""
    allowed = f"two different integers in 0..{d - 1}"
    if isinstance(support, str | bytes) or not isinstance(support, Sequence):
        raise TypeError(f"support: got {support!r} of type {type(support).__name__}; expected {allowed}")
    if any(isinstance(k, bool) or not isinstance(k, numbers.Integral) for k in support):
        raise TypeError(f"support: got {support!r}; expected {allowed}")
    if len(support) != 2 or support[0] == support[1] or not all(0 <= k < d for k in support):
        raise ValueError(f"support: got ({', '.join(map(_shown, support))}); expected {allowed}")
    return int(support[0]), int(support[1])


def check_tensor(name: str, value: Any, shape: tuple[int | str, ...]) -> Tensor:
    """A finite float64 tensor; ``shape`` holds a required size or, where any size will do, its letter."""
    letters = "(" + ", ".join(str(size) for size in shape) + ("," if len(shape) == 1 else "") + ")"
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: got {type(value).__name__}; expected a torch.float64 tensor of shape {letters}")
    if value.dtype != torch.float64:
        raise TypeError(
            f"{name}: got dtype {value.dtype}; expected torch.float64 (convert it yourself: {name}.double())"
        )
    if value.layout != torch.strided or value.is_nested:
        kind = "nested" if value.is_nested else str(value.layout)
        raise TypeError(f"{name}: got a {kind} tensor; expected a dense torch.float64 tensor of shape {letters}")
    fits = value.ndim == len(shape) and all(
        isinstance(s, str) or n == s for n, s in zip(value.shape, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name}: got shape {tuple(value.shape)}; expected {letters}")
    if value.is_meta:
        raise ValueError(f"{name}: got a tensor on device meta, which holds no numbers; expected one with numbers")
    if not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name}: got NaN or infinite entries; expected finite numbers")
    return value


def check_positions(V: Any) -> Tensor:
    """Positions: a (d, m) float64 tensor with d >= 2, m >= 1 and rows of norm 1 to within 1e-9."""
    V = check_tensor("V", V, ("d", "m"))
    d, m = V.shape
    if d < 2 or m < 1:
        raise ValueError(f"V: got shape {(d, m)}; expected (d, m) with d >= 2 and m >= 1")
    worst = float((torch.linalg.vector_norm(V.detach(), dim=1) - 1).abs().max())
    if worst > UNIT_TOLERANCE:
        raise ValueError(
            f"V: got a row whose norm differs from 1 by {worst:.3g}; expected unit rows, to within {UNIT_TOLERANCE}"
        )
    return V


def check_query(name: str, theta: Any, V: Tensor) -> Tensor:
    """A query vector: float64, of the positions' dimension m and on their device; its norm is free."""
    theta = check_tensor(name, theta, (V.shape[1],))
    if theta.device != V.device:
        raise ValueError(f"{name}: got device {theta.device}; expected V's device {V.device}")
    return theta


def check_queries(V: Any, theta: Any, theta_tilde: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Positions and the query vectors of both heads, which fit together."""
    V = check_positions(V)
    return V, check_query("theta", theta, V), check_query("theta_tilde", theta_tilde, V)


def check_inputs(x: Any, d: int) -> Tensor:
    """Inputs: an (n, d) float64 tensor of -1 and +1."""
    x = check_tensor("x", x, ("n", d))
    if not bool((x.abs() == 1).all()):
        raise ValueError("x: got entries other than -1 and +1; expected an (n, d) tensor of signs")
    return x


def check_weights(gamma: Any, gamma_tilde: Any) -> tuple[Tensor, Tensor]:
    """Two weight vectors of the same length, at least 2, on the same device, none beyond `LARGEST_WEIGHT`."""
    gamma = check_tensor("gamma", gamma, ("d",))
    if len(gamma) < 2:
        raise ValueError(f"gamma: got shape {tuple(gamma.shape)}; expected (d,) with d >= 2")
    gamma_tilde = check_tensor("gamma_tilde", gamma_tilde, (len(gamma),))
    if gamma_tilde.device != gamma.device:
        raise ValueError(f"gamma_tilde: got device {gamma_tilde.device}; expected gamma's device {gamma.device}")
    for name, weights in (("gamma", gamma), ("gamma_tilde", gamma_tilde)):
        largest = float(weights.detach().abs().max())
        if largest > LARGEST_WEIGHT:
            raise ValueError(f"{name}: got an entry of size {largest:.3g}; expected at most {LARGEST_WEIGHT}")
    return gamma, gamma_tilde


def check_rng(rng: Any) -> np.random.Generator:
    """The generator that ``rng`` stands for: anything numpy.random.default_rng takes, bools aside."""
    allowed = "None, a non-negative integer or a sequence of them, a SeedSequence, a BitGenerator or a Generator"
    if isinstance(rng, bool | np.bool_):
        raise TypeError(f"rng: got {rng!r} of type {type(rng).__name__}; expected {allowed}")
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"rng: got {rng!r} of type {type(rng).__name__}; expected {allowed}") from error


def check_device(device: Any) -> torch.device:
    """A device on which this machine can make tensors, by name or as a torch.device."""
    allowed = 'a device of this machine, such as "cpu"'
    if not isinstance(device, str | torch.device):
        raise TypeError(f"device: got {device!r} of type {type(device).__name__}; expected {allowed}")
    try:
        made = torch.zeros(1, dtype=torch.float64, device=device)
        made.tolist()  # a tensor on "meta" has no numbers
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ValueError(f"device: got {device!r}; expected {allowed}") from error
    return made.device
