"""Networks with statistics that are not trivial, and facts about them."""

from __future__ import annotations

from typing import Any

from small_networks import SPACES, fresh

from binas.export import AccuracyFact, LatencyFact, ModelFacts
from binas.space.sampling import sample_many
from binas.supernet import StaticNetwork, extract

MEAN, STD = (0.3, 0.4, 0.5), (0.2, 0.25, 0.3)


def network_and_facts(name: str = "small", seed: int = 0, **changes: Any) -> tuple[StaticNetwork, ModelFacts]:
    space = SPACES[name]
    (architecture,) = sample_many(space, 1, seed)
    given: dict[str, Any] = {
        "classes": ("shoe", "hat", "a_b", "coat", "bag"),
        "data": "bars",
        "data_licence": "CC0",
        "limits": ("latency=2ms",),
        "accuracy": (AccuracyFact("fine-tuned", "test", 81.25, 400),),
        "latency": (LatencyFact("measured", 1.9, "a CPU", "onnxruntime 1, 1 thread"),),
        "command": "binas run config.yaml",
    }
    facts = ModelFacts("one", space, architecture, MEAN, STD, **{**given, **changes})
    return extract(fresh(space), architecture).eval(), facts
