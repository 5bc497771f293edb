import numpy as np
import pytest
import torch
from conftest import BAD_COUNTS, BAD_DEVICES, BAD_RNGS, refuses

from sparsexor import antisymmetric_start, sample_positions
from sparsexor.positions import _unit_rows


@pytest.mark.parametrize(("d", "m"), [(2, 1), (2, 2), (50, 3), (1000, 64)])
def test_positions_are_unit_rows(d, m):
    V = sample_positions(d, m, rng=1)
    assert V.shape == (d, m) and V.dtype == torch.float64 and V.device.type == "cpu"
    assert ((V**2).sum(1) - 1).abs().max() < 1e-15 * (4 + m)


def test_positions_repeat_with_the_seed_and_a_generator_advances():
    rng = np.random.default_rng(5)
    first, second = sample_positions(7, 4, rng=rng), sample_positions(7, 4, rng=rng)
    assert torch.equal(first, sample_positions(7, 4, rng=5))
    assert not torch.equal(first, second)
    assert not torch.equal(sample_positions(7, 4), sample_positions(7, 4))


def test_positions_on_a_line_are_random_signs():
    V = sample_positions(1000, 1, rng=0)
    assert set(V.flatten().tolist()) == {-1, 1}
    assert abs(V.sum()) < 6 * 1000**0.5


@pytest.mark.parametrize("m", [2, 3, 10])
def test_moments_are_those_of_the_uniform_sphere(m):
    # E v = 0, E vv^T = I/m, E v_1^4 = 3/(m(m+2)); entries are at most 1, so a mean deviates by at most 1/sqrt(d)
    d = 40_000
    V, five_sigma = sample_positions(d, m, rng=m), 5 / d**0.5
    assert V.mean(0).abs().max() < five_sigma
    assert (V.T @ V / d - torch.eye(m) / m).abs().max() < five_sigma
    assert ((V**4).mean(0) - 3 / (m * (m + 2))).abs().max() < five_sigma


def test_three_dimensions_have_uniform_coordinates():
    # Archimedes: on the 2-sphere a coordinate is uniform on [-1, 1]; DKW: deviation > .01 has probability < 2e^-20
    coordinate = sample_positions(100_000, 3, rng=2)[:, 0].sort().values
    uniform = torch.linspace(-1, 1, 100_000, dtype=torch.float64)
    assert (coordinate - uniform).abs().max() / 2 < 0.01


def test_a_row_of_zeros_is_drawn_again():
    class Stub(np.random.Generator):
        draws = iter([np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]]), np.array([[0.0, -2.0]])])

        def standard_normal(self, shape):
            rows = next(self.draws)
            assert rows.shape == shape
            return rows

    rows = _unit_rows(Stub(np.random.PCG64(0)), 2, 2)
    assert rows.tolist() == [[0, -1], [0.6, 0.8]]


@pytest.mark.parametrize("m", [1, 2, 100])
def test_the_start_is_a_unit_vector_and_its_exact_negative(m):
    theta, theta_tilde = antisymmetric_start(m, rng=3)
    assert theta.shape == (m,) and theta.dtype == torch.float64
    assert abs(float(theta.norm()) - 1) < 1e-15 * (4 + m)
    assert torch.equal(theta_tilde, -theta)
    assert torch.equal(theta, antisymmetric_start(m, rng=3)[0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_positions_do_not_depend_on_the_device():
    assert torch.equal(sample_positions(9, 4, rng=0, device="cuda").cpu(), sample_positions(9, 4, rng=0))
    assert antisymmetric_start(4, rng=0, device="cuda")[1].device.type == "cuda"


@pytest.mark.bad_input
class TestBadInput:
    @pytest.mark.parametrize(("error", "d"), [*BAD_COUNTS, (ValueError, 1)])
    def test_d(self, error, d):
        with refuses(error, "d"):
            sample_positions(d, 3)

    @pytest.mark.parametrize(("error", "m"), BAD_COUNTS)
    def test_m(self, error, m):
        with refuses(error, "m"):
            sample_positions(3, m)
        with refuses(error, "m"):
            antisymmetric_start(m)

    @pytest.mark.parametrize(("error", "rng"), BAD_RNGS)
    def test_rng(self, error, rng):
        with refuses(error, "rng"):
            sample_positions(3, 3, rng=rng)
        with refuses(error, "rng"):
            antisymmetric_start(3, rng=rng)

    @pytest.mark.parametrize(("error", "device"), BAD_DEVICES)
    def test_device(self, error, device):
        with refuses(error, "device"):
            sample_positions(3, 3, device=device)
        with refuses(error, "device"):
            antisymmetric_start(3, device=device)
