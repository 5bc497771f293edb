"""Sparse XOR, proved and executed: the code beside the proof.

All tensors are torch.float64; supports are 0-based; the loss is E(f - y)^2.
"""

from sparsexor.attention import softmax, softmax_attention
from sparsexor.one_step import gradient_step, theorem2_learning_rate
from sparsexor.population import loss_gradient, population_gradient, population_loss
from sparsexor.positions import antisymmetric_start, sample_positions
from sparsexor.samples import empirical_gradient, empirical_gradient_from_data
from sparsexor.task import SparseXor
from sparsexor.transformer import ClsTransformer, TwoHeadAttention
from sparsexor.worst_input import sup_error

__all__ = [
    "ClsTransformer",
    "SparseXor",
    "TwoHeadAttention",
    "antisymmetric_start",
    "empirical_gradient",
    "empirical_gradient_from_data",
    "gradient_step",
    "loss_gradient",
    "population_gradient",
    "population_loss",
    "sample_positions",
    "softmax",
    "softmax_attention",
    "sup_error",
    "theorem2_learning_rate",
]
