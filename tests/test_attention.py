import numpy as np
import pytest
import torch
from conftest import (
    BAD_POSITIONS,
    BAD_QUERIES,
    assert_near,
    build_instance,
    cube,
    instances,
    label,
    refuses,
    squared_error,
)
from hypothesis import given
from hypothesis import strategies as st

from sparsexor import population_gradient, softmax, softmax_attention
from sparsexor._reduce import combine_rows, dot_rows, sum_positions
from sparsexor.attention import Attention


@given(instances(max_d=40, max_m=7))
def test_weights_are_torchs_softmax(instance):
    gamma = softmax_attention(instance.V, instance.theta)
    assert gamma.dtype == torch.float64
    assert (gamma >= 0).all()
    assert abs(float(gamma.sum()) - 1) < 1e-14
    assert_near(gamma, torch.softmax(instance.V @ instance.theta, dim=0), instance.tolerance)


def test_no_query_means_uniform_weights():
    V = build_instance(6, 3).V
    assert softmax_attention(V, torch.zeros(3, dtype=torch.float64)).tolist() == [1 / 6] * 6


def test_a_huge_query_points_at_one_position():
    V = build_instance(6, 3).V
    for size in (1e4, 1e300):
        assert softmax_attention(V, size * V[4]).tolist() == [0, 0, 0, 0, 1, 0]


def test_a_score_beyond_the_largest_float_is_no_nan():
    V = torch.tensor([[0.6, 0.8], [-0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
    theta = torch.tensor([1.7e308, 1.7e308], dtype=torch.float64)
    assert softmax_attention(V, theta).tolist() == [0.5, 0, 0.5]  # the first and the last score are equal
    assert softmax_attention(V, -theta).tolist() == [0, 1, 0]


def test_equal_positions_share():
    V = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    assert softmax_attention(V, 1e5 * V[1]).tolist() == [0, 0.5, 0.5]


@given(instances(), st.integers(0, 10**6))
def test_jacobian_and_pullback_are_autograds(instance, seed):
    V, theta = instance.V, instance.theta
    jacobian = torch.autograd.functional.jacobian(lambda query: torch.softmax(V @ query, dim=0), theta)
    assert_near(softmax.jacobian(V, theta), jacobian, instance.tolerance)
    cotangent = torch.from_numpy(np.random.default_rng(seed).standard_normal(len(V)))
    assert_near(softmax.pullback(V, theta, cotangent), cotangent @ jacobian, 10 * instance.tolerance)


def test_on_a_line_of_two_the_derivative_is_the_logistic_one():
    V = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    theta = torch.tensor([0.7], dtype=torch.float64)
    p = 1 / (1 + torch.exp(-2 * theta[0]))
    assert_near(softmax.weights(V, theta), torch.stack([p, 1 - p]))
    assert_near(softmax.jacobian(V, theta)[:, 0], torch.stack([2 * p * (1 - p), -2 * p * (1 - p)]))


def test_the_interface_admits_other_attentions():
    class Linear:
        def weights(self, V, theta):
            return V @ theta

        def pullback(self, V, theta, cotangent):
            return cotangent @ V

        def jacobian(self, V, theta):
            return V

    assert isinstance(softmax, Attention) and isinstance(Linear(), Attention)
    instance = build_instance(6, 3, (4, 1), antisymmetric=False)
    queries = [query.clone().requires_grad_() for query in (instance.theta, instance.theta_tilde)]
    x = cube(6)
    loss = squared_error(*(instance.V @ query for query in queries), x, label(x, instance.support))
    gradient = population_gradient(*instance, attention=Linear())
    for got, oracle in zip(gradient, torch.autograd.grad(loss, queries), strict=True):
        assert_near(got, oracle, 10 * instance.tolerance)


@given(st.integers(1, 300), st.integers(1, 5), st.integers(0, 10**6))
def test_sums_over_positions_are_exact_on_integers(d, m, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(-1000, 1000, (d, m), generator=generator).double()
    weights = torch.randint(-1000, 1000, (d,), generator=generator).double()
    vector = torch.randint(-1000, 1000, (m,), generator=generator).double()
    assert torch.equal(sum_positions(rows), rows.sum(0))
    assert torch.equal(sum_positions(weights), weights.sum())
    assert torch.equal(combine_rows(weights, rows), weights @ rows)
    assert torch.equal(dot_rows(rows, vector), rows @ vector)


def test_layout_in_memory_does_not_change_a_bit():
    instance = build_instance(1001, 37)
    columns = instance.V.T.contiguous().T
    assert columns.stride() != instance.V.stride()
    for got, expected in zip(population_gradient(columns, *instance[1:]), population_gradient(*instance), strict=True):
        assert torch.equal(got, expected)


@pytest.mark.bad_input
class TestBadInput:
    @pytest.mark.parametrize(("error", "V"), BAD_POSITIONS)
    def test_positions(self, error, V):
        with refuses(error, "V"):
            softmax_attention(V, build_instance(5, 3).theta)

    @pytest.mark.parametrize(("error", "theta"), BAD_QUERIES)
    def test_theta(self, error, theta):
        with refuses(error, "theta"):
            softmax_attention(build_instance(5, 3).V, theta)

    @pytest.mark.parametrize("attention", ["softmax", None, torch.softmax, type(softmax)])
    def test_attention(self, attention):
        with refuses(TypeError, "attention"):
            population_gradient(*build_instance(5, 3), attention=attention)
