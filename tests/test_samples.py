import numpy as np
import pytest
import torch
from conftest import (
    BAD_COUNTS,
    BAD_POSITIONS,
    BAD_QUERIES,
    BAD_SUPPORTS,
    assert_near,
    autograd_gradient,
    build_instance,
    cube,
    instances,
    label,
    refuses,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsexor import empirical_gradient, empirical_gradient_from_data, population_gradient, samples
from sparsexor.samples import BLOCK, sample_block

BAD_SEEDS = [
    (ValueError, -1),
    (ValueError, 2**64),
    (TypeError, 1.0),
    (TypeError, True),
    (TypeError, "0"),
    (TypeError, None),
]


def _same(got, expected) -> bool:
    return all(torch.equal(g, e) for g, e in zip(got, expected, strict=True))


def _bits_by_hand(seed: int, block: int, d: int, size: int) -> list[list[float]]:
    """The documented layout, bit by bit: sample r owns the words r*w, ..., and a set bit is a -1."""
    words_a_sample = -(-d // 64)
    words = np.random.Philox(key=seed, counter=np.array([0, block, 0, 0], dtype=np.uint64)).random_raw(
        size * words_a_sample
    )
    return [
        [1.0 - 2.0 * ((int(words[r * words_a_sample + k // 64]) >> (k % 64)) & 1) for k in range(d)]
        for r in range(size)
    ]


def _stream(seed: int, n: int, d: int) -> torch.Tensor:
    """The first n samples of a stream, put together from its blocks."""
    return torch.cat([sample_block(seed, block, d) for block in range(-(-n // BLOCK))])[:n]


@pytest.mark.parametrize(
    ("seed", "block", "d"), [(0, 0, 2), (7, 3, 63), (7, 3, 64), (2**64 - 1, 2**64 - 1, 65), (5, 1, 200)]
)
def test_a_block_has_the_documented_bits(seed, block, d):
    x = sample_block(seed, block, d, 10)
    assert x.shape == (10, d) and x.dtype == torch.float64
    assert x.tolist() == _bits_by_hand(seed, block, d, 10)
    assert torch.equal(sample_block(seed, block, d)[:10], x)


def test_blocks_and_seeds_differ():
    blocks = [sample_block(seed, block, 50) for seed in (0, 1) for block in (0, 1)]
    for first in range(4):
        for second in range(first):
            assert (blocks[first] * blocks[second]).mean().abs() < 5 / (BLOCK * 50) ** 0.5


def test_samples_are_uniform_and_pairwise_uncorrelated():
    n, d = 64 * BLOCK, 70  # products of two bits are signs of mean 0: deviation 1/sqrt(n), 2485 of them, six sigma
    x = _stream(3, n, d)
    correlations = x.T @ x / n - torch.eye(d)
    assert max(correlations.abs().max(), x.mean(0).abs().max()) < 6 / n**0.5


@settings(max_examples=30)
@given(instances(), st.integers(1, 3 * BLOCK), st.integers(0, 2**64 - 1))
def test_gradient_is_autograds_over_the_samples(instance, n, seed):
    d = len(instance.V)
    x = _stream(seed, n, d)
    oracle = autograd_gradient(instance, x, label(x, instance.support))
    for got, expected in zip(empirical_gradient(*instance, n, seed=seed), oracle, strict=True):
        assert got.dtype == torch.float64
        assert_near(got, expected, 10 * instance.tolerance)


@pytest.mark.parametrize("n", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 9 * BLOCK + 5])
def test_workers_do_not_change_a_bit(n):
    instance = build_instance(30, 4, (9, 2))
    one = empirical_gradient(*instance, n, seed=4)
    assert _same(empirical_gradient(*instance, n, seed=4, workers=2), one)
    assert _same(empirical_gradient(*instance, n, seed=4, workers=7), one)
    assert not _same(empirical_gradient(*instance, n, seed=5), one)


def test_more_samples_continue_the_stream():
    # n g_n is a sum over samples, so the sums over n + 1 and n samples differ by the last sample's own share
    instance = build_instance(12, 3, (5, 0))
    for n in (6, BLOCK, BLOCK + 9):
        x = _stream(2, n + 1, 12)[-1:]
        more, less = empirical_gradient(*instance, n + 1, seed=2), empirical_gradient(*instance, n, seed=2)
        for g_more, g_less, share in zip(more, less, autograd_gradient(instance, x, label(x, (5, 0))), strict=True):
            assert_near((n + 1) * g_more - n * g_less, share, 1e-13 * n)


def test_many_samples_approach_the_population():
    # a component of one sample's gradient is below 2 |f - y| |b.x| |d a| < 8, so 5 * 8 / sqrt(n) is beyond five sigma
    instance, n = build_instance(10, 4, (3, 8)), 200_000
    for got, limit in zip(empirical_gradient(*instance, n, seed=1), population_gradient(*instance), strict=True):
        assert_near(got, limit, 40 / n**0.5)


@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (2, 8)])
def test_memory_does_not_grow_with_the_samples(monkeypatch, workers, ahead):
    sizes, share = [], samples._weight_gradients

    def counted(a, b, x, y):
        sizes.append(len(x))
        return share(a, b, x, y)

    monkeypatch.setattr(samples, "_weight_gradients", counted)
    a = torch.full((5,), 0.2, dtype=torch.float64)
    for used, _ in enumerate(samples._block_gradients(a, a, (0, 1), 30 * BLOCK - 1, 0, workers)):
        assert len(sizes) <= used + ahead  # few blocks are ever drawn before their turn
    assert sorted(sizes) == [BLOCK - 1] + 29 * [BLOCK]


@settings(max_examples=30)
@given(instances(max_d=8), st.lists(st.integers(0, 2 * BLOCK), min_size=1, max_size=4), st.integers(0, 99))
def test_given_data_count_each_sample_once(instance, sizes, seed):
    sizes = [1, *sizes]
    d, rng = len(instance.V), np.random.default_rng(seed)
    x = torch.from_numpy(rng.choice([-1.0, 1.0], size=(sum(sizes), d)))
    y = torch.from_numpy(rng.choice([-1.0, 1.0], size=sum(sizes)))  # any labels: noise is allowed
    batches = zip(x.split(sizes), y.split(sizes), strict=True)
    got = empirical_gradient_from_data(*instance[:3], batches)
    for g, oracle in zip(got, autograd_gradient(instance, x, y), strict=True):
        assert_near(g, oracle, 10 * instance.tolerance)


def test_the_whole_cube_as_data_is_the_population():
    instance = build_instance(9, 4, (6, 2), antisymmetric=False)
    x = cube(9)
    got = empirical_gradient_from_data(*instance[:3], [(x, label(x, (6, 2)))])
    for g, population in zip(got, population_gradient(*instance), strict=True):
        assert_near(g, population)


def test_the_stream_given_as_data_is_the_same_to_the_last_bit():
    instance = build_instance(20, 4, (6, 2))
    x = _stream(11, 700, 20)
    y = label(x, (6, 2))
    expected = empirical_gradient(*instance, 700, seed=11)
    assert _same(empirical_gradient_from_data(*instance[:3], [(x, y)]), expected)
    parts = list(zip(x.split(2 * BLOCK), y.split(2 * BLOCK), strict=True))
    assert _same(empirical_gradient_from_data(*instance[:3], parts), expected)


def test_parameters_with_gradients_come_out_cut_off():
    instance = build_instance(6, 3)
    theta = torch.nn.Parameter(instance.theta)
    assert not empirical_gradient(instance.V, theta, instance.theta_tilde, (0, 1), 300)[0].requires_grad


@pytest.mark.bad_input
class TestBadInput:
    @pytest.mark.parametrize(("error", "V"), BAD_POSITIONS)
    def test_positions(self, error, V):
        _, *queries, support = build_instance(5, 3)
        with refuses(error, "V"):
            empirical_gradient(V, *queries, support, 3)
        with refuses(error, "V"):
            empirical_gradient_from_data(V, *queries, [])

    @pytest.mark.parametrize(("error", "query"), BAD_QUERIES)
    def test_queries(self, error, query):
        V, theta, theta_tilde, support = build_instance(5, 3)
        for name, queries in (("theta", (query, theta_tilde)), ("theta_tilde", (theta, query))):
            with refuses(error, name):
                empirical_gradient(V, *queries, support, 3)
            with refuses(error, name):
                empirical_gradient_from_data(V, *queries, [])

    @pytest.mark.parametrize(("error", "support"), BAD_SUPPORTS)
    def test_support(self, error, support):
        with refuses(error, "support"):
            empirical_gradient(*build_instance(5, 3)[:3], support, 3)

    @pytest.mark.parametrize(("error", "count"), BAD_COUNTS)
    def test_n_and_workers(self, error, count):
        with refuses(error, "n"):
            empirical_gradient(*build_instance(5, 3), count)
        with refuses(error, "workers"):
            empirical_gradient(*build_instance(5, 3), 3, workers=count)
        with refuses(error, "size"):
            sample_block(0, 0, 5, count)

    @pytest.mark.parametrize(("error", "seed"), BAD_SEEDS)
    def test_seed_and_block(self, error, seed):
        with refuses(error, "seed"):
            empirical_gradient(*build_instance(5, 3), 3, seed=seed)
        with refuses(error, "block"):
            sample_block(0, seed, 5)

    def test_block_geometry(self):
        with refuses(ValueError, "size"):
            sample_block(0, 0, 5, BLOCK + 1)
        with refuses(ValueError, "d"):
            sample_block(0, 0, 1)

    def test_more_threads_than_a_machine_has(self):
        with refuses(ValueError, "workers"):
            empirical_gradient(*build_instance(5, 3), 3, workers=10**5)

    def test_attention(self):
        with refuses(TypeError, "attention"):
            empirical_gradient(*build_instance(5, 3), 3, attention="softmax")
        with refuses(TypeError, "attention"):
            empirical_gradient_from_data(*build_instance(5, 3)[:3], [], attention=None)

    def test_batches(self):
        x, y = torch.ones(2, 5, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
        for error, name, batches in [
            (ValueError, "batches", []),
            (ValueError, "batches", [(x[:0], y[:0])]),
            (TypeError, "batches", None),
            (TypeError, "batches", x),
            (TypeError, "batches", [x]),
            (TypeError, "batches", [(x, y, y)]),
            (TypeError, "batches", "xy"),
            (TypeError, "x", [(x.float(), y)]),
            (ValueError, "x", [(x[:, :4], y)]),
            (ValueError, "x", [(0 * x, y)]),
            (TypeError, "y", [(x, y.long())]),
            (ValueError, "y", [(x, y[:1])]),
            (ValueError, "y", [(x, 2 * y)]),
            (ValueError, "y", [(x, y * torch.nan)]),
        ]:
            with refuses(error, name):
                empirical_gradient_from_data(*build_instance(5, 3)[:3], batches)
