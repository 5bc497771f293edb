from fractions import Fraction

import pytest
import torch
from conftest import (
    BAD_POSITIONS,
    BAD_QUERIES,
    BAD_SUPPORTS,
    TOLERANCE,
    assert_near,
    autograd_gradient,
    build_instance,
    cube,
    instances,
    label,
    refuses,
    squared_error,
)
from hypothesis import given
from hypothesis import strategies as st

from sparsexor import loss_gradient, population_gradient, population_loss

real_weights = st.integers(2, 8).flatmap(
    lambda d: st.tuples(
        st.lists(st.floats(-2, 2), min_size=d, max_size=d),
        st.lists(st.floats(-2, 2), min_size=d, max_size=d),
        st.permutations(range(d)).map(lambda order: tuple(order[:2])),
    )
)


def _tensor(numbers) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def _size(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest value that (|f| + 1)^2 can have, to which rounding errors are relative."""
    return float(1 + a.abs().sum() * b.abs().sum()) ** 2


@given(real_weights)
def test_loss_at_real_weights_is_the_mean_over_all_inputs(case):
    a, b, support = _tensor(case[0]), _tensor(case[1]), case[2]
    x = cube(len(a))
    got = population_loss(a, b, support)
    assert got.shape == ()
    assert_near(got, squared_error(a, b, x, label(x, support)), TOLERANCE * _size(a, b))


@given(real_weights)
def test_loss_gradient_is_autograds_over_all_inputs(case):
    a, b, support = _tensor(case[0]).requires_grad_(), _tensor(case[1]).requires_grad_(), case[2]
    x = cube(len(a))
    by_a, by_b = torch.autograd.grad(squared_error(a, b, x, label(x, support)), [a, b])
    a, b = a.detach(), b.detach()
    assert_near(loss_gradient(a, b, support), by_a, TOLERANCE * _size(a, b))
    assert_near(loss_gradient(b, a, support), by_b, TOLERANCE * _size(a, b))


def test_loss_in_exact_arithmetic():
    # eighths are dyadic: every operation below 2^53 is exact in float64, so the two must agree to the last bit
    a, b, support = [3, -1, 2, 5], [-2, 4, 1, -7], (3, 1)
    total = Fraction(0)
    for x in cube(4).long().tolist():
        f = -sum(Fraction(w, 8) * s for w, s in zip(a, x, strict=True))
        f *= sum(Fraction(w, 8) * s for w, s in zip(b, x, strict=True))
        total += (f + x[3] * x[1]) ** 2
    assert float(population_loss(_tensor(a) / 8, _tensor(b) / 8, support)) == float(total / 16)


def test_losses_known_by_hand():
    e = torch.eye(3, dtype=torch.float64)
    assert population_loss(e[0], e[2], (0, 2)) == 0  # one head a target
    assert population_loss(e[2], e[0], (0, 2)) == 0  # heads exchanged
    assert population_loss(e[0], e[0], (0, 2)) == 2  # f = -1 always: right half of the time, else (2)^2
    assert population_loss(e[0], e[1], (0, 2)) == 2  # f = -x_1 x_2 is independent of y: 1 + 1
    assert population_loss(0 * e[0], e[1], (0, 2)) == 1  # f = 0
    half = torch.full((2,), 0.5, dtype=torch.float64)
    assert population_loss(half, half, (0, 1)) == 0.5  # d = 2: f = -1 where y = -1, and f = 0 where y = 1


@given(instances())
def test_gradient_is_autograds_over_all_inputs(instance):
    x = cube(len(instance.V))
    oracle = autograd_gradient(instance, x, label(x, instance.support))
    for got, expected in zip(population_gradient(*instance), oracle, strict=True):
        assert got.dtype == torch.float64
        assert_near(got, expected, 10 * instance.tolerance)


@given(instances())
def test_gradient_is_the_derivative_of_the_loss_and_may_be_differentiated(instance):
    V, theta, theta_tilde, support = instance
    theta, theta_tilde = theta.clone().requires_grad_(), theta_tilde.clone().requires_grad_()
    loss = population_loss(torch.softmax(V @ theta, 0), torch.softmax(V @ theta_tilde, 0), support)
    first = torch.autograd.grad(loss, [theta, theta_tilde], create_graph=True)
    got = population_gradient(V, theta, theta_tilde, support)
    for g, oracle in zip(got, first, strict=True):
        assert_near(g.detach(), oracle.detach(), 10 * instance.tolerance)
    (second,) = torch.autograd.grad(got[0].sum(), theta)
    (oracle,) = torch.autograd.grad(first[0].sum(), theta)
    assert_near(second, oracle, 100 * instance.tolerance)


@given(instances())
def test_exchanging_heads_or_targets_changes_nothing_else(instance):
    V, theta, theta_tilde, (i, j) = instance
    g, g_tilde = population_gradient(V, theta, theta_tilde, (i, j))
    swapped = population_gradient(V, theta_tilde, theta, (j, i))
    assert torch.equal(swapped[0], g_tilde) and torch.equal(swapped[1], g)


def test_equal_targets_pull_both_heads_alike():
    instance = build_instance(7, 3, (2, 5))
    instance.V[2] = instance.V[5]  # delta = 0: nothing tells the targets apart
    x = cube(7)
    oracle = autograd_gradient(instance, x, label(x, (2, 5)))
    for got, expected in zip(population_gradient(*instance), oracle, strict=True):
        assert_near(got, expected)


def test_no_gradient_at_a_one_hot_head():
    instance = build_instance(6, 3, (4, 1))
    V = instance.V
    g, g_tilde = population_gradient(V, 1e6 * V[4], 1e6 * V[1], (4, 1))
    assert not g.any() and not g_tilde.any()


@pytest.mark.bad_input
class TestBadInput:
    def test_weights_whose_loss_would_overflow(self):
        small, large = torch.full((5,), 0.2, dtype=torch.float64), torch.full((5,), 1e80, dtype=torch.float64)
        for function in (population_loss, loss_gradient):
            with refuses(ValueError, "gamma"):
                function(large, small, (0, 1))
            with refuses(ValueError, "gamma_tilde"):
                function(small, -large, (0, 1))

    @pytest.mark.parametrize(("error", "V"), BAD_POSITIONS)
    def test_positions(self, error, V):
        with refuses(error, "V"):
            population_gradient(V, *build_instance(5, 3)[1:])

    @pytest.mark.parametrize(("error", "query"), BAD_QUERIES)
    def test_queries(self, error, query):
        V, theta, theta_tilde, support = build_instance(5, 3)
        with refuses(error, "theta"):
            population_gradient(V, query, theta_tilde, support)
        with refuses(error, "theta_tilde"):
            population_gradient(V, theta, query, support)

    @pytest.mark.parametrize(("error", "support"), BAD_SUPPORTS)
    def test_support(self, error, support):
        a = torch.full((5,), 0.2, dtype=torch.float64)
        with refuses(error, "support"):
            population_gradient(*build_instance(5, 3)[:3], support)
        with refuses(error, "support"):
            population_loss(a, a, support)
        with refuses(error, "support"):
            loss_gradient(a, a, support)

    @pytest.mark.parametrize("function", [population_loss, loss_gradient])
    def test_weights(self, function):
        a = torch.full((5,), 0.2, dtype=torch.float64)
        for error, bad in [
            (TypeError, a.float()),
            (TypeError, a.tolist()),
            (ValueError, a[None]),
            (ValueError, a[:1]),
            (ValueError, a * torch.nan),
            (ValueError, a / 0),
        ]:
            with refuses(error, "gamma"):
                function(bad, a, (0, 1))
            with refuses(error, "gamma_tilde"):
                function(a, bad, (0, 1))
        with refuses(ValueError, "gamma_tilde"):
            function(a, a[:4], (0, 1))
