"""Attacks that once worked, each a test: hangs, floods of memory, tracebacks, and wrong files that were accepted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import readers
import torch
from PIL import Image
from readers import (
    PLAN,
    QUESTION,
    described,
    make_answers,
    make_checkpoint,
    make_journal,
    run_of,
    space,
    use_answers,
    use_checkpoint,
)
from safetensors.torch import load, save

from binas.base import files, packed
from binas.base.errors import (
    BinasError,
    CheckpointError,
    ConfigError,
    DataError,
    FileError,
    MeasureError,
    ModelError,
    ProblemError,
    SpaceError,
    TableError,
    UnitError,
)
from binas.base.files import MAX_JSON_VALUES, parse_json, parse_yaml, read_json, read_yaml
from binas.base.identity import file_digest
from binas.base.lines import append_line, read_lines
from binas.base.rows import MAX_CELLS, parse_rows
from binas.costs.journal import Journal
from binas.data import decoding
from binas.data.arrays import from_arrays, read_npz
from binas.data.decoding import PixelBudget, decode
from binas.run.config import load_config
from binas.run.log import log_event
from binas.run.records import read_record
from binas.search.limits import parse_limits
from binas.space import load_space, space_from_data, space_from_yaml
from binas.space.files import space_to_data
from binas.supernet.weights import check_recorded, read_weights
from binas.tables import costs
from binas.tables.contributions import contributions_from_data
from binas.tables.costs import costs_from_data
from binas.tables.spreadsheet import HEADER, contributions_data_from_csv, costs_data_from_csv
from binas.training.checkpoint import load_checkpoint, save_checkpoint


@pytest.fixture
def _no_guard() -> Iterator[None]:
    """As in the program, which may print numbers of any length."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.usefixtures("_no_guard")
class TestNumbers:
    def test_endless_whole_numbers(self) -> None:
        digits = "7" * 2_000_000  # minutes, if they were converted
        with pytest.raises(FileError, match="2000000 digits, 7777"):
            parse_json(f'{{"a": {digits}}}', "file")
        with pytest.raises(FileError, match="line 1: a number of 2000000 digits"):
            parse_yaml(f"a: {digits}", "file")
        with pytest.raises(FileError, match="2000000 digits"):
            load_config(None, [f"data.seed={digits}"])

    def test_numbers_to_the_base_60(self) -> None:
        with pytest.raises(FileError, match="to the base 60"):
            parse_yaml("a: " + "1:" * 500_000 + "1", "file")
        assert parse_yaml("a: '1:30'").data == {"a": "1:30"}

    @pytest.mark.parametrize("text", ["010", "-017", "0_7"])
    def test_numbers_to_the_base_8(self, text: str) -> None:
        with pytest.raises(FileError, match=f"line 1: YAML reads {text} as a number to the base 8"):
            parse_yaml(f"a: {text}", "file")
        assert parse_yaml("a: '010'\nb: 0\nc: 0.5\nd: 0x10").data == {"a": "010", "b": 0, "c": 0.5, "d": 16}

    @pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "1e308", "-1e308", "NaN"])
    def test_tables(self, number: str) -> None:
        contributions, latency = readers.contributions(), readers.plain_costs()
        for table, values, read in (
            (contributions, contributions.values, contributions_from_data),
            (latency, latency["latency"].values, costs_from_data),
        ):
            text, value = json.dumps(table.to_data()), json.dumps(float(values.configs[0][0][0]))
            assert value in text
            with pytest.raises((TableError, FileError)):
                read(parse_json(text.replace(value, number, 1), "table", allow_nan=True), space(), "table")

    @pytest.mark.parametrize("value", [10**299, 1e308, 10**7, -1, 0])
    def test_sizes_of_a_space(self, value: float) -> None:
        for key in ("resolution", "channels", "classes", "features"):
            with pytest.raises(SpaceError, match=key):
                space_from_data({**space_to_data(space()), key: value})

    @pytest.mark.parametrize(
        "change",
        [
            "train.heaviest.learning_rate=1e300",
            "train.heaviest.learning_rate=1.0e+300",
            "train.heaviest.learning_rate=.inf",
            "data.size=1.0e+308",
            "estimate.passes=1" + "0" * 299,
        ],
    )
    def test_settings(self, change: str) -> None:
        with pytest.raises((ConfigError, FileError)):
            load_config(None, [change])

    @pytest.mark.parametrize("text", ["latency=1e400ms", f"latency={'9' * 400}x", f"latency={'9' * 400}%"])
    def test_limits(self, text: str) -> None:
        with pytest.raises((UnitError, ProblemError)):
            parse_limits(text, space(), readers.plain_costs().costs)


class TestSize:
    def test_many_wrong_values_are_counted_not_compared(self) -> None:
        wrong = {**space_to_data(space()), "stages": [{"name": i} for i in range(30_000)]}
        with pytest.raises(SpaceError, match=r"\d+ values are not what they should be") as caught:
            space_from_data(wrong)
        assert len(str(caught.value)) < 1000

    def test_a_small_file_of_a_huge_space(self) -> None:
        lists = json.dumps({name: list(range(10)) for name in "abcd"})
        stages = "\n".join(f"  - {{name: s{i}, depths: [1], configs: {lists}}}" for i in range(300))
        with pytest.raises(SpaceError, match="3000000 configs together; at most 250000"):
            space_from_yaml(f"format: binas/space\nversion: 1\nname: huge\nstages:\n{stages}\n")

    def test_too_many_values(self) -> None:
        with pytest.raises(FileError, match="more than 100000 values"):
            parse_yaml("[" + "1," * 100_001 + "]", "file")
        with pytest.raises(FileError, match="more than 5000000 values"):
            parse_json("[" + "," * MAX_JSON_VALUES + "]", "file")

    def test_nesting(self) -> None:
        with pytest.raises(FileError, match="nested more than 40 levels"):
            parse_json("[" * 60 + "]" * 60, "file")

    def test_a_packed_bomb_of_images(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path, bomb = tmp_path / "bomb.npz", np.zeros((400, 100, 100), np.uint8)
        np.savez_compressed(path, images=bomb, labels=np.arange(400) % 2)
        monkeypatch.setattr(packed, "PLAIN_BYTES", 10**6)
        with pytest.raises(FileError, match=r"unpacks to .* of a file of its size"):
            read_npz(path)

    def test_recorded_pairs_that_unpack_to_much(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "pairs.npz"
        np.savez_compressed(path, images=np.zeros((400, 3, 32, 32), np.float32), logits=np.zeros((400, 4)))
        monkeypatch.setattr(packed, "PLAIN_BYTES", 10**6)
        with pytest.raises(FileError, match=r"unpacks to .* of a file of its size"):
            check_recorded(described(), path)

    @pytest.mark.parametrize(
        ("shape", "says"), [((2, 3, 4000, 32), "sides of 8 to 128"), ((2, 1, 32, 32), r"\(n, 3, h, w\)")]
    )
    def test_recorded_images_of_other_shapes(self, tmp_path: Path, shape: tuple[int, ...], says: str) -> None:
        np.savez_compressed(tmp_path / "pairs.npz", images=np.zeros(shape, np.uint8), logits=np.zeros((2, 4)))
        with pytest.raises(ModelError, match=says):
            check_recorded(described(), tmp_path / "pairs.npz")

    def test_recorded_logits_that_agree_with_everything(self, tmp_path: Path) -> None:
        logits = np.full(
            (2, 4), 1e300
        )  # in float32 no finite number, and any difference is within a part of it
        np.savez(tmp_path / "pairs.npz", images=np.zeros((2, 3, 32, 32)), logits=logits)
        with pytest.raises(ModelError, match="not finite"):
            check_recorded(described(), tmp_path / "pairs.npz")

    def test_packed_weights_that_unpack_to_much(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plain, path = tmp_path / "plain.pth", tmp_path / "bomb.pth"
        torch.save({"w": torch.zeros(10**6)}, plain)
        with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for name in source.namelist():
                made.writestr(name, source.read(name))
        monkeypatch.setattr(packed, "PLAIN_BYTES", 10**6)
        with pytest.raises(FileError, match=r"bomb\.pth unpacks to 4\d+ bytes"):
            read_weights(path)

    def test_a_weight_that_is_one_number_many_times(self, tmp_path: Path) -> None:
        torch.save({"w": torch.zeros(1).expand(10**11)}, tmp_path / "wide.pth")
        with pytest.raises(FileError, match="unpacks to 400000000000 bytes"):
            read_weights(tmp_path / "wide.pth")

    @pytest.mark.parametrize("weight", [torch.eye(3).to_sparse(), torch.zeros(3, device="meta")])
    def test_weights_without_numbers(self, tmp_path: Path, weight: torch.Tensor) -> None:
        torch.save({"w": weight}, tmp_path / "w.pth")
        with pytest.raises(ModelError, match="sparse or has no numbers"):
            read_weights(tmp_path / "w.pth")

    def test_large_images_wait_for_one_another(self) -> None:
        budget, most, now = PixelBudget(100), [0], [0]
        lock = threading.Lock()

        def decode() -> None:
            with budget.taken(40):
                with lock:
                    now[0] += 40
                    most[0] = max(most[0], now[0])
                with lock:
                    now[0] -= 40

        threads = [threading.Thread(target=decode) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most[0] <= 80
        assert budget.free == 100
        with budget.taken(1000):  # larger than the budget: alone
            assert budget.free == 0

    @pytest.mark.slow
    @pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="only Linux tells the most memory taken"
    )
    def test_many_threads_that_decode_large_images_share_one_gigabyte(self, tmp_path: Path) -> None:
        Image.new("RGB", (8192, 8192)).save(tmp_path / "black.png")
        script = (
            "import sys; from concurrent.futures import ThreadPoolExecutor; from pathlib import Path\n"
            "from binas.data.decoding import decode\n"
            "with ThreadPoolExecutor(16) as pool:\n"
            "    list(pool.map(lambda _: decode(Path(sys.argv[1]), (32, 32), 3), range(16)))\n"
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        command = [sys.executable, "-c", script, str(tmp_path / "black.png")]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        assert int(found.stdout) < 2**20  # KiB; what getrusage says begins with that of the parent

    def test_wide_characters_in_a_large_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "wide.json").write_text('["' + "a" * 5000 + '\U0001f600"]')
        monkeypatch.setattr(files, "MAX_TEXT_BYTES", 10_000)
        with pytest.raises(FileError, match="5005 characters and wide ones among them"):
            read_json(tmp_path / "wide.json")

    def test_many_directives_of_yaml(self) -> None:
        tags = "".join(f"%TAG !{i}! tag:x\n" for i in range(30))
        with pytest.raises(FileError, match="more than 10 lines that start with %"):
            parse_yaml(f"{tags}--- 1", "file")
        assert parse_yaml("%YAML 1.1\n---\na: 1").data == {"a": 1}

    def test_too_many_cells(self) -> None:
        for text in ("," * (MAX_CELLS + 1), "\n" * (MAX_CELLS + 1)):
            with pytest.raises(FileError, match="more than 5000000 cells"):
                next(parse_rows(text, "file"))

    def test_blocks_that_are_not_there_take_no_memory(self) -> None:
        rows = "".join(f"a,ms,config,s{i},1000,x,1,,\n" for i in range(300))
        tracemalloc.start()
        with pytest.raises(TableError, match="stage s0: there are rows of block 1000, but none of block 1"):
            costs_data_from_csv(",".join(HEADER) + "\na,ms,fixed,,,,1,,\n" + rows, "file")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 5 * 2**20  # 20 MB, if a thousand blocks were made of each row

    def test_names_without_end_are_not_all_said(self) -> None:
        names = "".join(f"{'n' * 2000}{i},ms,base,,,,1,,\n" for i in range(200))
        for read in (costs_data_from_csv, contributions_data_from_csv):
            with pytest.raises(TableError) as caught:
                read(",".join(HEADER) + "\n" + names, "file")
            assert len(str(caught.value)) < 10_000

    def test_costs_are_not_read_on_once_too_much_is_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []
        one = costs._read_cost
        monkeypatch.setattr(costs, "_read_cost", lambda name, *rest: read.append(name) or one(name, *rest))
        data = {"format": "binas/costs", "version": 1}
        entry = {"unit": "ms", "fixed": 1.0, "depths": {}, "configs": {}}
        with pytest.raises(TableError, match=r"and \d+ more"):
            costs_from_data(data | {"costs": {f"a{i}": entry for i in range(5000)}}, space(), "file")
        assert len(read) < 1100

    def test_a_jpeg_of_many_scans(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Image.effect_noise((64, 64), 50).save(tmp_path / "x.jpg", progressive=True)
        assert decode(tmp_path / "x.jpg", (8, 8), 3).shape == (3, 8, 8)
        monkeypatch.setattr(decoding, "MAX_SCANS", 3)
        with pytest.raises(decoding.UnreadableError, match="progressive JPEG of 6 scans; at most 3"):
            decode(tmp_path / "x.jpg", (8, 8), 3)

    @pytest.mark.parametrize("shape", [f"({10**30},)", f"({10**400}, 8)"])
    def test_arrays_of_a_shape_that_no_machine_counts_to(self, tmp_path: Path, shape: str) -> None:
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}\n".encode()
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as made:
            made.writestr("images.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        with pytest.raises(FileError, match=r"cannot read .*x\.npz"):
            read_npz(tmp_path / "x.npz")


class TestFiles:
    @pytest.fixture(params=["pipe", "/dev/zero", "folder"])
    def strange(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        """Something that is no regular file, where a file is expected."""
        path = tmp_path / "steps" / "measure.json"
        path.parent.mkdir()
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "folder":
            path.mkdir()
        else:
            path.symlink_to(request.param)
        return path

    def test_only_regular_files_are_read(self, strange: Path) -> None:
        for read in (read_json, read_yaml, read_lines, file_digest, load_space):
            with pytest.raises(FileError, match="not a regular file"):
                read(strange)
        with pytest.raises(FileError, match="not a regular file"):
            read_record(strange.parent.parent, "measure")

    @pytest.mark.parametrize("name", ["pairs.npz", "pairs.safetensors", "w.safetensors", "w.pth"])
    def test_pipes_among_weights_and_pairs_are_not_waited_for(self, tmp_path: Path, name: str) -> None:
        os.mkfifo(tmp_path / name)
        with pytest.raises(FileError, match="not a regular file"):
            check_recorded(described(), tmp_path / name) if name.startswith("p") else read_weights(
                tmp_path / name
            )

    def test_a_log_is_not_followed_through_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "precious").write_text("mine\n")
        (tmp_path / "log.jsonl").symlink_to(tmp_path / "precious")
        with pytest.raises(FileError, match="it is a link"):
            log_event(tmp_path, "started", "measure")
        assert (tmp_path / "precious").read_text() == "mine\n"
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FileError, match="cannot write"):
            append_line(tmp_path / "pipe", {})

    def test_class_names_that_are_no_text(self) -> None:
        images, labels = np.zeros((10, 4, 4), np.uint8), np.arange(10) % 2
        for names in (np.array([b"\xff", b"a"]), np.array(["\ud800", "a"])):
            with pytest.raises(DataError, match="not text"):
                from_arrays(images, labels, classes=names)

    def test_half_of_a_surrogate_pair(self) -> None:
        with pytest.raises(FileError, match="surrogate"):
            parse_json('{"a": "\\ud800"}', "file")
        assert parse_json('{"a": "\\ud83d\\ude00"}', "file") == {"a": "😀"}


@pytest.mark.parametrize("kind", ["results", "rivals"])
@pytest.mark.parametrize(
    "damage", ["[]", "{}", "null", '{"question": 1}', "[" * 2000, "", "\x00", '"x"', "1e999"]
)
def test_answers_and_comparisons_of_any_content(tmp_path: Path, kind: str, damage: str) -> None:
    make_answers(tmp_path)
    (tmp_path / kind / "latency-50pct.json").write_text(damage)
    with pytest.raises(BinasError, match="latency-50pct"):
        use_answers(tmp_path)
    assert run_of(tmp_path).questions == (QUESTION,)


def test_a_comparison_with_a_rival_that_is_not_there(tmp_path: Path) -> None:
    make_answers(tmp_path)
    path = tmp_path / "rivals" / "latency-50pct.json"
    data = json.loads(path.read_text())
    data["random"] = []
    path.write_text(json.dumps(data))
    with pytest.raises(FileError, match="not listed"):
        use_answers(tmp_path)


def _changed(folder: Path, change: dict[str, Any], without: tuple[str, ...] = ()) -> None:
    """The checkpoint with other tensors, its hash right."""
    found = load_checkpoint(folder, "progress")
    tensors = {name: value for name, value in {**found.tensors, **change}.items() if name not in without}
    save_checkpoint(folder, "progress", load(save(tensors)), found.values)


@pytest.mark.parametrize(
    ("change", "without", "message"),
    [
        ({}, ("generator",), "lacks the state of the random generator"),
        ({"generator": torch.zeros(3)}, (), "random generator"),
        ({"generator": torch.zeros(5056, dtype=torch.uint8)}, (), "random generator"),
        ({"optimizer.0.momentum_buffer": torch.zeros(1, 1)}, (), "optimizer"),
        ({"optimizer.9.momentum_buffer": torch.zeros(1)}, (), "optimizer"),
        ({"optimizer.x.momentum_buffer": torch.zeros(1)}, (), "optimizer"),
        ({"network.0.weight": torch.zeros(1)}, (), "do not fit this network"),
        ({}, ("network.0.weight",), "do not fit this network"),
    ],
)
def test_crafted_checkpoints(
    tmp_path: Path, change: dict[str, Any], without: tuple[str, ...], message: str
) -> None:
    make_checkpoint(tmp_path)
    use_checkpoint(tmp_path)
    _changed(tmp_path, change, without)
    with pytest.raises(CheckpointError, match=message):
        use_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, '{"control": 1, "a": 2, "b": 3, "other": 1}'),
        (1, '{"a": 2, "b": 3}'),
        (4, '["other", 0.1, 0.3]'),
        (4, '["a", 0.1, 0.01]'),
        (4, '["a", 1e300, 0.3]'),
        (4, '["a", true, 0.3]'),
    ],
)
def test_journals_with_what_is_not_measured(tmp_path: Path, line: int, text: str) -> None:
    make_journal(tmp_path)
    lines = (tmp_path / "journal").read_text().splitlines()
    assert len(Journal.open(tmp_path / "journal", PLAN).samples) == 6
    lines[line] = text
    (tmp_path / "journal").write_text("\n".join(lines) + "\n")
    with pytest.raises(MeasureError, match="--redo"):
        Journal.open(tmp_path / "journal", PLAN)
