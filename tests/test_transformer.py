import math

import pytest
import torch
from conftest import (
    BAD_POSITIONS,
    BAD_QUERIES,
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
from torch import nn

from sparsexor import ClsTransformer, TwoHeadAttention

NOT_NUMBERS_ABOVE_0 = [
    (ValueError, -1.0),
    (ValueError, math.nan),
    (ValueError, math.inf),
    (TypeError, "1"),
    (TypeError, True),
]
MODELS = [TwoHeadAttention, ClsTransformer]


def _reduced_output(instance, x):
    """The reduced model, written out."""
    heads = [x @ torch.softmax(instance.V @ query, dim=0) for query in (instance.theta, instance.theta_tilde)]
    return -heads[0] * heads[1]


def _loss(model, x, support):
    return ((model(x) - label(x, support)) ** 2).mean()


@given(instances(max_d=7))
def test_the_reduced_model_is_what_it_says(instance):
    x = cube(len(instance.V))
    model = TwoHeadAttention(*instance[:3])
    assert_near(model(x).detach(), _reduced_output(instance, x), instance.tolerance)
    _loss(model, x, instance.support).backward()
    oracle = autograd_gradient(instance, x, label(x, instance.support))
    assert_near(model.theta.grad, oracle[0], 10 * instance.tolerance)
    assert_near(model.theta_tilde.grad, oracle[1], 10 * instance.tolerance)


def test_the_reduced_model_trains_2m_numbers_of_its_own():
    instance = build_instance(6, 3, (4, 1))
    model = TwoHeadAttention(*instance[:3])
    assert sum(p.numel() for p in model.parameters()) == 6
    assert set(model.state_dict()) == {"V", "theta", "theta_tilde"}
    with torch.no_grad():
        model.theta += 1
    assert torch.equal(instance.theta, build_instance(6, 3).theta)


@settings(max_examples=40)
@given(instances(max_d=7), st.sampled_from([1.0, 0.3, 7.0]))
def test_the_full_transformer_has_the_reduced_output_and_gradient(instance, cls_norm):
    x, m = cube(len(instance.V)), instance.V.shape[1]
    model = ClsTransformer(*instance[:3], cls_norm=cls_norm)
    assert_near(model.theta.detach(), instance.theta, instance.tolerance)
    assert_near(model.theta_tilde.detach(), instance.theta_tilde, instance.tolerance)
    assert_near(model(x).detach(), _reduced_output(instance, x), 10 * instance.tolerance)

    _loss(model, x, instance.support).backward()
    oracle = autograd_gradient(instance, x, label(x, instance.support))
    scale = cls_norm / math.sqrt(m)  # theta = scale * w, so the gradient by w is scale times that by theta
    for head in range(2):
        assert_near(model.W_Q.grad[head, :, -1], scale * oracle[head], 10 * (1 + scale) * instance.tolerance)
        assert not model.W_Q.grad[head, :, :-1].any()


@settings(max_examples=20)
@given(instances(max_d=6, scales=(1.0,)), st.sampled_from([1.0, 0.5, 3.0]))
def test_both_models_stay_together_over_three_steps(instance, cls_norm):
    x, eta = cube(len(instance.V)), 0.7
    reduced, full = TwoHeadAttention(*instance[:3]), ClsTransformer(*instance[:3], cls_norm=cls_norm)
    optimizers = [
        torch.optim.SGD(reduced.parameters(), lr=eta),
        torch.optim.SGD(full.parameters(), lr=full.learning_rate(eta)),
    ]
    for _ in range(3):
        for model, optimizer in zip((reduced, full), optimizers, strict=True):
            optimizer.zero_grad()
            _loss(model, x, instance.support).backward()
            optimizer.step()
        assert_near(full.theta.detach(), reduced.theta.detach(), 1e-12)
        assert_near(full.theta_tilde.detach(), reduced.theta_tilde.detach(), 1e-12)
        assert_near(full(x).detach(), reduced(x).detach(), 1e-12)


@pytest.mark.parametrize(("d", "m"), [(2, 2), (5, 3), (6, 8)])
def test_torchs_own_multihead_attention_agrees(d, m):
    """E = 2m features make two heads of m; tokens are padded with zeros, and a head's first value is the bit."""
    instance = build_instance(d, m, (d - 1, 0), antisymmetric=False)
    full = ClsTransformer(*instance[:3], cls_norm=2.0)
    x, E = cube(d), 2 * m
    oracle = nn.MultiheadAttention(E, 2, bias=False, batch_first=True, dtype=torch.float64)
    W_q, W_k, W_v = (torch.zeros(E, E, dtype=torch.float64) for _ in range(3))
    for head, query in enumerate((instance.theta, instance.theta_tilde)):
        rows = slice(head * m, (head + 1) * m)
        W_q[rows, m + 1] = query * math.sqrt(m) / 2.0
        W_k[rows, :m] = torch.eye(m)
        W_v[head * m, m] = 1
    tokens = torch.zeros(len(x), d + 1, E, dtype=torch.float64)
    tokens[:, 0, m + 1] = 2.0
    tokens[:, 1:, :m] = instance.V
    tokens[:, 1:, m] = x
    with torch.no_grad():
        oracle.in_proj_weight.copy_(torch.cat([W_q, W_k, W_v]))
        oracle.out_proj.weight.copy_(torch.eye(E))
    masked = (torch.arange(d + 1) == 0).expand(1, d + 1)  # here True means: not allowed
    heads, _ = oracle(tokens[:, :1], tokens, tokens, attn_mask=masked)
    assert_near(full.tokens(x), tokens[:, :, : m + 2])
    assert_near(full.heads(x).detach(), heads[:, 0, [0, m]].detach())
    assert_near(full(x).detach(), -(heads[:, 0, 0] * heads[:, 0, m]).detach())

    _loss(full, x, instance.support).backward()
    ((-heads[:, 0, 0] * heads[:, 0, m] - label(x, instance.support)) ** 2).mean().backward()
    free = oracle.in_proj_weight.grad[:E, m + 1].reshape(2, m)
    assert_near(full.W_Q.grad[:, :, -1], free)


def test_only_the_free_entries_count():
    instance = build_instance(5, 3, (4, 1))
    model, x = ClsTransformer(*instance[:3]), cube(5)
    before = model(x).detach()
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["W_Q"]
    assert model.query_mask.sum() == 2 * 3
    with torch.no_grad():
        model.W_Q += 5 * (1 - model.query_mask)
        model.W_K += 5 * (1 - model.key_mask)
    assert torch.equal(model(x), before)


def test_control_an_unmasked_cls_changes_the_output():
    instance = build_instance(5, 3, (4, 1))
    model, x = ClsTransformer(*instance[:3]), cube(5)
    model.visible = lambda: torch.ones(1, 6, dtype=torch.bool)
    assert (model(x) - _reduced_output(instance, x)).abs().max() > 0.1


def test_control_the_scale_of_the_scores_matters():
    instance = build_instance(5, 3, (4, 1))
    x = cube(5)
    model = ClsTransformer(instance.V, instance.theta / math.sqrt(3), instance.theta_tilde / math.sqrt(3))
    assert (model(x) - _reduced_output(instance, x)).abs().max() > 0.01


def test_control_trained_keys_leave_the_reduced_model():
    instance = build_instance(5, 3, (4, 1))
    x, eta = cube(5), 1.0
    models = [ClsTransformer(*instance[:3], train_keys=keys) for keys in (False, True)]
    assert torch.equal(models[0](x), models[1](x))
    for model in models:
        _loss(model, x, (4, 1)).backward()
        torch.optim.SGD(model.parameters(), lr=model.learning_rate(eta)).step()
    assert_near(models[1].theta.detach(), models[0].theta.detach())
    assert not models[1].W_K.grad[:, :, 3:].any()
    assert (models[1](x) - models[0](x)).abs().max() > 0.01


def test_learning_rate_follows_the_chain_rule():
    model = ClsTransformer(*build_instance(5, 3)[:3], cls_norm=2.0)
    assert model.learning_rate(10.0) == pytest.approx(10 * 3 / 4, rel=1e-15)
    assert model.learning_rate(0.0) == 0


@pytest.mark.parametrize("model", MODELS)
def test_a_state_dict_restores_the_model(model):
    x = cube(5)
    saved = model(*build_instance(5, 3, seed=1)[:3])
    other = model(*build_instance(5, 3, seed=2)[:3])
    assert not torch.equal(saved(x), other(x))
    other.load_state_dict(saved.state_dict())
    assert torch.equal(saved(x), other(x))


@pytest.mark.parametrize("model", MODELS)
def test_no_inputs_give_no_outputs(model):
    assert model(*build_instance(5, 3)[:3])(cube(5)[:0]).shape == (0,)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("model", MODELS)
def test_models_move_to_a_device(model):
    x, model = cube(5), model(*build_instance(5, 3)[:3])
    here = model(x).detach()
    assert_near(model.to("cuda")(x.to("cuda")).detach().cpu(), here)


@pytest.mark.bad_input
@pytest.mark.parametrize("model", MODELS)
class TestBadInput:
    @pytest.mark.parametrize(("error", "V"), BAD_POSITIONS)
    def test_positions(self, model, error, V):
        with refuses(error, "V"):
            model(V, *build_instance(5, 3)[1:3])

    @pytest.mark.parametrize(("error", "query"), BAD_QUERIES)
    def test_queries(self, model, error, query):
        V, theta, theta_tilde, _ = build_instance(5, 3)
        with refuses(error, "theta"):
            model(V, query, theta_tilde)
        with refuses(error, "theta_tilde"):
            model(V, theta, query)

    @pytest.mark.parametrize(
        ("error", "x"),
        [
            (TypeError, cube(5).float()),
            (TypeError, cube(5).numpy()),
            (ValueError, cube(4)),
            (ValueError, cube(5)[0]),
            (ValueError, 0.5 * cube(5)),
            (ValueError, torch.nan * cube(5)),
        ],
    )
    def test_x(self, model, error, x):
        with refuses(error, "x"):
            model(*build_instance(5, 3)[:3])(x)


@pytest.mark.bad_input
class TestBadOptions:
    def test_attention(self):
        with refuses(TypeError, "attention"):
            TwoHeadAttention(*build_instance(5, 3)[:3], attention="softmax")

    @pytest.mark.parametrize(("error", "cls_norm"), [*NOT_NUMBERS_ABOVE_0, (ValueError, 0.0)])
    def test_cls_norm(self, error, cls_norm):
        with refuses(error, "cls_norm"):
            ClsTransformer(*build_instance(5, 3)[:3], cls_norm=cls_norm)

    @pytest.mark.parametrize("cls_norm", [1e-320, 1e-200, 1e200])
    def test_cls_norm_at_which_numbers_overflow(self, cls_norm):
        with refuses(ValueError, "cls_norm"):
            ClsTransformer(*build_instance(5, 3)[:3], cls_norm=cls_norm)

    def test_queries_at_which_scores_overflow(self):
        V, theta, _, _ = build_instance(5, 3)
        for name, queries in (("theta", (1e300 * theta, theta)), ("theta_tilde", (theta, 1e300 * theta))):
            with refuses(ValueError, name):
                ClsTransformer(V, *queries)

    def test_rate_that_overflows(self):
        with refuses(ValueError, "eta"):
            ClsTransformer(*build_instance(5, 3)[:3], cls_norm=1e-10).learning_rate(1e300)

    @pytest.mark.parametrize("model", MODELS)
    def test_a_model_taken_out_of_float64(self, model):
        with refuses(TypeError, "model"):
            model(*build_instance(5, 3)[:3]).float()(torch.ones(2, 5, dtype=torch.float64))

    def test_train_keys(self):
        with refuses(TypeError, "train_keys"):
            ClsTransformer(*build_instance(5, 3)[:3], train_keys=1)

    @pytest.mark.parametrize(("error", "eta"), NOT_NUMBERS_ABOVE_0)
    def test_eta(self, error, eta):
        with refuses(error, "eta"):
            ClsTransformer(*build_instance(5, 3)[:3]).learning_rate(eta)
