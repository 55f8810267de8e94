"""The torch half of the family: its configs share no weights."""

import copy
from collections.abc import Sequence

from torch import Tensor, nn

from binas.space import BlockCode
from binas.space.families import NetworkRules
from binas.supernet import ElasticBlock, plain_block


class ElasticConv(ElasticBlock):
    """A convolution of its own for each config."""

    def __init__(self, codes: Sequence[BlockCode], inputs: int, rules: NetworkRules) -> None:
        super().__init__()
        self.configs = len(codes)
        self.options = nn.ModuleList(plain_block(code, inputs, rules) for code in codes)

    def forward(self, x: Tensor, config: int) -> Tensor:
        return self.options[config](x)

    def static(self, config: int) -> nn.Module:
        return copy.deepcopy(self.options[config])
