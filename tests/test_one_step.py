"""The step, its learning rate, and the bound over all inputs, against enumeration in exact arithmetic."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from conftest import (
    BAD_COUNTS,
    BAD_POSITIONS,
    BAD_QUERIES,
    BAD_SUPPORTS,
    TOLERANCE,
    autograd_gradient,
    build_instance,
    cube,
    instances,
    label,
    refuses,
)
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sparsexor import empirical_gradient, gradient_step, sup_error, theorem2_learning_rate, worst_input
from sparsexor.one_step import descent_margins
from sparsexor.worst_input import sup_over_inputs

BITS = 1100
"""Weights are integers in units of 2^-BITS here: every float64 is one, and sums and products are exact."""


def _tensor(numbers) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def _largest_error(a: list[int], b: list[int], support: tuple[int, int]) -> Fraction:
    """max |f(x) - y| over all inputs, by the definition, in exact integers."""
    x = np.array(list(itertools.product([1, -1], repeat=len(a))), dtype=object)
    f = -(x @ np.array(a, dtype=object)) * (x @ np.array(b, dtype=object))
    y = -x[:, support[0]] * x[:, support[1]]
    return Fraction(max(abs(f - y * 4**BITS)), 4**BITS)


def _softmax_integers(V: torch.Tensor, theta: torch.Tensor) -> list[int]:
    """Softmax weights to 2^-BITS, computed with far more bits than float64 has."""
    with mpmath.workprec(BITS + 100):
        rows, query = V.tolist(), theta.tolist()
        scores = [mpmath.fsum(mpmath.mpf(v) * t for v, t in zip(row, query, strict=True)) for row in rows]
        top = max(scores)
        powers = [mpmath.exp(s - top) for s in scores]
        total = mpmath.fsum(powers)
        return [int(mpmath.nint(p / total * mpmath.mpf(2) ** BITS)) for p in powers]


def _exact_sup(V: torch.Tensor, theta: torch.Tensor, theta_tilde: torch.Tensor, support: tuple[int, int]) -> Fraction:
    return _largest_error(_softmax_integers(V, theta), _softmax_integers(V, theta_tilde), support)


def _exact_sup_of_weights(a: torch.Tensor, b: torch.Tensor, support: tuple[int, int]) -> Fraction:
    integers = ([int(Fraction(w) * 2**BITS) for w in weights.tolist()] for weights in (a, b))
    return _largest_error(*integers, support)


def _normalised(weights: torch.Tensor) -> torch.Tensor:
    return weights / weights.sum()


# ---- the bound over all inputs

weights = st.integers(2, 8).flatmap(
    lambda d: st.tuples(
        *[st.lists(st.sampled_from([0.0, 1e-200, 1e-9, 0.01, 0.3, 1.0, 2.5]) | st.floats(0, 3), min_size=d, max_size=d)]
        * 2,
        st.permutations(range(d)).map(lambda order: tuple(order[:2])),
    )
)


@settings(max_examples=200)
@given(instances(max_d=10, max_m=4, scales=(0.0, 0.3, 1.0, 3.0, 8.0, 30.0)))
def test_sup_error_is_the_largest_error_rounded_up(instance):
    truth = _exact_sup(*instance)
    bound = sup_error(*instance)
    assert isinstance(bound, float)
    assert truth <= Fraction(bound)
    assert bound - truth <= 1e-12


@settings(max_examples=100)
@given(instances(max_d=8, scales=(1e2, 1e4, 1e8)), st.floats(0.5, 2))
def test_sup_error_bounds_sharp_attention(instance, tilt):
    # one head near each of two positions, at scores so large that their rounding shows in the weights
    V, theta, theta_tilde, (i, j) = instance
    theta, theta_tilde = theta + tilt * theta.norm() * V[i], theta_tilde + tilt * theta_tilde.norm() * V[j]
    truth = _exact_sup(V, theta, theta_tilde, (i, j))
    bound = sup_error(V, theta, theta_tilde, (i, j))
    assert truth <= Fraction(bound)
    assert bound - truth <= TOLERANCE * (1 + float(theta.norm() + theta_tilde.norm()))


@settings(max_examples=200)
@given(weights)
def test_sup_over_inputs_brackets_the_largest_error(case):
    a, b, support = _tensor(case[0]), _tensor(case[1]), case[2]
    assume(a.sum() > 0.01 and b.sum() > 0.01)
    a, b = _normalised(a), _normalised(b)
    truth = _exact_sup_of_weights(a, b, support)
    lower, upper = sup_over_inputs(a, b, support)
    assert Fraction(lower) <= truth <= Fraction(upper)
    assert upper - lower <= 1e-12


def test_known_values():
    a = _tensor([1.0, 0.0, 0.0])
    for first, second, value in [(a, a.flip(0), 0), (a, a.roll(1), 2), (a, a, 2)]:
        lower, upper = sup_over_inputs(first, second, (0, 2))
        assert lower <= value <= upper <= lower + 1e-13
    # uniform heads: f = -(mean of x)^2, worst where y = 1 and all but one sign agree: 1 + (1 - 2/d)^2
    V = build_instance(6, 3).V
    zero = torch.zeros(3, dtype=torch.float64)
    assert 1 + (4 / 6) ** 2 <= sup_error(V, zero, zero, (5, 2)) <= 1 + (4 / 6) ** 2 + 1e-13


@settings(max_examples=60)
@given(instances(max_d=7), st.sampled_from([60.0, 200.0, 600.0]))
def test_relative_accuracy_at_tiny_errors(instance, scale):
    # heads on the two targets, by a lead of some dozens up to hundreds: errors of 1e-15 to 1e-300
    V, _, _, (i, j) = instance
    assume(float((V @ V.T).fill_diagonal_(-1).max()) < 0.9)
    theta, theta_tilde = scale * V[i], scale * V[j]
    truth = _exact_sup(V, theta, theta_tilde, (i, j))
    bound = sup_error(V, theta, theta_tilde, (i, j))
    assert truth <= Fraction(bound)
    assert Fraction(bound) <= truth * (1 + Fraction(1, 10**9)) + Fraction(1, 10**300)


def _between_vertices() -> tuple[torch.Tensor, torch.Tensor]:
    """Weights at which no vertex of the zonogon is the worst input."""
    K = _tensor([0.275, 0.05, 0.275])
    a = torch.cat([_tensor([1e-6, 1e-6, 0.4]), K])
    b = torch.cat([_tensor([0.35, 0.35, 1e-6]), 0.5 * K * _tensor([0.999, 1.0, 1.001])])
    return _normalised(a), _normalised(b)


def test_the_worst_input_need_not_be_a_vertex(monkeypatch):
    a, b = _between_vertices()
    truth = float(_exact_sup_of_weights(a, b, (0, 1)))
    assert truth == pytest.approx(1.404997, abs=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr(worst_input, "NODES", 0)  # vertices and sides only
        lower, upper = sup_over_inputs(a, b, (0, 1))
    assert lower < truth - 4e-3 and truth + 1e-5 < upper
    assert upper - lower <= float((a * b)[2:].max()) + 1e-12  # the gap that the theorem allows
    lower, upper = sup_over_inputs(a, b, (0, 1))
    assert truth - 1e-13 <= lower <= truth <= upper <= truth + 1e-13


@settings(max_examples=100)
@given(weights)
@example(([1e-6, 1e-6, 0.4, 0.275, 0.05, 0.275], [0.35, 0.35, 1e-6, 0.1373625, 0.025, 0.1376375], (0, 1)))
def test_without_branching_the_gap_is_that_of_the_theorem(case):
    a, b, (i, j) = _tensor(case[0]), _tensor(case[1]), case[2]
    assume(a.sum() > 0.01 and b.sum() > 0.01)
    a, b = _normalised(a), _normalised(b)
    products = a * b
    products[[i, j]] = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worst_input, "NODES", 0)
        lower, upper = sup_over_inputs(a, b, (i, j))
    truth = _exact_sup_of_weights(a, b, (i, j))
    assert Fraction(lower) <= truth <= Fraction(upper)
    assert upper - lower <= float(products.max()) + 1e-12
    if upper < 1 - 1e-12:
        assert upper - lower <= 1e-12  # below 1 the vertices are exact


def _partition(parts: list[int]) -> tuple[torch.Tensor, torch.Tensor, float, float]:
    """Weights whose largest error says how well the parts split into halves, with its value and its upper bound.

    With a = (0, 0, .4, K), b = (.35, .35, 0, K / 2), sum K = .6 and x_2 = -1, the error is 1.405 - (p + .5)^2 / 2 at
    p = sum x_k K_k; p = -.5 asks for a subset of a twelfth of the total, which five times their own sum, added to the
    parts, makes the half.
    """
    K = np.array([*parts, 5 * sum(parts)]) * 0.1 / sum(parts)
    a, b = np.array([0, 0, 0.4, *K]), np.array([0.35, 0.35, 0, *(K / 2)])
    subsets = np.array(list(itertools.product([0, 1], repeat=len(parts)))) @ np.array(parts)
    miss = int(np.abs(2 * subsets - sum(parts)).min()) / sum(parts)
    return _tensor(a / a.sum()), _tensor(b / b.sum()), 1.405 - (0.1 * miss) ** 2 / 2, 1.405


def _odd_parts(count: int, seed: int) -> list[int]:
    """Large numbers of odd sum: they have no halves, only near misses."""
    parts = np.random.default_rng(seed).integers(10**5, 10**6, count).tolist()
    return [parts[0] + (sum(parts) + 1) % 2, *parts[1:]]


def test_partition_is_what_branching_has_to_solve(monkeypatch):
    a, b, truth, relaxed = _partition(_odd_parts(8, seed=0))
    assert truth == pytest.approx(float(_exact_sup_of_weights(a, b, (0, 1))), abs=1e-14)
    lower, upper = sup_over_inputs(a, b, (0, 1))
    assert truth - 1e-13 < lower < upper < truth + 1e-13 < relaxed
    monkeypatch.setattr(worst_input, "NODES", 20)
    lower, upper = sup_over_inputs(a, b, (0, 1))
    assert lower < truth < upper - 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_when_the_budget_runs_out_it_is_still_a_bound(seed):
    a, b, truth, relaxed = _partition(_odd_parts(12, seed))
    lower, upper = sup_over_inputs(a, b, (0, 1))
    assert lower - 1e-14 <= truth < upper - 1e-12  # not closed
    assert upper <= relaxed + 1e-13


@settings(max_examples=60)
@given(instances(max_d=7, scales=(1.0,)), st.sampled_from([1e3, 1e6]))
def test_rounded_scores_are_covered_where_weights_nearly_tie(instance, scale):
    # each head sits between two positions, where the rounding of large scores moves its weights most
    V, _, _, (i, j) = instance
    other = next((k for k in range(len(V)) if k not in (i, j)), i)
    theta, theta_tilde = scale * (V[i] + V[j]), scale * (V[j] + V[other])
    truth = _exact_sup(V, theta, theta_tilde, (i, j))
    bound = sup_error(V, theta, theta_tilde, (i, j))
    assert truth <= Fraction(bound)
    assert bound - truth <= TOLERANCE * (1 + float(theta.norm() + theta_tilde.norm()))


def test_scores_beyond_rounding_leave_the_trivial_bound():
    V, theta, theta_tilde, support = build_instance(5, 3)
    assert sup_error(V, 1e300 * theta, theta_tilde, support) == 2
    assert sup_error(V, torch.full_like(theta, 1.7e308), theta_tilde, support) == 2


def test_underflow_leaves_a_bound_above_zero():
    V = torch.eye(4, dtype=torch.float64)
    assert 0 < sup_error(V, 1e4 * V[2], 1e4 * V[1], (1, 2)) < 1e-300


def test_sup_error_at_a_size_nobody_enumerates():
    # all weights equal but for the heads' targets: the worst input is known but for one number, here tried through
    d = 3000
    V = _tensor([[0.0, 1.0]]).repeat(d, 1)
    V[3], V[d - 1] = _tensor([1.0, 0.0]), _tensor([-1.0, 0.0])
    theta = _tensor([20.0, 0.0])
    with mpmath.workprec(200):
        total = mpmath.exp(20) + (d - 2) + mpmath.exp(-20)
        # the targets' signs differ: k of the other signs are against head 1's target, the rest against head 2's
        share = [(mpmath.exp(-20) + k) / total for k in range(d - 1)]
        differ = max(1 - (1 - 2 * s) * (1 - 2 * t) for s, t in zip(share, reversed(share), strict=True))
        agree = 1 - (1 - 2 * (d - 2) / total) ** 2
        bound = sup_error(V, theta, -theta, (3, d - 1))
        assert agree > differ
        assert agree <= bound <= agree * (1 + mpmath.mpf(10) ** -11)


# ---- the step


@settings(max_examples=50)
@given(instances(), st.sampled_from([0.0, 0.5, 3.0, 1e3]))
def test_population_step_is_autograds(instance, eta):
    x = cube(len(instance.V))
    oracle = autograd_gradient(instance, x, label(x, instance.support))
    queries = (instance.theta, instance.theta_tilde)
    for got, start, g in zip(gradient_step(*instance, eta), queries, oracle, strict=True):
        torch.testing.assert_close(got, start - eta * g, rtol=1e-15, atol=20 * eta * instance.tolerance)


def test_sampled_step_uses_the_samples_of_its_seed():
    instance = build_instance(7, 4, (5, 2))
    got = gradient_step(*instance, 2.0, n=300, seed=11)
    for query, start, g in zip(got, instance[1:3], empirical_gradient(*instance, 300, seed=11), strict=True):
        assert torch.equal(query, start - 2.0 * g)
    assert not torch.equal(got[0], gradient_step(*instance, 2.0, n=300, seed=12)[0])
    assert not torch.equal(got[0], gradient_step(*instance, 2.0)[0])


def test_step_leaves_its_inputs_alone():
    instance = build_instance(5, 3)
    kept = [t.clone() for t in instance[:3]]
    gradient_step(*instance, 1.0)
    descent_margins(instance.V, instance.theta, instance.support)
    sup_error(*instance)
    assert all(torch.equal(t, k) for t, k in zip(instance[:3], kept, strict=True))


# ---- the deterministic form of Theorem 2

antisymmetric_starts = st.builds(
    lambda d, m, order, seed, scale: build_instance(d, m, tuple(order(d)), seed, scale),
    st.integers(2, 300),
    st.integers(2, 40),
    st.randoms(use_true_random=False).map(lambda random: lambda d: random.sample(range(d), 2)),
    st.integers(0, 10**6),
    st.sampled_from([0.3, 1.0, 3.0]),
)


@given(antisymmetric_starts)
def test_margins_by_their_definition(instance):
    V, theta, theta_tilde, support = instance
    got = descent_margins(V, theta, support)
    p, q = got.targets
    assert {p, q} == set(support)
    weights = [torch.softmax(V @ query, 0).requires_grad_() for query in (theta, theta_tilde)]
    a, b = weights
    i, j = support
    loss = 1 - 2 * (a[i] * b[j] + a[j] * b[i]) + (a @ a) * (b @ b) + 2 * (a @ b) ** 2 - 2 * (a**2 * b**2).sum()
    loss.backward()
    for w, start, rates, gaps, target, margin, rival in [
        (a, theta, got.rates, got.gaps, p, got.margin, got.rival),
        (b, theta_tilde, got.rates_tilde, got.gaps_tilde, q, got.margin_tilde, got.rival_tilde),
    ]:
        w, slope = w.detach(), w.grad
        g = V.T @ (w * (slope - w @ slope))
        for value, oracle in [(rates, (V[target] - V) @ -g), (gaps, (V[target] - V) @ start)]:
            torch.testing.assert_close(value, oracle, rtol=0, atol=1e-12)
        others = [l for l in range(len(V)) if l != target]
        assert rival in others and margin == rates[rival] == min(float(rates[l]) for l in others)
    assert got.rates[q] >= 0


@settings(max_examples=120)
@given(antisymmetric_starts, st.sampled_from([1.0, 0.3, 1e-3, 1e-9]))
def test_from_the_learning_rate_on_every_input_is_learnt(instance, eps):
    V, theta, _, support = instance
    margins = descent_margins(V, theta, support)
    if min(margins.margin, margins.margin_tilde) <= 0:
        with pytest.raises(ValueError, match=r"^margin(_tilde)?: got .*; expected > 0"):
            theorem2_learning_rate(V, theta, support, eps)
        return
    eta = theorem2_learning_rate(V, theta, support, eps)
    for factor in (1, 1.5, 10, 1e3):
        assert sup_error(V, *gradient_step(*instance, factor * eta), support) <= eps


@pytest.mark.parametrize("eps", [1.0, 1e-2, 1e-9, 1e-30, 1e-200])
@pytest.mark.parametrize("seed", range(5))
def test_two_positions_make_the_learning_rate_tight(seed, eps):
    # d = 2: each head has one rival, and by symmetry both leads are equal: 1 - (1 - 2 alpha)^2 with alpha just
    # below eps / 4, so nothing is left for rounding, and a slightly smaller rate does not do
    instance = build_instance(2, 3, (1, 0), seed, 0.5)
    eta = theorem2_learning_rate(instance.V, instance.theta, (1, 0), eps)
    reached = [sup_error(instance.V, *gradient_step(*instance, c * eta), (1, 0)) for c in (0.9, 1, 2)]
    assert reached[0] > reached[1] > reached[2]
    assert eps * (1 - eps / 2) * (1 - 1e-9) <= reached[1] <= eps
    assert _exact_sup(instance.V, *gradient_step(*instance, eta), (1, 0)) <= Fraction(eps)
    if eps <= 1e-2:  # then 1% off the lead weighs more than the eps / 2 that the bound leaves
        assert sup_error(instance.V, *gradient_step(*instance, 0.99 * eta), (1, 0)) > eps


@pytest.mark.parametrize("seed", range(5))
def test_learning_rate_covers_the_rounding_of_long_queries(seed):
    # a large part of theta that no position sees leaves the softmax as it is, but its scores are rounded coarsely
    instance = build_instance(2, 2, (1, 0), seed, 0.5)
    V = torch.cat([instance.V, torch.zeros(2, 1, dtype=torch.float64)], dim=1)
    theta = torch.cat([instance.theta, _tensor([1e7])])
    eta = theorem2_learning_rate(V, theta, (1, 0), 1e-20)
    for factor in (1, 1.001, 2):
        assert sup_error(V, *gradient_step(V, theta, -theta, (1, 0), factor * eta), (1, 0)) <= 1e-20


def test_learning_rate_covers_the_rounding_of_a_rival_at_ulps():
    # a third position dozens to thousands of ulps beside head 1's target asks for rates at which the scores' own rounding counts
    rng, answered = np.random.default_rng(0), 0
    for _ in range(400):
        V = torch.nn.functional.normalize(torch.from_numpy(rng.standard_normal((2, 2))), dim=1)
        theta = torch.from_numpy(1.5 * rng.standard_normal(2))
        target = V[descent_margins(V, theta, (0, 1)).targets[0]]
        across = target.flip(0) * _tensor([-1, 1]) * int(rng.integers(60, 2000)) * rng.choice([1, -1])
        V = torch.cat([V, (target + 2.0**-53 * across)[None]])
        try:
            eta = theorem2_learning_rate(V, theta, (0, 1), 1.0)
        except ValueError:  # a margin within its rounding error
            continue
        answered += 1
        assert sup_error(V, *gradient_step(V, theta, -theta, (0, 1), eta), (0, 1)) <= 1.0
    assert answered >= 10


@pytest.mark.parametrize("length", [1e17, 1e300, 1.7e308])
def test_queries_too_long_for_their_rounding_have_no_learning_rate(length):
    # no position sees the long part of theta, so softmax and the margins are those of the short one
    V = _tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [-0.6, -0.8, 0.0, 0.0]])
    theta = _tensor([0.3, -0.3, length, length])
    assert min(descent_margins(V, theta, (0, 1)).margin, descent_margins(V, theta, (0, 1)).margin_tilde) > 0.1
    with pytest.raises(ValueError, match=r"^theta: got norm .*; expected at most"):
        theorem2_learning_rate(V, theta, (0, 1), 0.01)


@given(antisymmetric_starts.filter(lambda instance: len(instance.V) >= 20))
def test_without_a_step_nothing_is_learnt(instance):
    # the mean squared error at the antisymmetric start is at least (1 - a_i b_j - a_j b_i)^2, and a_k b_k <= 1 / d^2
    V, theta, _, (i, j) = instance
    shared = 2 * math.cosh(float((V[i] - V[j]) @ theta)) / len(V) ** 2
    assert sup_error(*instance) >= 1 - shared


def test_heads_that_share_a_target_learn_at_no_rate():
    refused = 0
    for seed in range(120):
        instance = build_instance(50, 10, (7, 3), seed)
        margins = descent_margins(instance.V, instance.theta, instance.support)
        if not (margins.rates[margins.targets[1]] > 0 and margins.rates_tilde[margins.targets[0]] < 0):
            continue
        refused += 1
        with pytest.raises(ValueError, match=r"^margin(_tilde)?: got -.*head [12].*; expected > 0"):
            theorem2_learning_rate(*instance[:2], instance.support, 0.5)
        for eta in (1e6, 1e8, 1e10):  # one target leads in both heads, so E(f - y)^2 >= (1 - 1/2)^2
            assert sup_error(instance.V, *gradient_step(*instance, eta), instance.support) >= 0.5
    assert refused >= 5


def test_both_heads_on_one_target_are_named():
    messages = []
    for seed in range(200):
        instance = build_instance(4, 8, (0, 1), seed)
        try:
            theorem2_learning_rate(*instance[:2], (0, 1), 0.5)
        except ValueError as refused:
            messages.append(str(refused))
    assert any(
        "both heads want the same target" in message and "margin_tilde: got -" in message for message in messages
    )


def test_targets_that_nothing_tells_apart():
    instance = build_instance(9, 4, (2, 6))
    instance.V[2] = instance.V[6]
    assert descent_margins(instance.V, instance.theta, (2, 6)).margin <= 0
    with pytest.raises(ValueError, match=r"^margin: got .*head 1, target 2 .*; expected > 0"):
        theorem2_learning_rate(*instance[:2], (2, 6), 0.1)


def test_underflowing_gradients_are_refused():
    V = torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"^margin: got 0 .*; expected > 0"):
        theorem2_learning_rate(V, 1e4 * V[0], (0, 1), 0.1)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_nothing_depends_on_the_number_of_threads(threads):
    instance = build_instance(40_000, 12, (5, 1))
    before = torch.get_num_threads()
    results = []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            margins = descent_margins(instance.V, instance.theta, instance.support)
            stepped = gradient_step(*instance, 1e9)
            sups = sup_error(*instance), sup_error(instance.V, *stepped, instance.support)
            results.append((sups, margins.margin, margins.margin_tilde, stepped[0].tolist()))
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1]


@pytest.mark.bad_input
class TestBadInput:
    INSTANCE = build_instance(5, 3)

    @pytest.mark.parametrize(("error", "V"), BAD_POSITIONS)
    def test_positions(self, error, V):
        _, theta, theta_tilde, support = self.INSTANCE
        for call in (
            lambda: gradient_step(V, theta, theta_tilde, support, 1.0),
            lambda: gradient_step(V, theta, theta_tilde, support, 1.0, n=3, seed=1),
            lambda: sup_error(V, theta, theta_tilde, support),
            lambda: descent_margins(V, theta, support),
            lambda: theorem2_learning_rate(V, theta, support, 0.5),
        ):
            with refuses(error, "V"):
                call()

    @pytest.mark.parametrize(("error", "query"), BAD_QUERIES)
    def test_queries(self, error, query):
        V, theta, theta_tilde, support = self.INSTANCE
        for call in (
            lambda: gradient_step(V, query, theta_tilde, support, 1.0),
            lambda: sup_error(V, query, theta_tilde, support),
            lambda: descent_margins(V, query, support),
            lambda: theorem2_learning_rate(V, query, support, 0.5),
        ):
            with refuses(error, "theta"):
                call()
        for call in (
            lambda: gradient_step(V, theta, query, support, 1.0),
            lambda: sup_error(V, theta, query, support),
        ):
            with refuses(error, "theta_tilde"):
                call()

    @pytest.mark.parametrize(("error", "support"), BAD_SUPPORTS)
    def test_support(self, error, support):
        V, theta, theta_tilde, _ = self.INSTANCE
        a = torch.full((5,), 0.2, dtype=torch.float64)
        for call in (
            lambda: gradient_step(V, theta, theta_tilde, support, 1.0),
            lambda: sup_error(V, theta, theta_tilde, support),
            lambda: sup_over_inputs(a, a, support),
            lambda: descent_margins(V, theta, support),
            lambda: theorem2_learning_rate(V, theta, support, 0.5),
        ):
            with refuses(error, "support"):
                call()

    @pytest.mark.parametrize(
        ("error", "eta"),
        [(ValueError, bad) for bad in (-1.0, -1e-300, -1, math.nan, math.inf, -math.inf)]
        + [(TypeError, bad) for bad in (True, "1", None, 1j, [1.0], torch.tensor(1.0))],
    )
    def test_eta(self, error, eta):
        with refuses(error, "eta"):
            gradient_step(*self.INSTANCE, eta)

    def test_eta_beyond_the_floats(self):
        # head 2 sees x_1 alone and head 1 half of both: one sample with x_1 = -x_2 gives a gradient of 2
        instance = _tensor([[1.0], [-1.0]]), _tensor([0.0]), _tensor([20.0]), (0, 1)
        seed = next(seed for seed in range(20) if empirical_gradient(*instance, 1, seed=seed)[0].abs() > 1.9)
        with refuses(ValueError, "eta"):
            gradient_step(*instance, 1.7e308, n=1, seed=seed)

    @pytest.mark.parametrize(("error", "n"), BAD_COUNTS[:-1])
    def test_n(self, error, n):
        with refuses(error, "n"):
            gradient_step(*self.INSTANCE, 1.0, n=n, seed=1)

    @pytest.mark.parametrize(
        ("error", "seed"),
        [(ValueError, None), (ValueError, -1), (ValueError, 2**64), (TypeError, 1.0), (TypeError, True)],
    )
    def test_seed(self, error, seed):
        with refuses(error, "seed"):
            gradient_step(*self.INSTANCE, 1.0, n=3, seed=seed)

    def test_seed_without_n(self):
        with refuses(ValueError, "seed"):
            gradient_step(*self.INSTANCE, 1.0, seed=0)

    @pytest.mark.parametrize(
        ("error", "eps"),
        [(ValueError, bad) for bad in (0, 0.0, -0.1, 1.0000001, 2, math.nan, math.inf)]
        + [(TypeError, bad) for bad in (True, "0.1", None, torch.tensor(0.1))],
    )
    def test_eps(self, error, eps):
        with refuses(error, "eps"):
            theorem2_learning_rate(*self.INSTANCE[:2], (0, 1), eps)

    def test_attention(self):
        with refuses(TypeError, "attention"):
            gradient_step(*self.INSTANCE, 1.0, attention="softmax")
        with refuses(TypeError, "attention"):
            sup_error(*self.INSTANCE, attention=torch.softmax)

    def test_gaps_that_overflow(self):
        V = _tensor([[0.6, 0.8], [-0.6, -0.8], [0.8, 0.6]])
        with refuses(ValueError, "theta"):
            descent_margins(V, _tensor([1.7e308, 1.7e308]), (0, 1))

    def test_weights(self):
        a = torch.full((5,), 0.2, dtype=torch.float64)
        negative = _tensor([0.5, 0.6, -0.1, 0.0, 0.0])
        for error, bad in [
            (TypeError, a.float()),
            (TypeError, a.tolist()),
            (ValueError, a[None]),
            (ValueError, a[:1]),
            (ValueError, a * torch.nan),
            (ValueError, negative),
            (ValueError, 1.1 * a),
        ]:
            with refuses(error, "gamma"):
                sup_over_inputs(bad, a, (0, 1))
            with refuses(error, "gamma_tilde"):
                sup_over_inputs(a, bad, (0, 1))
