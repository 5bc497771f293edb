"""Results must be the same to the last bit for any number of threads."""

import pytest
import torch
from conftest import build_instance

from sparsexor import (
    TwoHeadAttention,
    empirical_gradient,
    empirical_gradient_from_data,
    population_gradient,
    population_loss,
    softmax,
    softmax_attention,
)


@pytest.fixture(
    scope="module", params=[(3, 20_001), (3000, 37), (100_000, 133)], ids=lambda size: f"d{size[0]}-m{size[1]}"
)
def instance(request):
    return build_instance(*request.param, (1, 0))


def _same_for_threads(compute) -> bool:
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(compute())
    finally:
        torch.set_num_threads(before)
    return all(torch.equal(got, first) for other in results[1:] for got, first in zip(other, results[0], strict=True))


def test_population_gradient(instance):
    assert _same_for_threads(lambda: population_gradient(*instance))


def test_weights_and_loss(instance):
    def compute():
        gamma, gamma_tilde = (
            softmax_attention(instance.V, instance.theta),
            softmax.weights(instance.V, instance.theta_tilde),
        )
        return gamma, gamma_tilde, population_loss(gamma, gamma_tilde, instance.support)

    assert _same_for_threads(compute)


def test_empirical_gradient(instance):
    n = 600 if len(instance.V) < 10_000 else 20
    assert _same_for_threads(lambda: empirical_gradient(*instance, n, seed=1, workers=2))


def test_given_data_and_the_reduced_model(instance):
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.randint(0, 2, (20, len(instance.V)), generator=generator).double() - 1
    model = TwoHeadAttention(*instance[:3])
    assert _same_for_threads(lambda: empirical_gradient_from_data(*instance[:3], [(x, -x[:, 0] * x[:, 1])]))
    with torch.no_grad():
        assert _same_for_threads(lambda: (model(x),))
