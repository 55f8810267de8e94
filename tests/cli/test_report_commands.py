"""``binas insights`` and ``binas report`` as a user meets them."""

import json

import pytest
from typer.testing import CliRunner

from binas.base.errors import FileError, ProblemError, TableError
from binas.cli.main import app
from binas.testing.paper_example import write_paper_example

RUN = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("example")
    write_paper_example(made)
    return str(made)


def ok(*arguments: str) -> str:
    done = RUN.invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_insights_speak_and_rank(folder):
    text = ok("insights", folder)
    assert "Later stages gain more from depth 2 to 3: s5 +0.987 against s1 +0.328 points." in text
    assert "take its numbers as exact" in text
    assert "points per ms" in text
    assert "18 more with --json." in text


def test_insights_as_json_by_another_cost(folder):
    found = json.loads(ok("insights", folder, "--cost", "macs", "--json"))
    assert (found["cost"], found["unit"]) == ("macs", "MACs")
    assert found["depths"][0]["value"] == pytest.approx(0.327805)


@pytest.mark.parametrize(("cost", "message"), [("energy", "there is no cost"), ("peak_memory", "maximum")])
def test_costs_that_insights_cannot_use(folder, cost, message):
    with pytest.raises(TableError, match=message):
        RUN.invoke(app, ["insights", folder, "--cost", cost], catch_exceptions=False)


def test_a_report_with_figures_and_numbers(folder, tmp_path):
    page, figures = tmp_path / "page.html", tmp_path / "png"
    limits = ["--limit", "latency=45ms", "--limit", "params=5M"]
    found = json.loads(ok("report", folder, "--out", str(page), "--png", str(figures), *limits, "--json"))
    assert found["files"] == [
        str(page),
        *(str(figures / f"{n}.png") for n in ("frontier", "insights", "rules")),
    ]
    assert all(path.exists() for path in (page, figures / "frontier.png"))
    assert [item["limit"] for item in found["chosen"]] == ["latency <= 45 ms", "params <= 5 Mparams"]
    assert found["commands"][0].startswith(f"binas report {folder} --out {page} --png {figures}")
    assert found["commands"][0].endswith("--limit latency=45ms --limit params=5M")


def test_a_report_says_what_it_wrote(folder, tmp_path):
    text = ok("report", folder, "--out", str(tmp_path / "r.html"))
    assert "6102 best networks from 25.8977 ms to 99.5531 ms (exact)" in text
    assert f"wrote {tmp_path / 'r.html'}" in text


def test_the_default_place_is_the_folder(tmp_path):
    write_paper_example(tmp_path)
    ok("report", str(tmp_path))
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_bad_questions_write_nothing(folder, tmp_path):
    with pytest.raises(FileError, match=r"ends in \.html"):
        RUN.invoke(app, ["report", folder, "--out", str(tmp_path / "r.pdf")], catch_exceptions=False)
    arguments = ["report", folder, "--out", str(tmp_path / "r.html"), "--limit", "latency=1ms"]
    with pytest.raises(ProblemError, match="latency"):
        RUN.invoke(app, arguments, catch_exceptions=False)
    with pytest.raises(FileError, match="there is no folder"):
        RUN.invoke(app, ["report", str(tmp_path / "none")], catch_exceptions=False)
    assert not list(tmp_path.iterdir())
