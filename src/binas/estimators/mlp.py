"""A multi-layer perceptron as accuracy predictor (section 5.2, "beyond quadratic"). The only estimator with torch."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from binas.base.errors import EstimatorError, FileError, several
from binas.base.files import exists, is_regular, parse_json, reading, write_bytes
from binas.base.typed import check_typed
from binas.estimators.learned import LEAST, Predictor
from binas.estimators.links import LinkName, get_link
from binas.estimators.objective import CallableObjective
from binas.space.architecture import Architecture
from binas.space.space import SearchSpace
from binas.tables.entries import SpaceReference
from binas.tables.reading import other_space
from binas.tables.samples import Samples

Array = NDArray[np.float64]

HEADER = "binas"  # key of the JSON text in the file's metadata


class MLPSettings(BaseModel):
    """Arguments of the constructor."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    link: LinkName
    hidden: tuple[int, ...]
    learning_rate: float
    weight_decay: float
    batch: int
    epochs: int
    patience: int
    validation: float
    seed: int


class MLPHeader(BaseModel):
    """What a file says about its tensors, version 1."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    format: Literal["binas/predictor"]
    version: Literal[1]
    kind: Literal["mlp"]
    space: SpaceReference
    settings: MLPSettings
    mean: float
    scale: float
    epochs: int


@dataclass(eq=False)
class MLPPredictor(Predictor):
    """g(accuracy) = mean + scale * MLP(z), trained on the mean squared error of the standardised link.

    Adam on batches; a share ``validation`` of the samples is held out, training ends ``patience`` epochs after their
    error was least, and the weights of that epoch are kept. The same ``seed`` gives the same weights on the same
    machine. Learned: ``space_``, ``network_``, ``mean_``, ``scale_``, ``epochs_`` (those trained).
    """

    kind = "mlp"

    hidden: tuple[int, ...] = (400, 400, 400)
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    batch: int = 64
    epochs: int = 300
    patience: int = 20
    validation: float = 0.2
    seed: int = 0

    network_: nn.Sequential = field(init=False, repr=False)
    mean_: float = field(init=False, repr=False)
    scale_: float = field(init=False, repr=False)
    epochs_: int = field(init=False, repr=False)

    def fit(self, samples: Samples) -> Self:
        """Learn from measured architectures."""
        self._check(samples)
        rows = _tensor(samples.space.layout.rows(samples.architectures))
        values = get_link(self.link).forward(samples.accuracy)
        mean, scale = float(values.mean()), float(values.std()) or 1.0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = build(rows.shape[1], self.hidden)
            epochs = self._train(network, rows, _tensor((values - mean) / scale))
        self.space_, self.network_, self.epochs_ = samples.space, network, epochs
        self.mean_, self.scale_ = mean, scale
        return self

    def standard_error(self, architectures: Iterable[Architecture]) -> Array:
        """Not known: NaN for every architecture, (n,)."""
        return np.full(len(list(architectures)), math.nan)

    def objective(self) -> CallableObjective:
        """The network's output on the scale of the link, with its gradient."""
        return CallableObjective.of_rows(self.space, self.totals, self.gradients, self.link)

    def totals(self, rows: Array) -> Array:
        """Predictions of rows z on the scale of the link, (n,)."""
        with torch.inference_mode():
            found = self.network_(_tensor(rows))[:, 0]
        return np.asarray(self.mean_ + self.scale_ * found.double().numpy())

    def gradients(self, rows: Array) -> Array:
        """Derivatives of :meth:`totals` with respect to z, (n, N)."""
        inputs = _tensor(rows).requires_grad_(True)
        (found,) = torch.autograd.grad(self.network_(inputs).sum(), inputs)
        return np.asarray(self.scale_ * found.double().numpy())

    def to_data(self) -> dict[str, Any]:
        """The JSON object beside the tensors of the file."""
        return super().to_data() | {
            "settings": self.settings(),
            "mean": self.mean_,
            "scale": self.scale_,
            "epochs": self.epochs_,
        }

    def save(self, path: Path) -> None:
        """Write what was learned as safetensors, atomically; :func:`binas.estimators.load_predictor` reads it."""
        header = json.dumps(self.to_data())
        write_bytes(Path(path), save(self.network_.state_dict(), {HEADER: header}))

    def _train(self, network: nn.Sequential, rows: Tensor, target: Tensor) -> int:
        """Epochs until the held-out error has not fallen for ``patience`` of them; ends with the best weights."""
        order = torch.randperm(len(rows))
        count = self._held_out(len(rows))
        held, used = order[:count], order[count:]
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        best, best_epoch, kept = math.inf, 0, copy.deepcopy(network.state_dict())
        for epoch in range(1, self.epochs + 1):
            self._epoch(network, optimiser, rows[used], target[used])
            with torch.inference_mode():
                error = float(_error(network, rows[held], target[held]))
            if error < best:
                best, best_epoch, kept = error, epoch, copy.deepcopy(network.state_dict())
            elif epoch - best_epoch >= self.patience:
                break
        network.load_state_dict(kept)
        return best_epoch

    def _epoch(
        self, network: nn.Sequential, optimiser: torch.optim.Optimizer, rows: Tensor, target: Tensor
    ) -> None:
        order = torch.randperm(len(rows))
        for start in range(0, len(rows), self.batch):
            batch = order[start : start + self.batch]
            optimiser.zero_grad()
            torch.autograd.backward(_error(network, rows[batch], target[batch]))
            optimiser.step()

    def _held_out(self, count: int) -> int:
        return round(self.validation * count)

    def _check(self, samples: Samples) -> None:
        numbers = (self.learning_rate, self.batch, self.epochs, self.patience, *self.hidden)
        if min(numbers) <= 0 or not 0.0 < self.validation < 1.0 or self.weight_decay < 0.0:
            raise EstimatorError(
                "the mlp predictor needs positive layers, learning_rate, batch, epochs and patience, a weight_decay "
                f"from 0 and a validation share between 0 and 1; it has {self.settings()}."
            )
        if len(samples) < LEAST or self._held_out(len(samples)) in (0, len(samples)):
            raise EstimatorError(
                f"the mlp predictor learns from at least {LEAST} samples and holds some out; there are {len(samples)} "
                f"and validation is {self.validation}."
            )


def build(inputs: int, hidden: tuple[int, ...]) -> nn.Sequential:
    """Linear layers with ReLU between them, one output."""
    sizes, layers = (inputs, *hidden), list[nn.Module]()
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))


def load_mlp(path: Path, space: SearchSpace) -> MLPPredictor:
    """Read a predictor that :meth:`MLPPredictor.save` wrote and check that it was learned for the space."""
    if not exists(path):
        raise FileError(f"cannot read {path}: there is no such file.")
    if not is_regular(path):
        raise FileError(f"cannot read {path}: it is not a regular file. Copy its content into one.")
    text, tensors = _parts(path)
    if not text:
        raise EstimatorError(f"{path} is not a binas MLP predictor: it has no header. Fit it again.")
    header = check_typed(
        MLPHeader, parse_json(text, f"the header of {path}"), str(path), "Fit it again.", EstimatorError
    )
    problems = other_space(header.space, space)
    if problems:
        raise EstimatorError(several(str(path), problems))
    predictor = MLPPredictor(**header.settings.model_dump())
    predictor.space_, predictor.epochs_ = space, header.epochs
    predictor.mean_, predictor.scale_ = header.mean, header.scale
    predictor.network_ = _filled(predictor.hidden, tensors, space, path)
    return predictor


def _parts(path: Path) -> tuple[str, dict[str, Tensor]]:
    """The JSON text and the tensors of a file."""
    try:
        with reading(path), safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(HEADER, "")
            return text, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, RuntimeError) as error:
        raise EstimatorError(
            f"{path} is not a binas MLP predictor: {str(error)[:300]}. Fit it again."
        ) from error


def _filled(
    hidden: tuple[int, ...], tensors: dict[str, Tensor], space: SearchSpace, path: Path
) -> nn.Sequential:
    """The network of these layers with its weights; it is built only once they are known to be its own."""
    inputs = space.alpha_size + space.beta_size
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    if found != _shapes(inputs, hidden):
        raise EstimatorError(f"the tensors in {path} are not those of its network. Fit it again.")
    if not all(value.dtype == torch.float32 and bool(value.isfinite().all()) for value in tensors.values()):
        raise EstimatorError(f"{path} holds weights that are no finite float32 numbers. Fit it again.")
    network = build(inputs, hidden)
    network.load_state_dict(tensors)
    return network


def _shapes(inputs: int, hidden: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The tensors of :func:`build` by name."""
    layers = enumerate(itertools.pairwise((inputs, *hidden, 1)))
    return {
        name: shape
        for number, (before, after) in layers
        for name, shape in ((f"{2 * number}.weight", (after, before)), (f"{2 * number}.bias", (after,)))
    }


def _tensor(values: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).float()


def _error(network: nn.Sequential, rows: Tensor, target: Tensor) -> Tensor:
    return nn.functional.mse_loss(network(rows)[:, 0], target)
