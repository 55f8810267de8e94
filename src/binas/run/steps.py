"""The steps of a run, in order. Adding one is adding a value to ``STEPS``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from binas.run.compare_step import RIVALS, compare_step
from binas.run.costs_step import COSTS, JOURNAL, VERIFICATION, cost_facts, costs_step
from binas.run.data_step import FILE as DATA
from binas.run.data_step import record_data
from binas.run.estimator_steps import (
    CONTRIBUTIONS,
    ESTIMATOR,
    check_step,
    contributions_step,
    samples_step,
)
from binas.run.export_step import export_step
from binas.run.finetune_step import INDEX, finetune_step
from binas.run.network_record import EXPORT as EXPORTED
from binas.run.network_record import NETWORKS, RECORD
from binas.run.report_step import REPORT, report_step
from binas.run.search_step import FRONTIER, RESULTS, search_step
from binas.run.step import Step
from binas.run.training_steps import heaviest_step, supernet_step
from binas.tables.samples import FILE as SAMPLES

if TYPE_CHECKING:
    from binas.run.run import Run


def _images(run: Run) -> dict[str, Any]:
    """Space and images by their fingerprints."""
    return {"space": run.space.fingerprint, "images": run.images}


def _tuning_of_rivals(run: Run) -> dict[str, Any]:
    """How rivals are fine-tuned, where they are."""
    return run.config.training.finetune.model_dump(mode="json") if run.config.compare.tune else {}


DATA_STEP = Step("data", "read and check the images", record_data, (DATA,), ("data",), facts=_images)
HEAVIEST = Step(
    "heaviest",
    "train the heaviest network",
    heaviest_step,
    ("heaviest/weights.json", "heaviest/weights-*"),
    ("training.seed", "training.mixed_precision", "training.heaviest"),
    facts=_images,
    expensive=True,
    amount="training.heaviest.epochs",
)
SUPERNET = Step(
    "supernet",
    "train the supernet",
    supernet_step,
    ("supernet/weights.json", "supernet/weights-*"),
    ("training.seed", "training.mixed_precision", "training.supernet"),
    after=("heaviest",),
    expensive=True,
    amount="training.supernet.epochs",
)
COST = Step(
    "costs",
    "measure what each choice costs, and verify the formula on whole networks",
    costs_step,
    (COSTS, VERIFICATION),
    facts=cost_facts,
    scratch=(JOURNAL,),
)
CONTRIBUTION = Step(
    "contributions",
    "measure what each choice contributes",
    contributions_step,
    (CONTRIBUTIONS,),
    ("contributions",),
    after=("supernet",),
    amount="contributions.passes",
)
SAMPLE = Step(
    "samples",
    "measure random architectures on other images",
    samples_step,
    (SAMPLES,),
    ("check.count", "check.strata", "check.recalibrate", "check.seed"),
    after=("supernet",),
    sorts=True,
    amount="check.count",
)
CHECK = Step(
    "check",
    "judge the estimator by them",
    check_step,
    (ESTIMATOR,),
    ("check.resamples",),
    after=("contributions", "samples"),
)
SEARCH = Step(
    "search",
    "find the best architecture for each limit",
    search_step,
    (f"{RESULTS}/*.json", FRONTIER),
    ("search",),
    after=("costs", "contributions"),
)
FINETUNE = Step(
    "finetune",
    "fine-tune what was found",
    finetune_step,
    (INDEX, f"{NETWORKS}/*/{RECORD}"),
    ("training.seed", "training.mixed_precision", "training.finetune"),
    after=("heaviest", "supernet", "search"),
    sorts=True,
    amount="training.finetune.epochs",
)

COMPARE = Step(
    "compare",
    "measure random and hand-scaled networks of the same cost",
    compare_step,
    (f"{RIVALS}/*.json",),
    ("compare", "training.finetune.recalibration"),
    after=("supernet", "search"),
    facts=_tuning_of_rivals,
    sorts=True,
)
EXPORT = Step(
    "export",
    "write the networks as files for others",
    export_step,
    (f"{NETWORKS}/*/{EXPORTED}/model.*",),
    ("export",),
    after=("search", "finetune"),
    sorts=True,
)
REPORT_STEP = Step(
    "report",
    "write the page",
    report_step,
    (REPORT,),
    ("search.limits",),
    after=(
        "heaviest",
        "supernet",
        "costs",
        "contributions",
        "samples",
        "search",
        "finetune",
        "compare",
        "export",
    ),
)

TRAINING = (DATA_STEP, HEAVIEST, SUPERNET)
STEPS = (
    *TRAINING,
    COST,
    CONTRIBUTION,
    SAMPLE,
    CHECK,
    SEARCH,
    FINETUNE,
    COMPARE,
    EXPORT,
    REPORT_STEP,
)
