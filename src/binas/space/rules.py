"""What the networks of a space have in common beside their blocks: padding, BatchNorm, squeeze-excite, input.

The defaults are those of networks trained here. Networks trained elsewhere differ (TensorFlow pads otherwise, and adds
1e-3 to a variance), and their weights are worth nothing under other rules, so a space says them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from binas.base.settings import Settings
from binas.space.codes import Activation, round_channels


class SqueezeRule(Settings):
    """How a squeeze-excite ratio becomes a layer.

    The reduced width is ratio * (expanded or input channels of the block), rounded to ``divisor`` by the
    MobileNet rule. The default is MobileNetV3's; MnasNet and EfficientNet take input channels, divisor 1 and
    a sigmoid gate.
    """

    of: Literal["expanded", "input"] = Field("expanded", description="which channels the ratio is of")
    divisor: int = Field(8, ge=1, description="the reduced width is a multiple of it")
    gate: Literal["hard", "sigmoid"] = Field("hard", description="h-sigmoid or sigmoid")
    activation: Activation = Field("re", description="between the two layers")

    def reduced(self, ratio: float, expanded: int, inputs: int) -> int:
        """Channels between the two layers; 0 when there is no squeeze-excite."""
        whole = expanded if self.of == "expanded" else inputs
        return round_channels(ratio * whole, self.divisor) if ratio else 0


class NetworkRules(Settings):
    """What all networks of a space share.

    ``mean`` and ``std`` per channel of pixels in 0..1 are what images are normalised with, (x - mean) / std; where a
    space does not say them they are those of the training images.
    """

    padding: Literal["torch", "same"] = Field(
        "torch", description="torch: kernel // 2 zeros on every side; same: TensorFlow's, see margins"
    )
    norm_epsilon: float = Field(1e-5, gt=0, description="added to the variance by BatchNorm")
    norm_momentum: float = Field(
        0.1, gt=0, le=1, description="share of a batch in the running statistics of BatchNorm"
    )
    squeeze: SqueezeRule = SqueezeRule()
    features_activation: Activation = Field(
        "hs", description="after the layer between pooling and classifier"
    )
    features_bias: bool = Field(True, description="of the layer between pooling and classifier")
    mean: tuple[float, ...] | None = Field(None, description="per channel, of pixels in 0..1")
    std: tuple[float, ...] | None = Field(None, description="per channel, of pixels in 0..1")

    @model_validator(mode="after")
    def _whole_normalisation(self) -> NetworkRules:
        if (self.mean is None) != (self.std is None):
            raise ValueError("give mean and std, or neither")
        if self.mean is not None and self.std is not None and len(self.mean) != len(self.std):
            raise ValueError(f"mean and std have {len(self.mean)} and {len(self.std)} values")
        if any(value <= 0 for value in self.std or ()):
            raise ValueError(f"every std must be above 0, got {self.std}")
        return self

    def margins(self, size: int, kernel: int, stride: int) -> tuple[int, int]:
        """Zeros before and after ``size`` pixels, so that ceil(size / stride) come out of a k-wide filter.

        ``same`` pads what is missing, max((ceil(size / stride) - 1) * stride + kernel - size, 0), half before and the
        rest after: at stride 2 it depends on the size, and is often one more after than before.
        """
        if self.padding == "torch":
            return kernel // 2, kernel // 2
        missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        return missing // 2, missing - missing // 2

    def to_data(self) -> dict[str, Any]:
        """The rules that are not the default, as plain data."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def problems(self, channels: int | None) -> Iterator[str]:
        """In what the rules do not fit images of so many channels."""
        if self.mean is not None and channels not in (None, len(self.mean)):
            yield f"rules.mean and rules.std have {len(self.mean)} values, but images have {channels} channels"


DEFAULT_RULES = NetworkRules()
