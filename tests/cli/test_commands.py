"""The command line as a user meets it: a fresh process for each call."""

import json
import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from binas.cli.main import app
from binas.search.solvers import SOLVERS
from binas.testing.paper_example import write_paper_example
from binas.version import __version__


def binas(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-m", "binas.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **more)


def answer(*arguments: str):
    """The JSON a command prints."""
    done = binas(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("example")
    write_paper_example(made)
    return str(made)


def test_version():
    assert binas("--version").stdout.strip() == f"binas {__version__}"


def all_commands(group=app, prefix=()):
    for command in group.registered_commands:
        yield (*prefix, command.name or command.callback.__name__)
    for sub in group.registered_groups:
        yield from all_commands(sub.typer_instance, (*prefix, sub.name))


@pytest.mark.parametrize("command", list(all_commands()), ids=" ".join)
def test_every_command_has_help_with_an_example(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert f"binas {' '.join(command)}" in result.output
    assert "Examples:" in result.output


def test_example_writes_a_folder_and_keeps_what_is_there(tmp_path):
    done = binas("example", "paper", str(tmp_path / "new"))
    assert done.returncode == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "space.yaml",
        "contributions.json",
        "costs.json",
    }
    (tmp_path / "new" / "costs.json").write_text("mine")
    again = binas("example", "paper", str(tmp_path / "new"))
    assert again.returncode == 2
    assert "already holds" in again.stderr
    assert (tmp_path / "new" / "costs.json").read_text() == "mine"
    assert binas("example", "paper", str(tmp_path / "new"), "--overwrite").returncode == 0


def test_search_answers_with_the_published_keys(folder):
    found = answer("search", folder, "--limit", "latency=45ms")
    assert found["status"] == "optimal"
    assert found["gap"] == 0.0
    assert found["bound"] == pytest.approx(found["accuracy"])
    assert found["costs"]["latency"]["value"] <= 45.0
    assert found["costs"]["latency"]["limit"] == 45.0
    assert found["costs"]["latency"]["unit"] == "ms"
    assert found["costs"]["latency"]["conditions"]["batch"] == 1
    assert "conditions" not in found["costs"]["params"]
    assert {"accuracy_stderr", "seconds", "solver", "alternatives", "architecture"} <= set(found)
    assert found["price"][0]["gain"] > 0
    text = binas("search", folder, "--limit", "latency=45ms").stdout
    assert found["architecture"] in text
    assert "proven optimal" in text
    assert "1 ms more latency buys" in text


def test_search_with_several_limits_and_alternatives(folder):
    found = answer(
        "search", folder, "-l", "latency=45ms", "-l", "params=5M", "-l", "macs>=150MMACs", "--top", "4"
    )
    assert found["costs"]["params"]["value"] <= 5e6
    assert found["costs"]["macs"]["lower_limit"] == 150e6
    assert len(found["alternatives"]) == 3
    accuracies = [item["accuracy"] for item in found["alternatives"]]
    assert accuracies == sorted(accuracies, reverse=True)
    assert accuracies[0] <= found["accuracy"]


def test_search_within(folder):
    found = answer("search", folder, "-l", "latency=45ms", "--within", "0.01")
    assert found["alternatives_complete"]
    assert all(
        found["accuracy"] - 0.01 <= item["accuracy"] <= found["accuracy"] for item in found["alternatives"]
    )
    assert "also good" in binas("search", folder, "-l", "latency=45ms", "--within", "0.01").stdout


@pytest.mark.parametrize("solver", ["milp", "frontier", "evolution", "random"])
def test_search_with_a_named_solver(folder, solver):
    best = answer("search", folder, "-l", "latency=45ms")["accuracy"]
    found = answer("search", folder, "-l", "latency=45ms", "--solver", solver, "--seed", "1")
    assert found["solver"] == solver
    assert found["accuracy"] <= best + 1e-9


def test_frontier_to_json_csv_and_pictures(folder, tmp_path):
    csv, html, png = (str(tmp_path / name) for name in ("f.csv", "f.html", "f.png"))
    found = answer("frontier", folder, "--cost", "latency", "--csv", csv, "--plot", html)
    assert found["exact"] is True
    assert (found["cost"], found["unit"]) == ("latency", "ms")
    costs = [point["cost"] for point in found["points"]]
    assert costs == sorted(costs)
    best = answer("search", folder, "-l", "latency=45ms")
    at = [point for point in found["points"] if point["cost"] <= 45.0][-1]
    assert at["architecture"] == best["architecture"]
    lines = (tmp_path / "f.csv").read_text().splitlines()
    assert lines[0] == "latency_ms,accuracy_percent,architecture"
    assert len(lines) == len(costs) + 1
    page = (tmp_path / "f.html").read_text()
    assert page.startswith("<!doctype html>")
    assert not re.search(r"<(script|link)[^>]+(src|href)=.?https?:", page)
    assert binas("frontier", folder, "--plot", png).returncode == 0
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_frontier_with_another_limit(folder):
    found = answer("frontier", folder, "--cost", "latency", "--limit", "params=4M")
    best = answer("search", folder, "-l", "latency=40ms", "-l", "params=4M")
    at = [point for point in found["points"] if point["cost"] <= 40.0][-1]
    assert at["accuracy"] == pytest.approx(best["accuracy"], abs=1e-9)


def test_explain(folder):
    best = answer("search", folder, "-l", "latency=45ms")
    found = answer("explain", folder, best["architecture"], "-l", "latency=45ms")
    assert found["accuracy"] == best["accuracy"]
    assert found["feasible"] is True
    kinds = [item["kind"] for item in found["decisions"]]
    assert kinds.count("depth") == 5
    assert all(
        item["best_alternative_within_limits"]["accuracy"] <= 1e-9
        for item in found["decisions"]
        if item["best_alternative_within_limits"]
    )
    text = binas("explain", folder, "best", "-l", "latency=45ms").stdout
    assert best["architecture"] in text
    assert "s5 block 1" in text


def test_explain_reads_every_form(folder):
    block = (
        "[['ds_r1_k3_s1_e1_c16_nre'], "
        + ", ".join(
            f"['ir_r1_k3_s{s}_e3_c{c}{n}', 'ir_r1_k3_s1_e3_c{c}{n}']"
            for s, c, n in ((2, 24, "_nre"), (2, 40, "_nre"), (2, 80, ""), (1, 112, ""), (2, 192, ""))
        )
        + ", ['cn_r1_k1_s1_c960']]"
    )
    compact = "_".join(["e3k3-e3k3"] * 5)
    as_json = json.dumps({"format": "binas/architecture", "version": 1, "stages": [["e3k3", "e3k3"]] * 5})
    found = {answer("explain", folder, form)["architecture"] for form in (block, compact, as_json)}
    assert found == {compact}


def test_solvers_lists_all(folder):
    found = answer("solvers")
    assert [item["name"] for item in found] == list(SOLVERS)
    assert all(item["available"] or "pip install" in item["missing"] for item in found)
    text = binas("solvers").stdout
    assert all(name in text for name in SOLVERS)


def test_space_commands(tmp_path):
    assert {item["name"] for item in answer("space", "list")} >= {
        "imagenet-mbconv",
        "ofa-mbv3",
        "nas-bench-macro",
        "demo",
    }
    assert answer("space", "count", "imagenet-mbconv")["architectures"] == 22608**5
    assert binas("space", "count", "nas-bench-macro").stdout.strip() == "3969"
    shown = answer("space", "show", "demo")
    path = tmp_path / "again.yaml"
    fingerprint = shown.pop("fingerprint")
    path.write_text(json.dumps(shown))
    assert answer("space", "validate", str(path))["fingerprint"] == fingerprint
    one, two = (answer("space", "sample", "demo", "--count", "3", "--seed", "5") for _ in range(2))
    assert one == two
    assert len(one) == 3
    assert "ir_r1_k" in binas("space", "sample", "demo", "--form", "blocks").stdout
    assert "s1" in binas("space", "show", "demo").stdout
    assert "is valid" in binas("space", "validate", "demo").stdout


def test_schemas_are_printed():
    for kind in ("space", "contributions", "costs"):
        schema = json.loads(binas("schema", kind).stdout)
        assert schema["$schema"].startswith("https://json-schema.org")


def break_file(folder, name, change):
    path = folder / name
    path.write_text(change(path.read_text()))


BAD = {
    "bare number": (["-l", "latency=45"], None, "no unit"),
    "unit of another kind": (["-l", "latency=45MiB"], None, "bytes"),
    "unknown cost": (["-l", "energy=4mJ"], None, "no cost 'energy'"),
    "infeasible": (["-l", "latency=20ms"], None, "The smallest change that works"),
    "unknown solver": (["--solver", "magic"], None, "no solver 'magic'"),
    "truncated JSON": ([], ("costs.json", lambda t: t[: len(t) // 2]), "not complete JSON"),
    "NaN": ([], ("costs.json", lambda t: t.replace('"e3k3": ', '"e3k3": NaN, "x": ', 1)), "is nan"),
    "missing entry": ([], ("contributions.json", lambda t: t.replace('"e6k5se"', '"e9"', 1)), "e6k5se"),
    "wrong unit": ([], ("costs.json", lambda t: t.replace('"ms"', '"parsecs"', 1)), "parsecs"),
    "table of another space": (
        [],
        ("costs.json", lambda t: t.replace('"fingerprint": "', '"fingerprint": "0')),
        "was made for",
    ),
    "YAML bomb": ([], ("space.yaml", lambda t: "a: &a [x, x]\nb: [*a, *a]\n"), "aliases"),
    "not a space": ([], ("space.yaml", lambda t: "name: x\n"), "stages"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_paragraph_and_exit_code_2(tmp_path, case):
    arguments, damage, words = BAD[case]
    write_paper_example(tmp_path)
    if damage is not None:
        break_file(tmp_path, *damage)
    done = binas("search", str(tmp_path), *(arguments or ["-l", "latency=45ms"]))
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_other_bad_input(folder, tmp_path):
    for arguments, words in [
        (["search", str(tmp_path / "nowhere")], "no folder"),
        (["explain", folder, "e9k9-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3_e3k3-e3k3"], "unknown config 'e9k9'"),
        (["explain", folder, "best", "-l", "latency=1ms"], "no best architecture"),
        (["frontier", folder, "--plot", str(tmp_path / "f.gif")], ".html or .png"),
        (["frontier", folder, "--cost", "energy"], "no cost 'energy'"),
        (["frontier", folder, "--limit", "params=1k"], "alone is impossible"),
        (["space", "show", "no-such-space"], "neither a built-in"),
    ]:
        done = binas(*arguments)
        assert done.returncode == 2, arguments
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_unwritable_output_loses_nothing(folder, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("keep me")
    done = binas("frontier", folder, "--csv", str(blocked / "f.csv"))
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert blocked.read_text() == "keep me"


def test_infeasible_as_json_still_answers(folder):
    done = binas("search", folder, "-l", "latency=20ms", "--json")
    assert done.returncode == 2
    found = json.loads(done.stdout)
    assert found["status"] == "infeasible"
    assert found["infeasible"]["extremes"]["latency"]["least"] > 20
    assert found["infeasible"]["relaxations"][0]["value"] == pytest.approx(
        found["infeasible"]["extremes"]["latency"]["least"]
    )


def test_a_reader_that_goes_away_is_no_error(folder):
    command = f"{sys.executable} -m binas.cli.main frontier {folder} --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
