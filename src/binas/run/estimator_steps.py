"""What each choice contributes to accuracy, and how well that predicts architectures it was not measured on.

Contributions are measured on one half of the validation images, random architectures on the other, so that the
estimator is judged on images it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from binas.base.errors import ConfigError, EstimatorError
from binas.base.files import dump_json, exists, write_text
from binas.base.identity import identity_of
from binas.base.progress import Progress
from binas.contributions.factorial import factorial
from binas.contributions.journal import Journal
from binas.contributions.normal import GROUPS
from binas.contributions.outcomes import Evaluator
from binas.contributions.paper import paper
from binas.contributions.sampling import architectures_to_measure, image_halves, measure_samples
from binas.contributions.supernet_evaluator import SupernetEvaluator, indexed
from binas.data.division import stratified_sample
from binas.data.images import IndexedImages
from binas.estimators.bilinear import BilinearEstimator
from binas.estimators.judging import report
from binas.estimators.links import LinkName
from binas.estimators.parts import ablation
from binas.run.engine import keep_old
from binas.run.limits import counted_costs
from binas.search.objective import architecture_cost
from binas.space.architecture import Architecture
from binas.tables.contributions import Contributions, load_contributions
from binas.tables.samples import FILE as SAMPLES
from binas.tables.samples import Samples, load_samples
from binas.training.checkpoint import weights_digest
from binas.training.reporting import Reporter, keep_figures

if TYPE_CHECKING:
    from binas.run.run import Run

CONTRIBUTIONS, ESTIMATOR = "contributions.json", "estimator.json"
OUTCOMES = "outcomes"
OTHER_LINKS: tuple[LinkName, ...] = ("log", "logit")


def validation_images(run: Run, half: int | None = None, count: int | None = None) -> IndexedImages:
    """The validation images of a run, one half of them (1 or 2), or about ``count`` of those; never test images."""
    images = indexed(run.data.validation, run.data.name)
    if half is not None:
        images = images.take(image_halves(len(images))[half - 1])
    return images if count is None else images.take(stratified_sample(images.labels, count, 0))


def check_images(run: Run) -> None:
    """Refuse too few validation images before anything is trained."""
    images = run.data.validation
    if images.indexed and len(images) // 2 < GROUPS:
        raise ConfigError(
            f"{run.data.name} has {len(images)} validation images; a run needs at least {2 * GROUPS}, one half to measure "
            "contributions, the other to check them. Give more images or a larger data.validation_share."
        )


def contributions_step(run: Run, progress: Progress) -> None:
    """Write ``contributions.json`` again and again, better each time; passes are kept in ``outcomes/``."""
    config, supernet = run.config.contributions, run.supernet()
    images = validation_images(run, 1, config.images)
    evaluator = SupernetEvaluator(supernet, run.data, images, weights_digest(supernet))
    reporter = Reporter(run.folder)
    reporter.start("contributions", config.passes, 0)
    for number, answer in enumerate(_answers(run, evaluator, progress), 1):
        answer.save(run.folder / CONTRIBUTIONS)
        about = answer.provenance.to_data()
        figures = {"base": answer.base, "base_stderr": answer.base_stderr}
        figures |= {key: float(about[key]) for key in ("stability",) if key in about}
        reporter.record(number, int(about["evaluations"]), figures)
    reporter.finish()
    stable = f", stability {about['stability']:.3f}" if "stability" in about else ""
    progress.say(
        f"E[Acc] {answer.base:.2f} ± {answer.base_stderr:.2f} % from {about['evaluations']:,} evaluations{stable}"
    )


def _answers(run: Run, evaluator: Evaluator, progress: Progress) -> Iterator[Contributions]:
    """Better and better answers; passes recorded for the same weights, images and seed are used again."""
    config = run.config.contributions
    identity: dict[str, Any] = {
        "protocol": config.protocol,
        "evaluator": evaluator.fingerprint,
        "space": run.space.fingerprint,
        "images": evaluator.images,
        "seed": config.seed,
    }
    journal = Journal(run.folder / OUTCOMES / f"{config.protocol}-{identity_of(identity)[:8]}", identity)
    if config.protocol == "paper":
        return paper(evaluator, journal, config.repeats, config.reading, config.seed, progress)
    return factorial(
        evaluator, journal, config.passes, config.outcome, config.stability, config.seed, progress
    )


def samples_step(run: Run, progress: Progress) -> None:
    """Measure random architectures one by one on the other half of the images: ``samples.json``."""
    config, supernet, path = run.config.check, run.supernet(), run.folder / SAMPLES
    images = validation_images(run, 2)
    recalibration = run.config.training.supernet.recalibration if config.recalibrate else 0
    about = {
        "images": len(images),
        "recalibrated_on": recalibration,
        "strata": config.strata,
        "seed": config.seed,
        "weights": weights_digest(supernet),
        "image_set": images.fingerprint,
    }
    wanted = architectures_to_measure(run.space, config.count, config.strata, config.seed)
    known = _known(run, about, wanted, progress)
    for found in measure_samples(supernet, run.data, images, wanted, recalibration, known, about, progress):
        found.save(path)
    low, high = float(found.accuracy.min()), float(found.accuracy.max())
    progress.say(f"{len(found)} architectures on {len(images):,} images: {low:.2f} to {high:.2f} %")


def _known(
    run: Run, about: Mapping[str, Any], wanted: Sequence[Architecture], progress: Progress
) -> Samples | None:
    """Of the samples there, those that are wanted and were measured in the same way; others are set aside."""
    if not exists(run.folder / SAMPLES):
        return None
    known = load_samples(run.folder / SAMPLES, run.space)
    was, asked = known.provenance.to_data(), set(wanted)
    usable = all(was.get(key) == value for key, value in about.items())
    if usable and asked.issuperset(known.architectures):
        return known
    place = keep_old(run.folder, "samples", [SAMPLES])
    progress.say(f"{SAMPLES} of before moved to {place.relative_to(run.folder)}")
    kept = [row for row in known.rows if row.architecture in asked] if usable else []
    return Samples(run.space, tuple(kept), known.provenance) if kept else None


def check_step(run: Run, progress: Progress) -> None:
    """Judge the estimator by the samples, beside MACs alone and the noise ceiling: ``estimator.json``."""
    samples = load_samples(run.folder / SAMPLES, run.space)
    contributions = load_contributions(run.folder / CONTRIBUTIONS, run.space)
    estimators = _estimators(contributions, progress)
    predictions = {
        f"estimator, link {link}": item.predict(samples.architectures) for link, item in estimators.items()
    }
    parts = ablation(estimators["identity"], samples.architectures)
    macs = _macs(run, samples.architectures)
    found = report({**predictions, **parts}, samples, macs, resamples=run.config.check.resamples)
    write_text(
        run.folder / ESTIMATOR,
        dump_json({"links": list(estimators), "ablation": list(parts), **found.to_json()}),
    )
    first = found.judgements[0]
    tau, figures = first.kendall, {"kendall": first.kendall.value, "spearman": first.spearman.value}
    keep_figures(run.folder, "check", figures)
    ceiling = "" if found.ceiling is None else f"; a perfect one would reach {found.ceiling.kendall:.3f}"
    beside = "" if found.macs is None else f"; MACs alone {found.macs.kendall.value:.3f}"
    progress.say(f"Kendall tau {tau.value:.3f} ({tau.low:.3f} to {tau.high:.3f}){beside}{ceiling}")


def _estimators(contributions: Contributions, progress: Progress) -> dict[str, BilinearEstimator]:
    """The estimator on every scale on which these contributions can be added up."""
    found = {"identity": BilinearEstimator(contributions)}
    for link in OTHER_LINKS:
        try:
            found[link] = BilinearEstimator(contributions, link)
        except EstimatorError as error:  # a bad network would be predicted below 0 %
            progress.say(str(error))
    return found


def _macs(run: Run, architectures: list[Architecture]) -> NDArray[np.float64] | None:
    """MACs of architectures, the baseline; None for a space that only names its choices."""
    macs = counted_costs(run.space).get("macs")
    if macs is None:
        return None
    return np.array([architecture_cost(run.space, macs, item) for item in architectures])
