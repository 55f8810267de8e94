"""``binas reproduce``: every table and figure of the paper, from a tiny run."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from binas.base.errors import ConfigError, FileError
from binas.base.progress import Progress
from binas.contributions.strata import uniform_architectures
from binas.costs.published.settings import PublishedSettings
from binas.insights.effects import Effects
from binas.reproduce import (
    costs,
    frontier,
    insights,
    main_table,
    optimizers,
    predictors,
    studies,
    terms,
    transitivity,
)
from binas.reproduce._base import (
    LEARNED_SEED,
    PRESETS,
    Experiment,
    Finding,
    Preset,
    Study,
    accuracy_error,
    seed_error,
)
from binas.reproduce.networks import FOUND, HAND, RANDOM, Shown, tuned_networks
from binas.reproduce.page import Section, render
from binas.reproduce.ranking import CEILING
from binas.reproduce.studies import NAMES, experiments, reproduce
from binas.run.config import load_config, save_config
from binas.run.run import Run, open_run
from binas.search.solvers import solver_class
from binas.space.architecture import Architecture
from binas.tables import Contributions
from binas.tasks import estimate
from binas.tasks.artefacts import COMPARISONS
from binas.training.judgement import Accuracy
from tiny_run import call, run_json, write_config

TINY = Preset(
    judged=24,
    passes=(2, 24),
    repeats=(1,),
    components=(1, 2, 4),
    limits=(30, 70),
    seeds=2,
    rival_limits=(30, 70),
    rival_seeds=2,
    time_limit=5.0,
    standalone=3,
    standalone_epochs=1,
    published=1.0,
    resamples=5,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run."""
    folder = tmp_path_factory.mktemp("reproduce")
    run_json(write_config(folder), "--out", folder / "run")
    return open_run(folder / "run")


@pytest.fixture(autouse=True)
def tiny_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "PRESETS", {**PRESETS, "tiny": TINY})


SLOW = ("predictors", "components", "optimizers", "methods", "transitivity")
EACH = [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name in NAMES
    if name != "main-table"
]


@pytest.mark.parametrize("name", EACH)
def test_each_experiment_leaves_its_files(run: Run, name: str) -> None:
    tmp_path = run.folder.parent / "found"  # one for all, so that networks are measured once
    (found,) = reproduce(run, tmp_path, [name], "tiny")
    kept = json.loads((tmp_path / f"{name}.json").read_text())
    assert kept["finding"]["rows"]
    assert kept["finding"]["sentence"] == found.finding.sentence
    with (tmp_path / f"{name}.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(found.finding.rows)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "reproduction.html").read_text()
    assert found.item in page
    assert "http" not in page.replace("http-equiv", "")


def test_what_is_known_is_not_done_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce(run, tmp_path, ["terms"], "tiny")
    before = (tmp_path / "terms.json").read_bytes()
    reproduce(run, tmp_path, ["terms"], "tiny")
    assert (tmp_path / "terms.json").read_bytes() == before
    more = TINY.model_copy(update={"resamples": 7})
    monkeypatch.setattr(studies, "PRESETS", {"tiny": more})
    reproduce(run, tmp_path, ["terms"], "tiny")
    assert json.loads((tmp_path / "terms.json").read_text())["identity"] != json.loads(before)["identity"]


def test_pictures_follow_when_matplotlib_is_there(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    progress = Progress()
    progress.say = heard.append  # type: ignore[method-assign]
    with monkeypatch.context() as patch:
        patch.setattr(studies, "PLOTTING", ("matplotlib_that_is_not_there",))
        reproduce(run, tmp_path, ["insights"], "tiny", progress)
    assert any("pip install" in line for line in heard)
    assert not (tmp_path / "insights.png").exists()
    before = (tmp_path / "insights.json").read_bytes()
    reproduce(run, tmp_path, ["insights"], "tiny")
    assert (tmp_path / "insights.png").exists()
    assert (tmp_path / "insights.json").read_bytes() == before
    assert "data:image/png" in (tmp_path / "reproduction.html").read_text()


def test_networks_that_judge_taught_nobody(run: Run) -> None:
    study = Study(run, run.folder.parent / "found", TINY, Progress())
    judged, learned = set(study.judged().architectures), set(study.learned().architectures)
    own = run.tables.samples
    assert own is not None
    assert judged
    assert learned
    assert not judged & learned
    assert not judged & set(own.architectures)
    assert (
        study.judged().provenance.to_data()["image_set"] != study.learned().provenance.to_data()["image_set"]
    )


def test_networks_that_judge_are_replaced_by_others_to_learn_from(run: Run, tmp_path: Path) -> None:
    few = TINY.model_copy(update={"judged": 12, "passes": (2, 12)})
    study = Study(run, tmp_path, few, Progress())
    judged, learned = study.judged().architectures, study.learned().architectures
    drawn = uniform_architectures(run.space, 12, LEARNED_SEED)
    assert set(drawn) & set(judged)
    assert (len(judged), len(learned)) == (12, 12)
    assert set(drawn) - set(judged) < set(learned)


def test_an_unfinished_table_is_never_taken_for_the_whole(run: Run, tmp_path: Path) -> None:
    """Killed after the first of several tables, the same call goes on to the last."""
    study = Study(run, tmp_path, TINY, Progress())

    def killed(run: Run, *given: object) -> Iterator[Contributions]:
        yield next(measured(run, *given))
        raise KeyboardInterrupt

    measured = estimate.estimates
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "estimates", killed)
        with pytest.raises(KeyboardInterrupt):
            study.contributions(protocol="factorial", passes=6)
    assert study.contributions(protocol="factorial", passes=6).provenance.to_data()["passes"] == 6
    assert len(list((tmp_path / "measured").iterdir())) == 1


def test_tables_of_other_weights_or_a_budget_are_not_mistaken(run: Run, tmp_path: Path) -> None:
    copied = tmp_path / "run"
    shutil.copytree(run.folder, copied)
    config = load_config(copied / "config.yaml", [("estimate.budget", 64), ("estimate.stability", 0.0)])
    save_config(config, copied / "config.yaml")
    study = Study(open_run(copied), tmp_path / "out", TINY, Progress())
    assert study.contributions(protocol="factorial", passes=3).provenance.to_data()["passes"] == 3
    (before,) = (tmp_path / "out" / "measured").iterdir()
    weights = copied / "supernet" / "weights.json"
    weights.write_text(weights.read_text() + " ")
    study.contributions(protocol="factorial", passes=3)
    assert len(set((tmp_path / "out" / "measured").iterdir()) - {before}) == 1


def test_errors_of_means_are_over_seeds_and_images() -> None:
    assert seed_error([70.0]) is None
    assert seed_error([70.0, 72.0]) == pytest.approx(1.0)
    of_images = 100 * (0.71 * 0.29 / 400) ** 0.5
    assert accuracy_error([70.0, 72.0], 400) == pytest.approx((1 + of_images**2) ** 0.5)
    assert accuracy_error([71.0], 400) == pytest.approx(of_images)


def test_what_ranking_is_judged_by_chose_nothing(run: Run) -> None:
    study = Study(run, run.folder.parent / "found", TINY, Progress())
    unseen, own = study.unseen(), run.tables.samples
    assert own is not None
    assert not set(unseen.architectures) & set(own.architectures)
    most = study.judged().provenance.to_data()["images"]
    (images,) = {row.images for row in unseen.rows}
    assert images is not None
    assert abs(images - most) <= run.space.classes  # of all classes alike


def test_ranking_is_held_against_size_alone_and_the_noise_ceiling(run: Run) -> None:
    (found,) = reproduce(run, run.folder.parent / "found", ["ranking"], "tiny")
    rows = {str(row["predictor"]): row for row in found.finding.rows}
    assert list(rows)[-2:] == ["MACs only", CEILING]
    assert f"{rows[CEILING]['kendall']:.3f}" in found.finding.sentence
    for metric in ("kendall", "spearman", "pearson", "mse"):
        assert {metric, f"{metric} low", f"{metric} high"} <= set(found.finding.rows[0])


@pytest.mark.parametrize("name", PRESETS)
def test_presets_ask_as_many_seeds_as_error_bars_need(name: str) -> None:
    preset = PRESETS[name]
    assert preset.seeds >= 5  # the paper's figure 7
    assert preset.rival_seeds >= 3
    assert len(PRESETS["full"].limits) >= 11  # as many as the paper's


def test_the_command_is_kept_as_it_was_given(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "two words"
    reproduce(run, out, ["terms", "insights"], "tiny")
    kept = json.loads((out / "terms.json").read_text())["command"]
    given = ["terms", "insights", "--run", str(run.folder), "--out", str(out), "--preset", "tiny"]
    assert shlex.split(kept) == ["binas", "reproduce", *given]


@pytest.mark.slow
def test_the_proven_optimum_is_never_beaten(run: Run) -> None:
    (found,) = reproduce(run, run.folder.parent / "found", ["optimizers"], "tiny")
    rows = found.finding.rows
    assert {row["method"] for row in rows} >= {"frontier", "bcfw", "evolution", "hardcore"}
    assert all(float(row["below optimum"] or 0.0) >= -1e-9 for row in rows)
    assert all(row["over the limit (%)"] == 0.0 for row in rows)
    assert all(
        float(row["one-shot error"] or 0.0) > 0 for row in rows if 0 < float(row["one-shot"] or 0) < 100
    )
    across = {series.name: series.error_x for series in found.finding.panels[0].series}
    assert set(across["frontier"]) == {None}
    assert None not in across["hardcore"]
    bars = {series.name: series.error for series in found.finding.panels[2].series}
    assert bars["miqcp"] is None or set(bars["miqcp"]) == {None}
    tuned = {(row["method"], row["seed"]) for row in rows if row["fine-tuned"] is not None}
    assert tuned == {("frontier", 0), ("hardcore", 0)}
    assert [panel.title for panel in found.finding.panels][1] == "after fine-tuning"


@pytest.mark.slow
def test_every_method_stands_beside_the_exact_answer(run: Run) -> None:
    (found,) = reproduce(run, run.folder.parent / "found", ["methods"], "tiny")
    rows = found.finding.rows
    names = {str(row["method"]) for row in rows}
    assert names >= {"binas", "hardcore", "hardcore, straight-through", "soft-penalty", "darts", "random"}
    assert "mean over 2 limits and 2 seeds" in found.finding.sentence
    assert {(row["limit"], row["seed"]) for row in rows} == {
        (f"latency={percent}%", seed) for percent in (30, 70) for seed in (0, 1)
    }
    for row in rows:
        if row["method"] in ("binas", "hardcore", "random"):
            assert row["kept"] is True
        assert int(row["image evaluations"] or 0) > 0
    assert {series.name for series in found.finding.panels[0].series} >= names


def test_the_main_table_has_others_and_ours(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = partial(PublishedSettings, networks=("MobileNetV3-Small",), backend="torch")
    monkeypatch.setattr(main_table, "PublishedSettings", few)
    (found,) = reproduce(run, tmp_path, ["main-table"], "tiny")
    models = [str(row["model"]) for row in found.finding.rows]
    assert "MobileNetV3-Small" in models
    assert any(name.startswith("found within") for name in models)
    others = next(row for row in found.finding.rows if row["model"] == "MobileNetV3-Large")
    assert others["total cost"] == "180 N"
    assert others["published latency (ms)"] == 45
    assert others["accuracy from"] == "arXiv:1905.02244, table 3"
    printed = next(row for row in found.finding.rows if row["model"] == "HardCoRe E, as printed")
    assert (printed["published latency (ms)"], printed["accuracy (%)"]) == (61, 78.0)
    quoted = next(row for row in found.finding.rows if row["model"] == "OFA CPU")
    assert quoted["latency (ms)"] is None
    assert quoted["not measured here, as"]


def test_costs_add_up(run: Run, tmp_path: Path) -> None:
    (found,) = reproduce(run, tmp_path, ["costs"], "tiny")
    seconds = {row["part"]: float(row["seconds"] or 0.0) for row in found.finding.rows}
    once = sum(seconds[name] for name in costs.STEPS)
    assert seconds["10 networks, everything"] == pytest.approx(once + 10 * seconds[costs.NETWORK], abs=1.0)


def test_what_the_run_lacks_is_left_out_and_said(run: Run, tmp_path: Path) -> None:
    def broken(study: Study) -> Finding:
        raise FileError("there is nothing to show")

    lacking = Experiment("terms", "table 2", "", broken, (), "")
    heard: list[str] = []
    progress = Progress()
    progress.say = heard.append  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terms, "EXPERIMENT", lacking)
        found = reproduce(run, tmp_path, ["terms", "insights"], "tiny", progress)
        with pytest.raises(FileError):
            reproduce(run, tmp_path, ["terms"], "tiny")
    assert [item.name for item in found] == ["insights"]
    assert any("there is nothing to show" in line for line in heard)


def test_a_run_that_has_searched_nothing_is_told_so(run: Run, tmp_path: Path) -> None:
    copied = tmp_path / "run"
    shutil.copytree(run.folder, copied)
    shutil.rmtree(copied / "results")
    with pytest.raises(FileError, match="binas search"):
        reproduce(open_run(copied), tmp_path, ["insights"], "tiny")


def test_names_that_do_not_exist_are_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no experiment 'rank'"):
        experiments(["rank"])
    with pytest.raises(ConfigError, match="no preset"):
        reproduce(run, tmp_path, ["terms"], "slow")


def test_the_page_shows_no_markup_of_others() -> None:
    section = Section("x", "<b>", "claim", "<script>alert(1)</script>", "", [{"<i>": "&"}], None)
    text = render("t", [], [section])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "&lt;i&gt;" in text


def test_the_command(run: Run, tmp_path: Path) -> None:
    code, said = call("reproduce", "list", "--json")
    assert code == 0
    assert [item["name"] for item in json.loads(said)["experiments"]] == list(NAMES)
    code, said = call("reproduce", "insights", "--run", run.folder, "--out", tmp_path, "--json")
    assert code == 0
    assert json.loads(said)["findings"][0]["name"] == "insights"
    code, said = call("reproduce", "nothing", "--run", run.folder)
    assert code == 2
    assert "choose from" in said


def test_the_best_random_network_is_chosen_after_tuning(run: Run) -> None:
    study = Study(run, run.folder.parent / "found", TINY, Progress())
    shown, (first, *_) = tuned_networks(study), COMPARISONS.read(run)
    own = {item.kind: item for item in shown if item.question == first.question}
    assert own[FOUND].lead is None
    lead = own[RANDOM].lead
    assert lead is not None
    assert lead[0] == pytest.approx(own[FOUND].accuracy.percent - own[RANDOM].accuracy.percent)
    if first.tuned is not None:
        assert own[RANDOM].architecture == first.tuned.best


def test_a_lead_is_clear_beyond_two_standard_errors() -> None:
    def shown(kind: str, question: str, lead: tuple[float, float] | None) -> Shown:
        return Shown(kind, question, "a", 1.0, "ms", None, Accuracy(80.0, 1000), lead)

    leads = {"one": (0.9, 0.4), "two": (0.7, 0.4), "three": (-1.0, 0.4)}
    rivals = [shown(RANDOM, question, lead) for question, lead in leads.items()]
    said = frontier._sentence([*(shown(FOUND, question, None) for question in leads), *rivals])
    assert f"clearly above the {RANDOM} at 1 of 3 limits, clearly below at 1 (+0.90 ± 0.40" in said
    assert HAND not in said


def test_predictors_are_told_by_both_measures_and_with_the_papers_protocol() -> None:
    rows = [
        {"predictor": predictors.OURS, "passes": 8, "kendall": 0.7, "mse": 2.4},
        {"predictor": predictors.PAPERS, "passes": 57, "kendall": 0.63, "mse": 11.6},
        {"predictor": "learned: mlp", "passes": 8, "kendall": 0.5, "mse": 1.9},
        {"predictor": "learned: additive", "passes": 8, "kendall": 0.6, "mse": 2.0},
    ]
    ranked, valued = predictors._sentence(rows).split(". Squared error")
    assert (
        "with 8 passes ours 0.70, the best learned (additive) 0.60; the paper's protocol 0.63 with 57"
        in ranked
    )
    assert "ours 2.40, the best learned (mlp) 1.90; the paper's protocol 11.60 with 57" in valued


def test_the_bound_is_of_pearson_and_of_spearman() -> None:
    predicted, one_shot, standalone = (
        np.array(values, dtype=float) for values in ([1, 2, 4, 3], [1, 2, 3, 4], [1, 3, 2, 9])
    )
    pairs = {"p-o": (predicted, one_shot), "o-s": (one_shot, standalone)}
    bound = transitivity._bound(pairs)
    assert (bound["spearman low"], bound["spearman high"]) == pytest.approx((0.28, 1.0))
    assert bound["pearson low"] != bound["spearman low"]


def test_networks_to_train_are_not_chosen_by_their_accuracy(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(run, run.folder.parent / "found", TINY, Progress())
    trained: list[Architecture] = []

    def standalone(_: Study, architectures: list[Architecture]) -> np.ndarray:
        trained.extend(architectures)
        return np.arange(len(architectures), dtype=float)

    monkeypatch.setattr(transitivity, "_standalone", standalone)
    found, judged = transitivity.make(study), study.judged()
    assert trained == judged.architectures[: TINY.standalone]
    assert [row.get("networks") for row in found.rows] == [len(judged), len(trained), len(trained), None]


def test_insights_answer_whether_width_is_to_be_preferred(run: Run) -> None:
    study = Study(run, run.folder.parent / "found", TINY, Progress())
    said = insights.make(study).sentence
    assert "kernel" in said
    assert next(insights._preferred(Effects(run.tables.contributions), {})).startswith("This space")


def test_a_solver_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "left out" not in optimizers._left_out() or solver_class("miqcp").missing()
    monkeypatch.setattr(solver_class("miqcp"), "requires", ("scip_that_is_not_there",))
    assert "miqcp is left out: it is not installed (pip install" in optimizers._left_out()
