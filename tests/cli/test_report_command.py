"""``binas report``: the page of a run or of tables, and pages of one's own."""

import json

from calling import answer, contents, refusal, said

from binas.testing.paper_example import write_paper_example


def test_a_page_with_figures_and_numbers(example, tmp_path):
    page, figures = tmp_path / "page.html", tmp_path / "png"
    limits = ["--limit", "latency=45ms", "--limit", "params=5M"]
    found = answer("report", example, "--out", page, "--png", figures, *limits)
    drawn = [str(figures / f"{name}.png") for name in ("frontier", "insights", "rules")]
    assert found["files"] == [str(page), *drawn]
    assert all(path.exists() for path in (page, figures / "frontier.png"))
    assert [item["limit"] for item in found["chosen"]] == ["latency <= 45 ms", "params <= 5 Mparams"]
    assert found["commands"][0].startswith(f"binas report {example} --out {page} --png {figures}")
    assert found["commands"][0].endswith("--limit latency=45ms --limit params=5M --json")


def test_what_was_written_is_said(example, tmp_path):
    text = said("report", example, "--out", tmp_path / "r.html")
    assert "6102 best networks from 25.8977 ms to 99.5531 ms (exact)" in text
    assert f"wrote {tmp_path / 'r.html'}" in text


def test_the_default_place_is_the_folder(tmp_path):
    write_paper_example(tmp_path)
    said("report", tmp_path)
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_bad_questions_write_nothing(example, tmp_path):
    assert "ends in .html" in refusal("report", example, "--out", tmp_path / "r.pdf")
    question = ("report", example, "--out", tmp_path / "r.html")
    assert "latency" in refusal(*question, "--limit", "latency=1ms")
    assert "there is no folder" in refusal("report", tmp_path / "none")
    assert not list(tmp_path.iterdir())


class TestOfARun:
    def test_it_names_the_networks(self, finished_once):
        page = (finished_once / "report.html").read_text()
        for path in (finished_once / "results").iterdir():
            assert json.loads(path.read_text())["architecture"] in page

    def test_a_question_adds_to_what_the_run_found(self, finished, tmp_path):
        before = contents(finished)
        found = answer("report", finished, "-l", "latency=90% and macs=95%", "--out", tmp_path / "r.html")
        limits = [item["limit"] for item in found["chosen"]]
        assert len(limits) == 3
        assert limits[-1].startswith("latency <= ")
        assert " and macs <= " in limits[-1]
        assert contents(finished) == before

    def test_another_cost_is_a_setting_of_the_run(self, finished):
        assert answer("report", finished, "--cost", "macs")["done"] == ["report"]
        assert answer("report", finished, "--cost", "macs")["done"] == []
        assert answer("report", finished, "--cost", "none")["done"] == []  # that of before is used again

    def test_a_question_says_where_its_page_goes(self, finished):
        before = contents(finished)
        assert "--out" in refusal("report", finished, "-l", "latency=40%")
        assert contents(finished) == before


def test_the_figures_of_a_run_s_own_page(finished, tmp_path):
    """The page is the run's step and stays; only figures are new."""
    before = contents(finished)
    found = answer("report", finished, "--png", tmp_path / "png")
    assert found["done"] == []
    assert str(tmp_path / "png" / "frontier.png") in found["drawn"]
    assert contents(finished) == before
    assert "--out FILE.html" in refusal("report", finished, "--limit", "latency=50%")
