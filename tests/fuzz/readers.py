"""Every reader of files and texts that users hand over, each with right ones to start from.

A :class:`Reader` writes its right files into a folder, names the one that is changed, and reads it as the program does, and
goes on to what the program does next with it (ranges, predictions, sentences): there a wrong value would hurt.
``tests/fuzz/test_fuzz.py`` changes each a few times, ``tests/fuzz/long.py`` as often as one likes.
"""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from own_models import SIDE, Basic, ResNet
from safetensors import safe_open
from safetensors.torch import load, save
from small_images import encoded, pixels, write_classes
from tiny import TINY

from binas.base.files import read_text
from binas.contributions.journal import Journal as Passes
from binas.contributions.outcomes import Outcomes
from binas.costs.analytic import analytic_costs, counted_costs
from binas.costs.filled import import_filled
from binas.costs.foreign import read_once_for_all, read_tf_nas
from binas.costs.journal import Journal, Sample as Measured
from binas.costs.manifest import BlockFile, Manifest, Use, read_manifest
from binas.data import DataConfig, load_data
from binas.data.config import DataRecord
from binas.data.idx import idx_bytes, read_idx
from binas.estimators.choosing import choose_estimator, load_choice
from binas.estimators.predictors import load_predictor, make_predictor
from binas.report.assemble import CONFIG
from binas.report.story import tell
from binas.reproduce._base import Finding, Panel, Series
from binas.reproduce.figure import picture
from binas.reproduce.page import render
from binas.reproduce.studies import FindingRecord, read_finding, sections_of
from binas.run.config import load_config
from binas.run.folder import Folder as Tables
from binas.run.log import log_event, read_log
from binas.run.plan import plan_of
from binas.run.records import Record, read_record, write_record
from binas.run.run import Run
from binas.search.answers import AnswerRecord
from binas.search.confirming import Confirmed
from binas.search.frontier import Frontier, frontier
from binas.search.limits import parse_limits
from binas.search.methods import MethodRecord, limit_uses, summarise
from binas.search.problem import SearchProblem
from binas.search.rivals import Comparison, Leads, Percents, Rival
from binas.search.solve import solve
from binas.space import SearchSpace, load_space, save_space, space_from_yaml
from binas.space.blockstrings import read_architecture, read_choice, to_block_string
from binas.space.described import NetworkDescription
from binas.space.files import space_from_data, space_to_data
from binas.space.sampling import sample_many
from binas.supernet.static import StaticNetwork
from binas.supernet.weights import check_recorded, read_weights
from binas.supernet.weights.equality import random_images
from binas.supernet.weights.loading import LoadedNetwork
from binas.tables import (
    Column,
    Contributions,
    Cost,
    CostTable,
    Provenance,
    Sample,
    Samples,
    load_contributions,
    load_costs,
    load_samples,
    parse_unit,
)
from binas.tables.entries import SpaceReference, reference
from binas.tables.samples import pack
from binas.tasks.artefacts import ANSWERS, COMPARISONS, DATA, MODEL, read_network
from binas.tasks.confirming import NetworkOutcomes, known_outcomes
from binas.tasks.finetune import has_inputs
from binas.tasks.methods import TOOK, Took, measuring_seconds, read_method
from binas.tasks.outlook import Rates
from binas.training.checkpoint import (
    load_checkpoint,
    load_generator,
    load_optimizer,
    load_weights,
    save_checkpoint,
)
from binas.training.judgement import Accuracy, HeldOut, Judgement, ModelRecord, NetworkRecord
from binas.training.loop import read_place
from binas.training.reporting import read_metrics

QUESTION = "latency=50%"


@dataclass(frozen=True)
class Reader:
    """Something that reads a file of the user's.

    ``make`` writes right files into an empty folder; ``file`` is changed (for ``text`` the content is handed over itself);
    ``read`` reads it. ``free`` are parts of the file that may hold anything of their type; ``sealed`` files carry a hash, so
    that any change must be found; ``foreign`` ones are read by another library, which decides what is wrong in them.
    """

    name: str
    file: str
    form: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    free: tuple[str, ...] = ()
    sealed: bool = False
    foreign: bool = False


@cache
def space() -> SearchSpace:
    """A space that can be built and counted."""
    return space_from_yaml(TINY)


FIRST = str(space().extreme())


@cache
def costs() -> CostTable:
    """Latency and counted costs, one of them a maximum, and a variant."""
    known = analytic_costs(space())
    values = known["macs"].values.map(lambda row: row * 1e-4)
    about = Provenance(source="made up", device="here", threads=1, batch=1)
    latency = Cost("latency", parse_unit("ms"), 0.5, values, 0.01, values.map(lambda row: row / 50), about)
    peak = Cost("peak", parse_unit("MiB"), 1.0, values, combine="max")
    twice = Cost("latency", parse_unit("ms"), 0.4, values.map(lambda row: row / 2))
    return CostTable(
        space(), {"latency": latency, "peak": peak, "macs": known["macs"]}, {"2 threads": {"latency": twice}}
    )


def plain_costs() -> CostTable:
    """The same without variants, which spreadsheets do not hold."""
    return CostTable(space(), costs().costs)


@cache
def contributions() -> Contributions:
    """Contributions with errors and a covariance."""
    drawn, layout = np.random.default_rng(0), space().layout
    values = Column.from_flat(space(), drawn.normal(0, 1, layout.size))
    errors = Column.from_flat(space(), drawn.uniform(0.1, 0.2, layout.size))
    square = np.append(0.1, errors.flat()) ** 2
    about = Provenance(source="made up", evaluations=100, images=10)
    return Contributions(space(), 60.0, values, 0.1, errors, errors, about, 100.0, np.diag(square))


@cache
def samples() -> Samples:
    """Measured architectures with all that may be known of one."""
    drawn, rows = np.random.default_rng(1), []
    for item in dict.fromkeys(sample_many(space(), 30, 0)):
        correct = drawn.random(40) < 0.6
        halves = (100 * float(correct[:20].mean()), 100 * float(correct[20:].mean()))
        rows.append(Sample(item, 100 * float(correct.mean()), 7.7, 40, halves, pack(correct)))
    return Samples(space(), tuple(rows), Provenance(source="made up", images=40))


@cache
def problem() -> SearchProblem:
    """A question that has an answer."""
    return SearchProblem.build(contributions(), plain_costs(), [QUESTION])


def use_space(found: SearchSpace) -> None:
    """What is done with every space."""
    assert space_from_data(space_to_data(found)) == found
    if found.count < 10**60:
        found.layout.positions_of([found.extreme(), found.extreme(False)])
    counted_costs(found)


def use_costs(found: CostTable) -> None:
    """What is done with every cost table."""
    for name in found.costs:
        low, high = found.range(name)
        assert np.isfinite([low, high]).all()
    found.to_data()


def use_cost(found: Cost, of: str | None = None) -> None:
    """What is done with a cost of another tool."""
    assert np.isfinite(found.range(space() if of is None else load_space(of))).all()


def use_contributions(found: Contributions) -> None:
    """What is done with every table of contributions."""
    values, _ = found.predict([space().extreme(), space().extreme(False)])
    assert np.isfinite(values).all()
    list(found.extremes())
    found.to_data()


def use_samples(found: Samples) -> None:
    """What is done with every table of samples."""
    assert np.isfinite(found.accuracy).all()
    found.outcomes, found.halves  # noqa: B018
    found.to_data()


def _write(text: str | bytes, name: str) -> Callable[[Path], None]:
    data = text.encode() if isinstance(text, str) else text
    return lambda folder: (folder / name).write_bytes(data) and None


def _text(name: str, valid: str, read: Callable[[str], Any]) -> Reader:
    def from_file(folder: Path) -> Any:
        return read((folder / "text").read_bytes().decode("utf-8", "replace"))

    return Reader(name, "text", "text", _write(valid, "text"), from_file)


def _table_reader(name: str, file: str, form: str, table: Callable[[], Any], load: Any, use: Any) -> Reader:
    def make(folder: Path) -> None:
        table().save(folder / file)

    free = ("provenance", "space.name", "description")
    return Reader(name, file, form, make, lambda folder: use(load(folder / file, space())), free)


CONFIG_TEXT = """space: tiny.yaml
data: {kind: arrays, path: bars.npz, validation_share: 0.2}
train: {processes: 1, heaviest: {epochs: 1, batch_size: 32, learning_rate: 0.01}, recipe: small}
measure: {table: device.json}
estimate: {passes: 4}
search: {limits: [latency=50%, "latency=0.2ms and macs<=3M"], candidates: 1}
finetune: {augment: {crop: 2, flip: true}}
"""


def make_run(folder: Path) -> None:
    """Configuration and space of a run."""
    (folder / CONFIG).write_text(json.dumps({"search": {"limits": [QUESTION]}}))
    save_space(space(), folder / "space.yaml")


def run_of(folder: Path) -> Run:
    """The run in a folder."""
    return Run(folder, load_config(folder / CONFIG), space())


@cache
def answer() -> AnswerRecord:
    """A verified answer as it is kept."""
    confirmed = Confirmed(images_of="test", images=40, accuracy=61.0, error=2.0, lead=(1.0, 0.5), over=3)
    result = solve(problem(), "auto")
    return AnswerRecord.of(QUESTION, problem(), result, "", "bilinear", confirmed)


@cache
def comparison() -> Comparison:
    """An answer held against rivals."""
    names = [str(item) for item in sample_many(space(), 3, 1)]
    rivals = [
        Rival(architecture=name, cost=1.0, one_shot=Percents(validation=60.0, test=59.0 + i))
        for i, name in enumerate(names)
    ]
    leads = Leads(count=2, best=names[1], over_random=(0.5, 0.1), over_best=(0.2, 0.3), over_hand_scaled=None)
    found = Rival(architecture=names[0], cost=1.0, one_shot=Percents(validation=60.0, test=61.0))
    return Comparison(
        question=QUESTION, identity="0" * 16, cost="latency", limit=1.0, unit="ms", images=40, found=found,
        random=tuple(rivals[1:]), hand_scaled=None, one_shot=leads,
    )  # fmt: skip


def make_answers(folder: Path) -> None:
    """Answers and comparisons of a run."""
    make_run(folder)
    ANSWERS.write(run_of(folder), QUESTION, answer())
    COMPARISONS.write(run_of(folder), QUESTION, comparison())


def use_answers(folder: Path) -> None:
    """The sentences that are made of answers and comparisons."""
    run = run_of(folder)
    found = run.answers
    for item in found:
        item.limits_text, item.searched_limits, item.measured("latency")
    tell(found, {}, COMPARISONS.read(run))
    for pair in COMPARISONS.read(run):
        pair.verdict.sentence()
        pair.to_tune(2)


def make_records(folder: Path) -> None:
    """Records, logs and the like of a run."""
    make_run(folder)
    write_record(
        folder, Record("measure", "finished", "0" * 16, {"a": 1}, "2026-01-01", 3.0, ("costs.json",))
    )
    log_event(folder, "started", "measure")
    log_event(folder, "finished", "measure", seconds=3.0)
    (folder / "metrics.jsonl").write_text('{"phase": "heaviest", "epoch": 1, "step": 4, "loss": 0.5}\n')
    images = {"train": 100, "validation": 20, "test": 20}
    DATA.write(
        run_of(folder),
        DataRecord(fingerprint="0" * 16, images=images, classes=("a", "b"), channels=3, height=8, width=8),
    )


def make_network(folder: Path) -> None:
    """The record of a fine-tuned network."""
    held = HeldOut(Accuracy(60.0, 20), Accuracy(55.0, 20))
    NetworkRecord(
        name="n", architecture=str(space().extreme()), from_scratch=False, settings={"epochs": 1}, weights="0" * 16,
        judgement=Judgement(held, held, 1), parameters=1000, macs=10_000, seconds=3.0,
    ).save(folder / "network.json")  # fmt: skip


def use_network(folder: Path) -> None:
    """The accuracies of a network with their errors."""
    found = read_network(folder)
    found.judgement.tuned.test.error, found.judgement.one_shot.validation.error  # noqa: B018
    space().parse(found.architecture)


def make_model(folder: Path) -> None:
    """How good a model was before it was made smaller."""
    make_run(folder)
    MODEL.write(run_of(folder), ModelRecord(judgement=HeldOut(Accuracy(60.0, 20), Accuracy(55.0, 20))))


def make_plan(folder: Path) -> None:
    """The plan of a run that was given a time."""
    make_run(folder)
    rates = dict.fromkeys(Rates.model_fields, 1)
    images = {"train": 100, "validation": 20, "test": 20}
    data = {
        "budget": 100.0, "spent": 3.0, "size": [8, 8], "space": "tiny", "images": images, "rates": rates,
        "chosen": {"train.heaviest.epochs": 2}, "given": ["space"], "steps": {"measure": [3.0, 1.0]},
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(data))


def use_plan(folder: Path) -> None:
    """The seconds that are left."""
    found = plan_of(run_of(folder))
    assert found is not None
    assert np.isfinite(found.total)


PLAN = {"entries": ["control", "a", "b"], "space": "0" * 16}


def make_journal(folder: Path) -> None:
    """The journal of a measuring."""
    journal = Journal.open(folder / "journal", PLAN)
    journal.set_repeats({"control": 1, "a": 2, "b": 3})
    for number, entry in enumerate(["control", "a", "b", "control", "b", "a"], 1):
        journal.add(Measured(entry, 0.001 * number, 0.1 * number))


IDENTITY = {"images": 12, "weights": "0" * 16, "seed": 0}


def make_passes(folder: Path) -> None:
    """Recorded passes."""
    correct = (np.arange(12) % 2).astype(np.float32)
    Passes(folder, IDENTITY).write(0, Outcomes(correct, correct - 1))


def use_passes(folder: Path) -> None:
    """What a fit reads."""
    assert len(Passes(folder, IDENTITY).read(0, 0, 12)) == 12


def network() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """Something that is trained."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    return module, torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


def make_checkpoint(folder: Path) -> None:
    """A checkpoint of the training of :func:`network`."""
    module, optimizer = network()
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    tensors = {f"network.{name}": value for name, value in module.state_dict().items()}
    for index, entries in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{key}": value for key, value in entries.items()}
    tensors["generator"] = torch.get_rng_state()
    place = {"epoch": 1, "batch": 2, "loss": 0.5, "best": None, "average_steps": 0, "scaler": None}
    save_checkpoint(folder, "progress", tensors, {"identity": {}, "place": place})
    next(folder.glob("*.safetensors")).rename(folder / "tensors.safetensors")
    text = (folder / "progress.json").read_text()
    header = json.loads(text) | {"tensors": "tensors.safetensors"}
    (folder / "progress.json").write_text(json.dumps(header))


def use_checkpoint(folder: Path) -> None:
    """What a training that continues takes from it."""
    found, (module, optimizer) = load_checkpoint(folder, "progress"), network()
    parts: dict[str, dict[str, torch.Tensor]] = {"network": {}, "optimizer": {}}
    for name, value in found.tensors.items():
        kind, _, rest = name.partition(".")
        parts.setdefault(kind, {})[rest] = value
    load_weights(module, parts["network"], str(folder))
    load_optimizer(optimizer, parts["optimizer"], str(folder))
    load_generator(found.tensors.get("generator"), str(folder))
    read_place(found.values, folder, 3, 5)


def _tensors() -> dict[str, torch.Tensor]:
    net = StaticNetwork.from_architecture(space(), space().extreme(False))
    return {name: value.contiguous() for name, value in net.state_dict().items() if value.is_floating_point()}


def make_pth(folder: Path) -> None:
    """Weights as PyTorch writes them."""
    torch.save(dict(list(_tensors().items())[:3]), folder / "weights.pth")


def make_export(folder: Path) -> None:
    """A finished network as it is exported."""
    from binas.export.model_file import FileEntry, InputEntry, ModelFile, pack_weights

    net = StaticNetwork.from_architecture(space(), space().extreme(False))
    data = pack_weights(net)
    model = ModelFile(
        binas="0", name="n", architecture=str(space().extreme(False)), space=space_to_data(space()),
        input=InputEntry(shape=(3, 16, 16), mean=(0.5,) * 3, std=(0.2,) * 3, graphs="bytes"),
        classes=tuple("abcde"), parameters=1, macs=1, weights=FileEntry.of(data),
    )  # fmt: skip
    (folder / "model.safetensors").write_bytes(data)
    (folder / "model.json").write_text(model.model_dump_json())


def use_export(folder: Path) -> None:
    """The network of an exported folder."""
    from binas.export.model_file import load_model

    load_model(folder)


@cache
def described() -> LoadedNetwork:
    """A small network as it is after its weights were read."""
    blocks = "[['ds_r1_k3_s1_e1_c8'], ['ir_r1_k3_s2_e2_c8']]"
    about = NetworkDescription(name="small", stem="cn_k3_s2_c8", blocks=blocks, resolution=32, classes=4)
    torch.manual_seed(0)
    return LoadedNetwork(StaticNetwork.from_description(about).eval(), about, "own", ())


def make_pairs(name: str) -> Callable[[Path], None]:
    """Recorded images and logits."""

    def make(folder: Path) -> None:
        images = random_images(described().description, 2)
        with torch.no_grad():
            found = {"images": images, "logits": described().network(images)}
        arrays = {name: value.numpy() for name, value in found.items()}
        np.savez_compressed(folder / name, **arrays) if name.endswith(".npz") else _write(save(found), name)(
            folder
        )

    return make


def make_npz(folder: Path) -> None:
    """Arrays of images."""
    labels = np.arange(30) % 3
    np.savez_compressed(
        folder / "images.npz", images=pixels(30), labels=labels, classes=np.array(["a", "b", "ü"])
    )


def use_data(**settings: Any) -> Callable[[Path], None]:
    """A dataset of a folder, read and looked at."""

    def read(folder: Path) -> None:
        given = {key: folder / value if key == "path" else value for key, value in settings.items()}
        data = load_data(DataConfig(**given))
        data.fingerprint()
        next(iter(data.train.batches(2)))

    return read


def make_folder(folder: Path) -> None:
    """A folder of images, one of each kind."""
    from PIL import Image

    write_classes(folder / "images", {"a": 4, "b": 4})
    image = Image.fromarray(pixels(1, 16, 16)[0])
    for name, kind in (
        ("jpg", "JPEG"),
        ("gif", "GIF"),
        ("bmp", "BMP"),
        ("webp", "WEBP"),
        ("tif", "TIFF"),
        ("ppm", "PPM"),
    ):
        image.save(folder / "images" / "a" / f"x.{name}", kind)
        image = image.rotate(90)


def make_blocks(folder: Path) -> None:
    """What is exported for another device: its manifest and the filled CSV."""
    save_space(space(), folder / "space.yaml")
    files = []
    uses = [
        Use(stage=stage.name, block=b + 1, config=config.name)
        for stage in space().stages
        for b, row in enumerate(stage.blocks)
        for config in row
    ]
    for number, use in enumerate(uses):
        about: dict[str, Any] = {"file": f"{number}.onnx", "sha256": "0" * 64, "inputs": ((1, 3, 16, 16),)}
        key = f"{use.stage}/{use.block}/{use.config}"
        files.append(BlockFile(key=key, kind="block", uses=(use,), **about))
    files.append(
        BlockFile(key="fixed part", kind="fixed", file="f.onnx", sha256="0" * 64, inputs=((1, 3, 16, 16),))
    )
    made_for = SpaceReference.model_validate(reference(space()))
    manifest = Manifest(tool="binas", space=made_for, batch=1, files=tuple(files))
    manifest.save(folder)
    rows = manifest.fill_in().splitlines()
    (folder / "fill-in.csv").write_text(
        "\n".join([rows[0], *(f"{row[:-2]},1.5,ms" for row in rows[1:])]) + "\n"
    )


def use_blocks(folder: Path) -> None:
    """The table of measured blocks."""
    manifest = read_manifest(folder / "manifest.json")
    about = Provenance(device="there")
    use_costs(import_filled(folder / "fill-in.csv", manifest, space(), unit="ms", provenance=about).table)


def _ofa() -> str:
    from test_foreign import ofa_table

    return json.dumps(ofa_table())


# size, channels in and out, kernels, stride, activation, squeeze-excite and expansions of the blocks of the space
TF_NAS = (
    (8, 8, 8, (3,), 1, "relu", (0, 1), (2, 3)),
    (8, 8, 16, (3, 5), 2, "h_swish", (0,), (2,)),
    (4, 16, 16, (3, 5), 1, "h_swish", (0,), (2,)),
)


def _tf_nas() -> dict[str, Any]:
    """A table of TF-NAS in its own form."""
    table: dict[str, Any] = {"base": 1.5}
    for size, inputs, outputs, kernels, stride, name, squeezes, expansions in TF_NAS:
        for kernel, se in itertools.product(kernels, squeezes):
            key = f"MBI_{size}_{inputs}_{4 * se}_{outputs}_k{kernel}_s{stride}_{name}"
            table[key] = {str(inputs * expansion): 0.5 for expansion in expansions}
    return table


def _tf_nas_blocks() -> dict[str, Any]:
    """The same by block."""
    blocks = []
    for size, inputs, outputs, kernels, stride, name, squeezes, expansions in TF_NAS:
        choices = itertools.product(kernels, expansions, squeezes)
        ms = {f"k{kernel}_e{expansion}_se{se}": 0.5 for kernel, expansion, se in choices}
        blocks.append(
            {"cin": inputs, "cout": outputs, "in_hw": size, "stride": stride, "act": name, "ms": ms}
        )
    return {"cpu": {"unit": "ms", "blocks": blocks, "stem_and_head_ms": 1.5, "device": "x", "batch_size": 1}}


def make_frontier(folder: Path) -> None:
    """The frontier as a spreadsheet."""
    (folder / "frontier.csv").write_text(frontier(problem(), "latency").to_csv())


def make_predictor_of(kind: str) -> Callable[[Path], None]:
    """A predictor that learned from the samples."""

    def make(folder: Path) -> None:
        make_predictor(kind).fit(samples()).save(folder / "predictor.json")

    return make


def use_predictor(folder: Path) -> None:
    """Its predictions."""
    load_predictor(folder / "predictor.json", space()).predict([space().extreme(), space().extreme(False)])


@cache
def mlp() -> bytes:
    """The file of a small perceptron that learned from the samples."""
    import tempfile

    from binas.estimators.mlp import MLPPredictor

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "predictor.safetensors"
        MLPPredictor(hidden=(6, 4), epochs=2).fit(samples()).save(path)
        return path.read_bytes()


def make_mlp(folder: Path) -> None:
    """A perceptron as it is kept."""
    (folder / "predictor.safetensors").write_bytes(mlp())


def use_mlp(folder: Path) -> None:
    """Its predictions."""
    found = load_predictor(folder / "predictor.safetensors", space())
    found.predict([space().extreme(), space().extreme(False)])


def make_mlp_header(folder: Path) -> None:
    """What the file of a perceptron says about its tensors, and the file."""
    make_mlp(folder)
    with safe_open(folder / "predictor.safetensors", framework="pt") as file:
        (folder / "header.json").write_text(file.metadata()["binas"])


def use_mlp_header(folder: Path) -> None:
    """The same tensors with another header."""
    text = (folder / "header.json").read_bytes().decode("utf-8", "replace")
    (folder / "predictor.safetensors").write_bytes(save(load(mlp()), {"binas": text}))
    use_mlp(folder)


def make_method(folder: Path) -> None:
    """What a method of others found."""
    uses = limit_uses(problem(), space().extreme(False))
    MethodRecord(
        method="random", question=QUESTION, seed=0, budget=100, identity="0" * 16, architecture=str(space().extreme(False)),
        limits=uses, accuracy=61.0, error=2.0, images=40, evaluations=100, gradients=0, shared=False, seconds=3.0,
    ).save(folder / "method.json")  # fmt: skip


def use_method(folder: Path) -> None:
    """The summary of a method."""
    for item in summarise([read_method(folder / "method.json")] * 2):
        item.violation, item.spread  # noqa: B018


def make_finding(folder: Path) -> None:
    """What an experiment of the paper found."""
    lines = Series(name="own", x=(1.0, 2.0), y=(0.5, None), error=(0.1, None))
    bars = Series(name="own", x=("a", "b"), y=(1.0, 2.0), kind="bars")
    panels = tuple(Panel(title="t", x="x", y="y", series=(series,)) for series in (lines, bars))
    finding = Finding(sentence="s", rows=({"passes": 1, "tau": 0.5, "best": None},), panels=panels)
    FindingRecord(
        name="ranking", item="figure 4", claim="c", holds="h", identity="0" * 16, preset="quick", run="first",
        command="binas reproduce", date="2026-01-01", seconds=3.0, finding=finding,
    ).save(folder / "ranking.json")  # fmt: skip


def use_finding(folder: Path) -> None:
    """The page, and the numbers of the picture."""
    found = read_finding(folder / "ranking.json")
    render("title", [], sections_of(folder, [found]))
    if found.finding.panels:  # else none is drawn
        picture(found.finding)


INPUTS = {"seed": 0, "mixed_precision": None, "epochs": 2, "heaviest": "0" * 16}


def make_outcomes(folder: Path) -> None:
    """Which images a network classifies rightly."""
    correct = np.arange(40) % 3 == 0
    NetworkOutcomes(architecture=FIRST, identity="0" * 16, images=40, correct=pack(correct)).save(
        folder / "network.json"
    )


def use_outcomes(folder: Path) -> None:
    """The share of right ones."""
    found = known_outcomes(folder / "network.json", FIRST, "0" * 16)
    assert found is None or np.isfinite(found.mean())


def table() -> Any:
    """Twelve images and their labels as a table of ``datasets``, which asks nobody and keeps nothing beyond this process."""
    import tempfile

    import datasets

    datasets.config.HF_DATASETS_CACHE = Path(tempfile.mkdtemp(prefix="binas-fuzz-"))
    datasets.disable_progress_bars()
    images = [{"bytes": encoded(image), "path": None} for image in pixels(12, 6, 6)]
    form = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    return datasets.Dataset.from_dict({"image": images, "label": [0, 1] * 6}, features=form)


def make_parquet(folder: Path) -> None:
    """A Parquet file of images."""
    table().to_parquet(folder / "images.parquet")


def make_saved(folder: Path) -> None:
    """A dataset as ``save_to_disk`` writes it."""
    import datasets

    datasets.DatasetDict(train=table()).save_to_disk(folder / "saved")


def use_table(name: str) -> Callable[[Path], None]:
    """The images of a table; what ``datasets`` made of it is removed again."""
    read = use_data(kind="huggingface", path=name, size=6)

    def and_forget(folder: Path) -> None:
        import datasets

        try:
            read(folder)
        finally:
            shutil.rmtree(datasets.config.HF_DATASETS_CACHE, ignore_errors=True)

    return and_forget


def make_packed(ending: str) -> Callable[[Path], None]:
    """An idx file, compressed."""
    packed = {"gz": gzip.compress, "xz": lzma.compress}[ending]
    return lambda folder: _write(packed(idx_bytes(pixels(20, channels=1)[..., 0])), f"i.{ending}")(folder)


def use_limits(text: str) -> None:
    """Limits on the costs of a table."""
    for limit in parse_limits(text, space(), costs().costs):
        assert np.isfinite(limit.value)


def use_set(text: str) -> None:
    """A setting as it is typed."""
    load_config(None, [text])


def use_choice(folder: Path) -> None:
    """An architecture in a file."""
    space().check(read_choice(space(), str(folder / "arch.json")))


def use_config(folder: Path) -> None:
    """A configuration, as it is kept."""
    from binas.run.config import given_settings, save_config

    config = load_config(folder / "config.yaml")
    given_settings(folder / "config.yaml")
    save_config(config, folder / "kept.yaml")
    assert load_config(folder / "kept.yaml") == config


def make_config(folder: Path) -> None:
    """A configuration file."""
    (folder / "config.yaml").write_text(CONFIG_TEXT)


def graph_space() -> str:
    """A space of a model of one's own, with its graph."""
    from binas.space.graph_space import space_of_graph
    from binas.supernet.tracing import trace

    model = ResNet([Basic(16, 16, 1), Basic(16, 24, 2)], 24)
    made = space_of_graph(trace(model.eval(), (3, SIDE, SIDE)).graph, "own")
    return json.dumps(space_to_data(made))


def make_graph(folder: Path) -> None:
    """The file of such a space."""
    (folder / "space.json").write_text(graph_space())


def read_space(name: str) -> Callable[[Path], None]:
    """A space from a file."""
    return lambda folder: use_space(load_space(folder / name))


def _architecture(text: str) -> None:
    space().check(read_architecture(space(), text))


def _quantity(text: str) -> None:
    from binas.tables.units import parse_quantity

    assert np.isfinite(parse_quantity(text, parse_unit("ms")))


def _duration(text: str) -> None:
    from binas.base.times import parse_duration

    assert np.isfinite(parse_duration(text))


def _conditions(text: str) -> None:
    from binas.tables.conditions import parse_conditions

    parse_conditions(text)


READERS: tuple[Reader, ...] = (
    Reader(
        "space.yaml",
        "space.yaml",
        "yaml",
        lambda f: save_space(space(), f / "space.yaml"),
        read_space("space.yaml"),
        ("name", "description", "stages"),
    ),
    Reader(
        "space.json",
        "space.json",
        "json",
        lambda f: save_space(space(), f / "space.json"),
        read_space("space.json"),
        ("name", "description", "stages"),
    ),
    Reader(
        "space of a model",
        "space.json",
        "json",
        make_graph,
        read_space("space.json"),
        ("name", "description", "stages"),
    ),
    _table_reader(
        "contributions.json",
        "contributions.json",
        "json",
        contributions,
        load_contributions,
        use_contributions,
    ),
    _table_reader(
        "contributions.csv", "contributions.csv", "csv", contributions, load_contributions, use_contributions
    ),
    _table_reader("costs.json", "costs.json", "json", costs, load_costs, use_costs),
    _table_reader("costs.csv", "costs.csv", "csv", plain_costs, load_costs, use_costs),
    _table_reader("samples.json", "samples.json", "json", samples, load_samples, use_samples),
    Reader("config.yaml", "config.yaml", "yaml", make_config, use_config),
    _text("--set", "train.heaviest.learning_rate=0.01", use_set),
    _text("limits", "latency=25% and macs<=300k and latency>=0.2ms@batch=1,device=here", use_limits),
    _text("quantity", "4.5e1ms", _quantity),
    _text("duration", "1h30min", _duration),
    _text("conditions", "batch=1,device=Pixel 9", _conditions),
    _text("architecture string", FIRST, _architecture),
    _text("block string", to_block_string(space(), space().extreme()), _architecture),
    _text("architecture JSON", json.dumps(space().extreme().to_json()), _architecture),
    Reader(
        "architecture file",
        "arch.json",
        "json",
        _write(json.dumps({"architecture": FIRST}), "arch.json"),
        use_choice,
        ("",),
    ),
    Reader(
        "results",
        "results/latency-50pct.json",
        "json",
        make_answers,
        use_answers,
        (
            "details",
            "alternatives",
            "variant",
        ),  # whether there is such a variant the tables know (read_answers)
    ),
    Reader("rivals", "rivals/latency-50pct.json", "json", make_answers, use_answers),
    Reader(
        "step record",
        "steps/measure.json",
        "json",
        make_records,
        lambda f: read_record(f, "measure"),
        ("inputs",),
    ),
    Reader("log.jsonl", "log.jsonl", "lines", make_records, read_log),
    Reader("metrics.jsonl", "metrics.jsonl", "lines", make_records, read_metrics),
    Reader("data.json", "data.json", "json", make_records, lambda f: DATA.read(run_of(f)).sentence()),
    Reader("network.json", "network.json", "json", make_network, use_network, ("settings",)),
    Reader(
        "given-model.json",
        "given-model.json",
        "json",
        make_model,
        lambda f: MODEL.read(run_of(f)).judgement.test.error,
    ),
    Reader("plan.json", "plan.json", "json", make_plan, use_plan, ("chosen",)),
    Reader(
        "estimator.json",
        "estimator.json",
        "json",
        lambda f: choose_estimator(contributions(), samples(), resamples=5).save(f / "estimator.json"),
        lambda f: load_choice(f / "estimator.json", space()).judgement(),
        ("space.name",),
    ),
    Reader(
        "measuring journal", "journal", "lines", make_journal, lambda f: Journal.open(f / "journal", PLAN)
    ),
    Reader("recorded passes", "pass-000000.npy", "bytes", make_passes, use_passes, sealed=True),
    Reader("header of passes", "journal.json", "json", make_passes, use_passes, ("",)),
    Reader("checkpoint", "progress.json", "json", make_checkpoint, use_checkpoint, ("",)),
    Reader(
        "checkpoint tensors", "tensors.safetensors", "bytes", make_checkpoint, use_checkpoint, sealed=True
    ),
    Reader(
        "safetensors",
        "w.safetensors",
        "bytes",
        lambda f: _write(save(_tensors()), "w.safetensors")(f),
        lambda f: read_weights(f / "w.safetensors"),
    ),
    Reader("PyTorch weights", "weights.pth", "bytes", make_pth, lambda f: read_weights(f / "weights.pth")),
    Reader(
        "model.json",
        "model.json",
        "json",
        make_export,
        use_export,
        ("space.name", "space.description", "name"),
    ),
    Reader("model weights", "model.safetensors", "bytes", make_export, use_export, sealed=True),
    *(
        Reader(
            name, name, "bytes", make_pairs(name), lambda f, name=name: check_recorded(described(), f / name)
        )
        for name in ("pairs.npz", "pairs.safetensors")
    ),
    Reader("images.npz", "images.npz", "bytes", make_npz, use_data(kind="arrays", path="images.npz")),
    Reader(
        "idx",
        "i",
        "bytes",
        _write(idx_bytes(pixels(20, channels=1)[..., 0]), "i"),
        lambda f: read_idx(f / "i", 3),
    ),
    *(
        Reader(
            f"idx.{ending}",
            f"i.{ending}",
            "bytes",
            make_packed(ending),
            lambda f, e=ending: read_idx(f / f"i.{e}", 3),
        )
        for ending in ("gz", "xz")
    ),
    Reader(
        "image folder",
        "images/a/000.png",
        "bytes",
        make_folder,
        use_data(kind="folder", path="images", size=8),
    ),
    *(
        Reader(
            f"image folder, {kind}",
            f"images/a/x.{kind}",
            "bytes",
            make_folder,
            use_data(kind="folder", path="images", size=8),
        )
        for kind in ("jpg", "gif", "bmp", "webp", "tif", "ppm")
    ),
    Reader(
        "once-for-all table",
        "t.yaml",
        "yaml",
        lambda f: _write(_ofa(), "t.yaml")(f),
        lambda f: use_cost(read_once_for_all(f / "t.yaml", load_space("ofa-mbv3")), "ofa-mbv3"),
        ("",),
    ),
    Reader(
        "TF-NAS table",
        "t.json",
        "json",
        _write(json.dumps(_tf_nas()), "t.json"),
        lambda f: use_cost(read_tf_nas(f / "t.json", space())),
        ("",),
    ),
    Reader(
        "TF-NAS blocks",
        "t.json",
        "json",
        _write(json.dumps(_tf_nas_blocks()), "t.json"),
        lambda f: use_cost(read_tf_nas(f / "t.json", space(), "cpu")),
        ("",),
    ),
    Reader("manifest.json", "manifest.json", "json", make_blocks, use_blocks, ("tool",)),
    Reader("fill-in.csv", "fill-in.csv", "csv", make_blocks, use_blocks),
    Reader(
        "frontier.csv",
        "frontier.csv",
        "csv",
        make_frontier,
        lambda f: Frontier.from_csv(read_text(f / "frontier.csv"), problem()),
    ),
    *(
        Reader(
            f"predictor {kind}",
            "predictor.json",
            "json",
            make_predictor_of(kind),
            use_predictor,
            ("space.name",),
        )
        for kind in ("additive", "pairs", "gaussian-process")
    ),
    Reader("predictor mlp", "predictor.safetensors", "bytes", make_mlp, use_mlp),
    Reader("header of mlp", "header.json", "json", make_mlp_header, use_mlp_header, ("space.name",)),
    Reader("found by methods", "method.json", "json", make_method, use_method),
    Reader("found by experiments", "ranking.json", "json", make_finding, use_finding, ("rows",)),
    Reader(
        "seconds of tables",
        "took.json",
        "json",
        lambda f: Took(seconds=3.0).save(f / TOOK),
        lambda f: measuring_seconds(Tables(f, space())),
    ),
    Reader(
        "inputs of a network",
        "inputs.json",
        "json",
        _write(json.dumps(INPUTS), "inputs.json"),
        lambda f: has_inputs(f, INPUTS),
        ("",),
    ),
    Reader("outcomes of a network", "network.json", "json", make_outcomes, use_outcomes),
    Reader("Parquet", "images.parquet", "bytes", make_parquet, use_table("images.parquet")),
    *(
        Reader(
            f"saved dataset, {name}",
            f"saved/train/{name}",
            form,
            make_saved,
            use_table("saved"),
            foreign=True,
        )
        for name, form in (
            ("data-00000-of-00001.arrow", "bytes"),
            ("dataset_info.json", "json"),
            ("state.json", "json"),
        )
    ),
)
