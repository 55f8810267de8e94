"""The command line as a whole: help, exit codes, what is loaded, one JSON document wherever ``--json`` is offered."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from calling import answer, binas, fresh, refusal, said

from binas.cli.main import app
from binas.testing.paper_example import write_paper_example
from binas.version import __version__


def all_commands(group=app, prefix=()):
    for command in group.registered_commands:
        yield (*prefix, command.name or command.callback.__name__)
    for sub in group.registered_groups:
        yield from all_commands(sub.typer_instance, (*prefix, sub.name))


COMMANDS = list(all_commands())


def test_version():
    done = fresh("--version")
    assert (done.code, done.stdout.strip()) == (0, f"binas {__version__}")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command):
    text = said(*command, "--help")
    assert f"binas {' '.join(command)}" in text
    assert "Examples:" in text


def test_a_command_stands_there_once():
    assert len(set(COMMANDS)) == len(COMMANDS)


def test_old_words_are_gone():
    for word in ("evaluate-estimator", "contributions", "rivals"):
        assert binas(word, "--help").code == 2
    assert "--verify-on-device" not in said("search", "--help")


LIGHT = """
import json, sys
from pathlib import Path
from binas.cli.main import app
for words in json.loads(sys.argv[1]):
    sys.argv = ["binas", *words]
    try:
        app(standalone_mode=False)
    except SystemExit:
        pass
print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""
HEAVY = {"torch", "scipy", "onnx", "onnxruntime", "pyscipopt", "matplotlib", "pandas", "datasets", "kornia"}


def loaded(*commands: list[object]) -> set[str]:
    """The packages that commands in one process have loaded when they are done: to start one takes a second."""
    words = [[str(word) for word in command] for command in commands]
    command = [sys.executable, "-c", LIGHT, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_loads_nothing_heavy():
    assert loaded(["--help"], ["estimate", "--help"], ["measure", "--help"]) & HEAVY == set()


def test_questions_about_tables_load_nothing_heavy(example):
    asked = (["search", example], ["frontier", example], ["explain", example, "best"])
    assert loaded(*([*words, "-l", "latency=45ms", "--json"] for words in asked)) & HEAVY == set()


def test_the_status_of_a_run_loads_no_torch(finished_once):
    assert loaded(["status", finished_once]) & {"torch", "scipy"} == set()


def test_a_search_on_a_run_loads_no_torch(finished_once):
    assert "torch" not in loaded(["search", finished_once, "-l", "latency=40%", "--json"])


def change(name: str, old: str, new: str):
    """Damage one file of the example."""

    def damage(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return damage


def cut(folder: Path) -> None:
    text = (folder / "costs.json").read_text()
    (folder / "costs.json").write_text(text[: len(text) // 2])


BAD = {
    "bare number": (["-l", "latency=45"], None, "no unit"),
    "unit of another kind": (["-l", "latency=45MiB"], None, "bytes"),
    "unknown cost": (["-l", "energy=4mJ"], None, "no cost 'energy'"),
    "infeasible": (["-l", "latency=20ms"], None, "The smallest change that works"),
    "half a question": (["-l", "latency=45ms and"], None, "is no limit"),
    "unknown solver": (["--solver", "magic"], None, "search.solver: must be one of"),
    "truncated JSON": ([], cut, "not complete JSON"),
    "NaN": ([], change("costs.json", '"e3k3": ', '"e3k3": NaN, "x": '), "is nan"),
    "missing entry": ([], change("contributions.json", '"e6k5se"', '"e9"'), "e6k5se"),
    "wrong unit": ([], change("costs.json", '"ms"', '"parsecs"'), "parsecs"),
    "table of another space": (
        [],
        change("costs.json", '"fingerprint": "', '"fingerprint": "0'),
        "was made for",
    ),
    "YAML bomb": ([], lambda f: (f / "space.yaml").write_text("a: &a [x, x]\nb: [*a, *a]\n"), "aliases"),
    "not a space": ([], lambda f: (f / "space.yaml").write_text("name: x\n"), "stages"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_paragraph_and_exit_code_2(tmp_path, case):
    arguments, damage, words = BAD[case]
    write_paper_example(tmp_path)
    if damage is not None:
        damage(tmp_path)
    assert words in refusal("search", tmp_path, *(arguments or ["-l", "latency=45ms"]))


def test_a_process_of_its_own_ends_with_exit_code_2(example):
    done = fresh("search", example, "-l", "latency=20ms")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.strip().splitlines()) == 1


def test_other_bad_input(example, tmp_path):
    for arguments, words in [
        (["search", tmp_path / "nowhere"], "no folder"),
        (["explain", example, "e9k9-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3"], "unknown config 'e9k9'"),
        (["explain", example, "best", "-l", "latency=1ms"], "no best architecture"),
        (["frontier", example, "--plot", tmp_path / "f.gif"], ".html or .png"),
        (["frontier", example, "--cost", "energy"], "no cost 'energy'"),
        (["frontier", example, "--limit", "params=1k"], "alone is impossible"),
        (["space", "show", "no-such-space"], "neither a built-in"),
        (["status", tmp_path], "there is no run"),
        (["estimate", tmp_path], "there is no run"),
    ]:
        assert words in refusal(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_output_loses_nothing(example, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("keep me")
    assert "cannot write" in refusal("frontier", example, "--csv", blocked / "f.csv")
    assert blocked.read_text() == "keep me"


def test_a_reader_that_goes_away_is_no_error(example):
    command = f"{sys.executable} -m binas.cli.main frontier {example} --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


# One call of every command that offers --json; {x} are the folders of json_call below. Those that take time or a machine
# are asked with what they cost replaced, in the files named here.
ELSEWHERE = {
    "demo": "test_run_commands.py",
    "measure": "test_measure_command.py",
    "costs verify": "test_measure_command.py",
    "costs import": "test_costs_commands.py",
    "costs export-blocks": "test_costs_commands.py",
    "published": "test_comparing_commands.py",
    "predictors": "test_comparing_commands.py",
    "doctor": "test_measure_command.py",
    "shrink": "test_shrink_command.py",
}
JSON_CALLS = {
    "reproduce": "list",
    "train": "{run}",
    "estimate": "{run}",
    "sample": "{run}",
    "check": "{run}",
    "search": "{run}",
    "finetune": "{run}",
    "compare": "{run}",
    "export": "{run}",
    "report": "{run}",
    "run": "--out {run}",
    "status": "{run}",
    "evaluate": "{run} --arch lightest",
    "frontier": "{run}",
    "explain": "{run} best -l latency=40%",
    "insights": "{run}",
    "solvers": "",
    "methods": "{run} -l latency=40% --method darts --seeds 1 --budget 100",
    "costs show": "{run}/costs.json",
    "costs diff": "{run}/costs.json {run}/costs.json",
    "costs merge": "{run}/costs.json --out {new}/merged.json",
    "space list": "",
    "space show": "demo",
    "space count": "demo",
    "space sample": "demo",
    "space validate": "demo",
    "example": "paper {new}/example",
}


def offers_json() -> set[str]:
    """The commands that have the option."""

    def walk(group, prefix=()):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(command, (*prefix, name))
            elif any("--json" in parameter.opts for parameter in command.params):
                yield " ".join((*prefix, name))

    return set(walk(typer.main.get_command(app)))


def test_every_command_that_offers_json_is_asked():
    assert offers_json() == {*JSON_CALLS, *ELSEWHERE}
    for command, file in ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text()
        assert command.split()[-1] in text, (command, file)
        assert "answer(" in text, (command, file)


@pytest.mark.parametrize("command", JSON_CALLS)
def test_json_is_one_document_and_nothing_else(finished_once, tmp_path, command):
    more = JSON_CALLS[command].format(run=finished_once, new=tmp_path).split()
    assert answer(*command.split(), *more)


@pytest.mark.parametrize("given", [None, "3"])
def test_the_program_computes_with_one_thread_unless_told_otherwise(given):
    """Before NumPy and torch are loaded, which look at it once."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    script = "import binas.cli.main, os; print(os.environ['OMP_NUM_THREADS'])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment if given is None else {**environment, "OMP_NUM_THREADS": given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == (given or "1")
