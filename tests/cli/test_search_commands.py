"""``binas search``, ``frontier``, ``explain``, ``insights`` and ``solvers``: questions about tables."""

import json
import re
import shutil

import pytest
from calling import answer, binas, contents, refusal, said

from binas.run.folder import load
from binas.search.solvers import SOLVERS


@pytest.mark.parametrize("number", ["1e400", "1e305"])
def test_a_memory_limit_is_a_finite_number(example, number):
    assert "memory" in refusal("frontier", example, "--memory-limit", number)


@pytest.mark.parametrize("option", ["--tolerance", "--within", "--time-limit"])
def test_a_number_without_end_is_refused(example, option):
    command = "frontier" if option == "--tolerance" else "search"
    limit = ("-l", "latency=45ms")
    assert refusal(command, example, *limit, option, "1e400")


def test_an_explanation_in_no_time_says_that_it_is_not_of_the_best(example):
    limits = ("-l", "latency=30ms", "-l", "params=5M")
    assert answer("explain", example, "best", *limits, "--time-limit", 0)["feasible"]
    assert "stopped-with-answer" in said("explain", example, "best", *limits, "--time-limit", 0)
    assert "Time was up: of 25 of 25 decisions" in said("explain", example, "heaviest", "--time-limit", 0)


class TestSearch:
    def test_the_published_keys(self, example):
        found = answer("search", example, "--limit", "latency=45ms")
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
        text = said("search", example, "--limit", "latency=45ms")
        assert found["architecture"] in text
        assert "proven optimal" in text
        assert "1 ms more latency buys" in text

    def test_several_limits_and_alternatives(self, example):
        limits = ("-l", "latency=30ms", "-l", "params=5M", "-l", "macs>=120MMACs")
        found = answer("search", example, *limits, "--top", 4)
        assert found["costs"]["params"]["value"] <= 5e6
        assert found["costs"]["macs"]["lower_limit"] == 120e6
        assert len(found["alternatives"]) == 3
        accuracies = [item["accuracy"] for item in found["alternatives"]]
        assert accuracies == sorted(accuracies, reverse=True)
        assert accuracies[0] <= found["accuracy"]

    def test_all_within_some_points(self, example):
        question = ("search", example, "-l", "latency=45ms", "--within", 0.01)
        found = answer(*question)
        assert found["alternatives_complete"]
        least = found["accuracy"] - 0.01
        assert all(least <= item["accuracy"] <= found["accuracy"] for item in found["alternatives"])
        assert "also good" in said(*question)

    @pytest.mark.parametrize("solver", ["milp", "frontier", "evolution", "random"])
    def test_a_named_solver(self, example, solver):
        best = answer("search", example, "-l", "latency=45ms")["accuracy"]
        found = answer("search", example, "-l", "latency=45ms", "--solver", solver, "--seed", 1)
        assert found["solver"] == solver
        assert found["accuracy"] <= best + 1e-9

    def test_the_answer_as_a_file(self, example, tmp_path):
        out = tmp_path / "best.json"
        found = answer("search", example, "-l", "latency=45ms", "--out", out)
        written = json.loads(out.read_text())
        assert {**written, "seconds": 0} == {**found, "seconds": 0}

    def test_infeasible_as_json_still_answers(self, example):
        done = binas("search", example, "-l", "latency=20ms", "--json")
        assert done.code == 2
        found = json.loads(done.stdout)
        assert found["status"] == "infeasible"
        least = found["infeasible"]["extremes"]["latency"]["least"]
        assert least > 20
        assert found["infeasible"]["relaxations"][0]["value"] == pytest.approx(least)

    def test_an_explanation_says_that_the_machine_was_busy(self, example, tmp_path):
        shutil.copytree(example, tmp_path / "busy")
        path = tmp_path / "busy" / "costs.json"
        table = json.loads(path.read_text())
        table["costs"]["latency"]["provenance"]["disturbance"] = 0.3
        path.write_text(json.dumps(table))
        sentence = "The machine was busy while latency was measured"
        assert sentence in said("explain", tmp_path / "busy", "best", "-l", "latency=45ms")
        assert sentence not in said("explain", example, "best", "-l", "latency=45ms")

    def test_answers_show_what_they_are_for(self, example):
        shown = said("search", example, "-l", "latency=45ms@batch=1,threads=1,device=xeon")
        assert "Intel Xeon (as in the paper), 1 thread, batch 1, float32" in shown
        assert "latency measured on: Intel Xeon" in said("frontier", example)

    @pytest.mark.parametrize("command", ["search", "frontier", "explain"])
    def test_limits_meant_for_something_else_are_refused(self, example, command):
        more = ["best"] if command == "explain" else []
        message = refusal(command, example, *more, "-l", "latency=45ms@batch=64")
        assert "latency is wanted for batch 64, but the table is of batch 1" in message


def same(found):
    """What an answer says, whoever gives it: architecture, accuracy and costs."""
    costs = {name: cost["value"] for name, cost in found["costs"].items()}
    return found["architecture"], found["accuracy"], costs


class TestOneGrammar:
    """``latency=25%`` and ``a and b`` mean the same wherever a limit can be written."""

    @pytest.fixture(scope="class")
    @classmethod
    def limits(cls, finished_once):
        """A limit in percent, and one that its answer does not keep: fewer parameters."""
        alone = answer("search", finished_once, "-l", "latency=60%")
        return "latency=60%", f"params<={alone['costs']['params']['value'] - 1:g}params"

    @pytest.fixture(scope="class")
    @classmethod
    def asked(cls, finished_once, limits):
        return answer("search", finished_once, "-l", limits[0], "-l", limits[1])

    def test_the_second_limit_matters(self, finished_once, limits, asked):
        assert answer("search", finished_once, "-l", limits[0])["architecture"] != asked["architecture"]
        assert asked["costs"]["params"]["value"] <= asked["costs"]["params"]["limit"]

    def test_joined_by_and(self, finished_once, limits, asked):
        assert same(answer("search", finished_once, "-l", " and ".join(limits))) == same(asked)

    def test_as_the_readme_writes_it(self, finished, tmp_path):
        apart = answer("search", finished, "-l", "latency=25%", "-l", "params<=300k")
        assert same(answer("search", finished, "-l", "latency=25% and params<=300k")) == same(apart)
        assert same(
            answer("search", finished, "--limits", "latency=25% and params<=300k")["networks"][0]
        ) == same(apart)

    def test_as_the_run_s_own_question(self, finished, limits, asked):
        question = " and ".join(limits)
        found = answer("search", finished, "--limits", question)
        (entry,) = found["networks"]
        assert entry["question"] == question
        assert same(entry) == same(asked)
        assert f"- {question}" in (finished / "config.yaml").read_text()

    def test_in_a_configuration(self, finished, limits, asked):
        question = " and ".join(limits)
        answer("search", finished, "--set", f"search.limits=[{question}]")
        (path,) = (finished / "results").iterdir()
        assert same(json.loads(path.read_text())) == same(asked)

    def test_in_a_report(self, finished_once, tmp_path, limits, asked):
        page = tmp_path / "page.html"
        found = answer("report", finished_once, "-l", " and ".join(limits), "--out", page)
        chosen = [item for item in found["chosen"] if " and " in item["limit"]]
        assert [item["architecture"] for item in chosen] == [asked["architecture"]]

    def test_in_an_explanation(self, finished_once, limits, asked):
        for form in (("-l", limits[0], "-l", limits[1]), ("-l", " and ".join(limits))):
            found = answer("explain", finished_once, "best", *form)
            assert (found["architecture"], found["feasible"]) == (asked["architecture"], True)
            assert found["accuracy"] == pytest.approx(asked["accuracy"])

    def test_on_a_frontier(self, finished_once, limits, asked):
        found = answer("frontier", finished_once, "--cost", "latency", "-l", limits[1])
        most = asked["costs"]["latency"]["limit"]
        at = [point for point in found["points"] if point["cost"] <= most][-1]
        assert at["accuracy"] == pytest.approx(asked["accuracy"])

    def test_percent_on_the_paper_s_tables(self, example):
        joined = answer("search", example, "-l", "latency=5% and params<=3.5M")
        assert same(joined) == same(answer("search", example, "-l", "latency=5%", "-l", "params<=3.5M"))
        assert all(price["gain"] > 0 for price in joined["price"])  # both bind
        least, most = load(example).costs["latency"].range(load(example).space)
        assert joined["costs"]["latency"]["limit"] == pytest.approx(least + 0.05 * (most - least))


class TestSearchOfARun:
    def test_a_question_touches_nothing(self, finished, tmp_path):
        before = contents(finished)
        answer("search", finished, "-l", "latency=40%", "--seed", 3, "--out", tmp_path / "best.json")
        said("search", finished, "--top", 2)
        assert contents(finished) == before

    def test_without_a_question_it_is_the_step(self, finished):
        before = contents(finished)
        found = answer("search", finished)
        assert (found["task"], found["done"]) == ("search", [])
        assert [item["question"] for item in found["networks"]] == ["latency=30%", "latency=70%"]
        assert "was done already" in said("search", finished)
        assert contents(finished) == before

    def test_the_run_s_estimator_is_believed_and_can_be_another(self, finished):
        chosen = json.loads((finished / "estimator.json").read_text())["chosen"]
        other = "additive-log" if chosen != "additive-log" else "additive"
        usual = answer("search", finished, "-l", "latency=50%")
        assert (
            usual["accuracy"]
            != answer("search", finished, "-l", "latency=50%", "--estimator", other)["accuracy"]
        )
        assert f"the estimator {chosen}" in said("explain", finished, "best", "-l", "latency=50%")
        assert "search.estimator: must be auto or one of" in refusal("search", finished, "--estimator", "x")


class TestFrontier:
    def test_json_csv_and_pictures(self, example, tmp_path):
        csv, html, png = (tmp_path / name for name in ("f.csv", "f.html", "f.png"))
        found = answer("frontier", example, "--cost", "latency", "--csv", csv, "--plot", html)
        assert found["exact"] is True
        assert (found["cost"], found["unit"]) == ("latency", "ms")
        costs = [point["cost"] for point in found["points"]]
        assert costs == sorted(costs)
        best = answer("search", example, "-l", "latency=45ms")
        at = [point for point in found["points"] if point["cost"] <= 45.0][-1]
        assert at["architecture"] == best["architecture"]
        lines = csv.read_text().splitlines()
        assert lines[0] == "latency_ms,accuracy_percent,architecture"
        assert len(lines) == len(costs) + 1
        page = html.read_text()
        assert "<html" in page
        assert not re.search(r"<(script|link)[^>]+(src|href)=.?https?:", page)
        assert f"wrote {png}" in said("frontier", example, "--plot", png)
        assert png.read_bytes().startswith(b"\x89PNG")

    def test_another_limit(self, example):
        found = answer("frontier", example, "--cost", "latency", "--limit", "params=4M")
        best = answer("search", example, "-l", "latency=40ms", "-l", "params=4M")
        at = [point for point in found["points"] if point["cost"] <= 40.0][-1]
        assert at["accuracy"] == pytest.approx(best["accuracy"], abs=1e-9)

    def test_without_any_network(self, example):
        done = binas("frontier", example, "--limit", "params=1k", "--json")
        assert done.code == 2
        assert json.loads(done.stdout)["infeasible"]


class TestPercentOfAModel:
    """In a run of ``binas shrink`` a percentage is of what the model costs, whichever command is asked."""

    @pytest.fixture
    def shrunk(self, example, tmp_path):
        folder = shutil.copytree(example, tmp_path / "shrunk")
        (folder / "config.yaml").write_text(json.dumps({"train": {"start": "weights.safetensors"}}))
        return folder

    def test_all_commands_mean_the_same(self, example, shrunk):
        half = answer("search", example, "-l", "latency=0.5x")
        for found in (
            answer("search", shrunk, "-l", "latency=50%"),
            answer("explain", shrunk, "best", "-l", "latency=50%"),
            answer("frontier", shrunk, "--cost", "macs", "-l", "latency=50%")["points"][-1],
        ):
            assert found["architecture"] == half["architecture"]
        assert answer("search", example, "-l", "latency=50%")["architecture"] != half["architecture"]


class TestExplain:
    def test_networks_are_named_as_in_other_commands(self, example, tmp_path):
        heaviest = answer("explain", example, "heaviest")
        assert heaviest["architecture"] == answer("search", example)["architecture"]  # no limit: all of it
        file = tmp_path / "heaviest.json"
        file.write_text(json.dumps(heaviest))
        assert answer("explain", example, file) == heaviest
        assert answer("explain", example, "lightest")["accuracy"] < heaviest["accuracy"]

    def test_the_best(self, example):
        best = answer("search", example, "-l", "latency=45ms")
        found = answer("explain", example, best["architecture"], "-l", "latency=45ms")
        assert found["accuracy"] == best["accuracy"]
        assert found["feasible"] is True
        kinds = [item["kind"] for item in found["decisions"]]
        assert kinds.count("depth") == 5
        within = [item["best_alternative_within_limits"] for item in found["decisions"]]
        assert all(item["accuracy"] <= 1e-9 for item in within if item)
        text = said("explain", example, "best", "-l", "latency=45ms")
        assert best["architecture"] in text
        assert "s5 block 1" in text

    def test_every_written_form(self, example):
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
        found = {answer("explain", example, form)["architecture"] for form in (block, compact, as_json)}
        assert found == {compact}


class TestInsights:
    def test_they_speak_and_rank(self, example):
        text = said("insights", example)
        assert "Later stages gain more from depth 2 to 3: s5 +0.987 against s1 +0.328 points." in text
        assert "take its numbers as exact" in text
        assert "points per ms" in text
        assert "18 more with --json." in text

    def test_json_by_another_cost(self, example):
        found = answer("insights", example, "--cost", "macs")
        assert (found["cost"], found["unit"]) == ("macs", "MACs")
        assert found["depths"][0]["value"] == pytest.approx(0.327805)

    @pytest.mark.parametrize(
        ("cost", "message"), [("energy", "there is no cost"), ("peak_memory", "maximum")]
    )
    def test_costs_that_cannot_be_used(self, example, cost, message):
        assert message in refusal("insights", example, "--cost", cost)


def test_solvers_lists_all():
    found = answer("solvers")
    assert [item["name"] for item in found] == list(SOLVERS)
    assert all(item["available"] or "pip install" in item["missing"] for item in found)
    text = said("solvers")
    assert all(name in text for name in SOLVERS)
