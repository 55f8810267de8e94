"""How a network is run while it is measured: backend, device, threads, batch, number type, memory layout."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field

from binas.base.errors import MeasureError
from binas.base.settings import Settings as Declared
from binas.costs.backends import DEFAULT_BACKEND
from binas.tables.entries import Provenance

if TYPE_CHECKING:
    from binas.costs.session import Plan

DEVICES = ("cpu", "cuda")
DTYPES = ("float32", "float16", "bfloat16")
MEMORY_FORMATS = ("contiguous", "channels_last")


@dataclass(frozen=True, slots=True)
class Settings:
    """The setting a cost belongs to: two tables of different settings hold different costs.

    ``batch`` is the number of images of one run; a measured latency is that of the whole batch.
    ``onednn`` is torch's CPU library (other backends ignore it).
    """

    backend: str = DEFAULT_BACKEND
    device: str = "cpu"
    threads: int = 1
    batch: int = 1
    dtype: str = "float32"
    memory_format: str = "contiguous"
    onednn: bool = True

    def __post_init__(self) -> None:
        for key, known in (("device", DEVICES), ("dtype", DTYPES), ("memory_format", MEMORY_FORMATS)):
            if getattr(self, key) not in known:
                raise MeasureError(f"unknown {key} {getattr(self, key)!r}; known are {', '.join(known)}.")
        for key in ("threads", "batch"):
            if getattr(self, key) < 1:
                raise MeasureError(f"{key} must be at least 1, got {getattr(self, key)}.")

    def describe(self) -> str:
        """One line for people."""
        threads = f", {self.threads} thread{'s' if self.threads > 1 else ''}" if self.device == "cpu" else ""
        plain = "" if self.onednn or self.backend != "torch" else ", oneDNN off"
        layout = "" if self.memory_format == "contiguous" else f", {self.memory_format}"
        return f"{self.backend} on {self.device}{threads}, batch {self.batch}, {self.dtype}{layout}{plain}"

    def to_data(self) -> dict[str, Any]:
        """Plain data, for journals and provenance; ``device`` is called ``processor`` there."""
        data = asdict(self)
        data["processor"] = data.pop("device")
        return data


class Effort(Declared):
    """How carefully a table is measured and held against whole networks."""

    samples: int = Field(
        30, ge=0, le=10_000, description="random networks, built whole, that calibrate and verify the table"
    )
    rounds: int = Field(60, ge=1, le=100_000, description="samples of each entry, at least")
    tolerance: float = Field(0.01, gt=0, le=1, description="relative uncertainty to reach for each entry")
    seconds: float = Field(300.0, gt=0, description="time for measuring, at most, for each variant")
    seed: int = Field(0, ge=0, description="of the drawn networks and the order of measuring")

    @property
    def plan(self) -> Plan:
        """The same for a session."""
        from binas.costs.session import Plan

        return Plan(rounds=self.rounds, tolerance=self.tolerance, budget=self.seconds, seed=self.seed)


class VerifyEffort(Effort):
    """The same for a table that is there already: on other networks than those it was made with."""

    seed: int = Field(
        1, ge=0, description="of the drawn networks; another one than the table was measured with"
    )


# The paper measures PyTorch: a single CPU thread with oneDNN (MKL-DNN) off at batch 1, and a GPU at batch 64
# (section 4.1 and the caption of its main table).
PRESETS: dict[str, Settings] = {
    "paper-cpu": Settings("torch", onednn=False),
    "paper-gpu": Settings("torch", device="cuda", batch=64),
}


def preset(name: str) -> Settings:
    """A setting by name."""
    if name not in PRESETS:
        raise MeasureError(f"unknown setting {name[:40]!r}; known are {', '.join(PRESETS)}.")
    return PRESETS[name]


def settings_of(provenance: Provenance, what: str) -> Settings:
    """The setting a measured table names, so that it can be measured again; an error where it names none."""
    known = {key: getattr(provenance, key) for key in Settings().to_data()}
    missing = [key for key, value in known.items() if value is None]
    if missing:
        raise MeasureError(
            f"{what} does not say how it was measured (its provenance lacks {', '.join(missing)}), so it cannot "
            "be measured again. `binas measure` makes tables that can."
        )
    return Settings(device=known.pop("processor"), **known)
