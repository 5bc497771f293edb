import dataclasses
import itertools

import numpy as np
import pytest
import torch
from conftest import BAD_COUNTS, BAD_DEVICES, BAD_RNGS, BAD_SUPPORTS, refuses
from hypothesis import given
from hypothesis import strategies as st

from sparsexor import SparseXor


def test_labels_are_the_negative_product_of_the_two_bits():
    x = torch.tensor([[1, 1, 1], [1, 1, -1], [-1, 1, 1], [-1, -1, -1]], dtype=torch.float64)
    assert SparseXor(3, support=(0, 2)).labels(x).tolist() == [-1, 1, 1, -1]
    assert SparseXor(3, support=(2, 1)).labels(x).tolist() == [-1, 1, -1, -1]


@given(st.data(), st.integers(2, 8))
def test_the_label_is_balanced_uncorrelated_with_bits_and_the_same_for_both_orders(data, d):
    i, j = data.draw(st.permutations(range(d)))[:2]
    x = SparseXor(d, support=(i, j)).inputs()
    y = SparseXor(d, support=(i, j)).labels(x)
    assert y.sum() == 0
    assert (y @ x).abs().max() == 0
    assert torch.equal(y, SparseXor(d, support=(j, i)).labels(x))


@pytest.mark.parametrize("d", [2, 3, 7])
def test_inputs_are_the_cube_in_lexicographic_order(d):
    x = SparseXor(d, support=(0, 1)).inputs()
    assert x.dtype == torch.float64
    assert x.tolist() == [list(row) for row in itertools.product((-1, 1), repeat=d)]


def test_inputs_at_the_largest_cube_are_all_different():
    x = SparseXor(20, support=(0, 19)).inputs()
    assert x.shape == (2**20, 20)
    numbers = (x > 0).to(torch.float64) @ 2.0 ** torch.arange(19, -1, -1, dtype=torch.float64)
    assert torch.equal(numbers, torch.arange(2**20, dtype=torch.float64))


def test_samples_are_signs_with_their_labels_and_repeat_with_the_seed():
    task = SparseXor(6, support=(4, 1))
    x, y = task.sample(1000, rng=3)
    assert x.shape == (1000, 6) and y.shape == (1000,)
    assert x.dtype == y.dtype == torch.float64
    assert set(x.unique().tolist()) == {-1, 1}
    assert torch.equal(y, -x[:, 4] * x[:, 1])
    assert all(torch.equal(a, b) for a, b in zip(task.sample(1000, rng=3), (x, y), strict=True))
    assert not torch.equal(task.sample(1000, rng=4)[0], x)


def test_samples_are_uniform():
    # 2^16 samples of 3 bits: each cell holds 8192 on average, standard deviation 85; six of them
    x, _ = SparseXor(3, support=(0, 1)).sample(2**16, rng=0)
    cells = ((x + 1) / 2 @ torch.tensor([4, 2, 1], dtype=torch.float64)).long()
    assert (torch.bincount(cells, minlength=8) - 8192).abs().max() < 6 * 85


def test_a_generator_is_used_and_advances():
    task, rng = SparseXor(5, support=(0, 1)), np.random.default_rng(8)
    first, second = task.sample(50, rng=rng)[0], task.sample(50, rng=rng)[0]
    assert not torch.equal(first, second)
    assert torch.equal(first, task.sample(50, rng=8)[0])


def test_the_task_is_a_frozen_value():
    task = SparseXor(5, support=(3, 1))
    assert (task.d, task.support) == (5, (3, 1))
    assert task == SparseXor(5, support=(3, 1)) != SparseXor(5, support=(1, 3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.d = 6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_samples_do_not_depend_on_the_device():
    task = SparseXor(5, support=(3, 1))
    assert torch.equal(task.sample(9, rng=0, device="cuda")[0].cpu(), task.sample(9, rng=0)[0])
    assert torch.equal(task.inputs(device="cuda").cpu(), task.inputs())


@pytest.mark.bad_input
class TestBadInput:
    def test_a_list_is_taken_for_a_pair(self):
        assert SparseXor(5, support=[3, 1]).support == (3, 1)

    @pytest.mark.parametrize(("error", "d"), [*BAD_COUNTS, (ValueError, 1)])
    def test_d(self, error, d):
        with refuses(error, "d"):
            SparseXor(d, support=(0, 1))

    @pytest.mark.parametrize(("error", "support"), BAD_SUPPORTS)
    def test_support(self, error, support):
        with refuses(error, "support"):
            SparseXor(5, support=support)

    @pytest.mark.parametrize(("error", "n"), BAD_COUNTS)
    def test_n(self, error, n):
        with refuses(error, "n"):
            SparseXor(5, support=(0, 1)).sample(n)

    @pytest.mark.parametrize(("error", "rng"), BAD_RNGS)
    def test_rng(self, error, rng):
        with refuses(error, "rng"):
            SparseXor(5, support=(0, 1)).sample(2, rng=rng)

    @pytest.mark.parametrize(("error", "device"), BAD_DEVICES)
    def test_device(self, error, device):
        with refuses(error, "device"):
            SparseXor(5, support=(0, 1)).sample(2, device=device)
        with refuses(error, "device"):
            SparseXor(5, support=(0, 1)).inputs(device=device)

    def test_a_number_too_long_to_be_written_out(self):
        with refuses(ValueError, "d"):
            SparseXor(10**5000, support=(0, 1))
        with refuses(ValueError, "support"):
            SparseXor(5, support=(0, 10**5000))

    def test_samples_beyond_any_memory(self):
        with refuses(ValueError, "n"):
            SparseXor(10**12, support=(0, 1)).sample(10**12)

    def test_too_large_a_cube(self):
        with refuses(ValueError, "d"):
            SparseXor(21, support=(0, 1)).inputs()

    @pytest.mark.parametrize(
        ("error", "x"),
        [
            (TypeError, torch.ones(3, 5)),
            (TypeError, torch.ones(3, 5, dtype=torch.int64)),
            (TypeError, [[1.0] * 5]),
            (ValueError, torch.ones(3, 4, dtype=torch.float64)),
            (ValueError, torch.ones(5, dtype=torch.float64)),
            (ValueError, torch.zeros(3, 5, dtype=torch.float64)),
            (ValueError, 1.5 * torch.ones(3, 5, dtype=torch.float64)),
            (ValueError, torch.full((3, 5), torch.nan, dtype=torch.float64)),
        ],
    )
    def test_x(self, error, x):
        with refuses(error, "x"):
            SparseXor(5, support=(0, 1)).labels(x)
