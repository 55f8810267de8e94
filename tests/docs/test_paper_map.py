"""The paper map is true as far as reading can tell: what it names exists, and nothing of the paper is left out."""

import re
from functools import cache

import pytest
from pages import HOUSE

from binas.reproduce.studies import NAMES

MAP = HOUSE / "docs" / "reference" / "paper-map.md"
SOURCE = HOUSE / "src" / "binas"
PLACES = (HOUSE, SOURCE, SOURCE / "search")
FILE = re.compile(r"[\w/-]+(?:\.py|\.yaml|/)")
NAME = re.compile(r"(?:\w+\.)?\.?[A-Za-z]\w+")
VALUES = ("cn_r1_k1_s1_c960", "imagenet")  # of a published network, and a recipe: no names of the code
SPAN = re.compile(r"`([^`]+)`")
# The paper as its source counts: figures 9 to 12 and tables 3 and 4 are of the appendices.
FIGURES, ALGORITHMS, THEOREMS = range(1, 13), range(1, 5), ("3.1", "3.2", "3.3")
OF_APPENDICES = (
    "Cost of the method",
    "Table of the macro architecture",
    "Table of configurations",
    "Settings: population 100",
    "Training recipe",
    "Proof of theorem 3.1",
    "Closed form regression",
    "Theorem: convergence of BCFW",
    "Theorem: line search on bilinear objectives",
    "Lemma: zero curvature",
    "Relaxed multiple-choice knapsack",
    "Two lemmas: one non-one-hot vector, two non-zeros",
    "Transitivity of ranking correlations",
    "Averaging contributions",
)


def rows() -> list[dict[str, str]]:
    """The rows of tables that have a column for tests, by column."""
    found, header = [], []
    for line in MAP.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if "test" in cells:
            header = cells
        elif not cells:
            header = []
        elif header and set(cells) != {"---"}:
            found.append(dict(zip(header, cells, strict=True)))
    return found


ROWS = [pytest.param(row, id=next(iter(row.values()))[:40]) for row in rows()]


@cache
def defined() -> set[str]:
    """Every class, function, value and field of the package."""
    said = re.compile(r"^\s*(?:class|def) (\w+)|^\s*(\w+)(?:: [^=\n]+)?(?: =|$)|^\s*(\w+): ", re.M)
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    return {name for match in said.finditer(text) for name in match.groups() if name}


def missing_files(cell: str) -> list[str]:
    """Files and folders of a cell that are not there; one without a folder is beside the one before it."""
    missing, beside = [], HOUSE
    for name in (span for span in SPAN.findall(cell) if FILE.fullmatch(span)):
        there = [place / name for place in (beside, *PLACES) if (place / name).exists()]
        beside = there[0].parent if there else beside
        missing += [] if there else [name]
    return missing


def unknown_names(cell: str) -> list[str]:
    """Names of a cell that nothing in the package has."""
    spans = [span for span in SPAN.findall(cell) if NAME.fullmatch(span) and not FILE.fullmatch(span)]
    return [span for span in spans if span not in VALUES and span.rpartition(".")[2] not in defined()]


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_names_exists(row):
    for column in ("code", "test"):
        assert not missing_files(row[column])
        assert not unknown_names(row[column])


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_test_that_can_be_run(row):
    assert any(
        span.startswith(("tests/", "python benchmarks/")) for span in SPAN.findall(row["test"])
    ) or row["test"].startswith("the claim is tested")


def test_names_that_do_not_exist_are_found():
    assert missing_files("`search/matrices.py`, `problem.py`, `no_such.py`") == ["no_such.py"]
    assert unknown_names("`matrices.paper_form`, `PaperForm.no_such_thing`") == ["PaperForm.no_such_thing"]


def test_nothing_of_the_paper_is_left_out():
    text = MAP.read_text(encoding="utf-8")
    assert {int(number) for number in re.findall(r"[Ff]igure (\d+)", text)} == set(FIGURES)
    wanted = [f"Algorithm {n}" for n in ALGORITHMS] + [f"Theorem {n}" for n in THEOREMS]
    wanted += ["Table 1", "Table 2", "Problem (1)", "Bilinear program and its vector form", *OF_APPENDICES]
    assert not [item for item in wanted if item not in text]


@pytest.mark.parametrize("page", ["explanation/insights.md", "reference/paper-example.md"])
def test_insights_are_figure_8(page):
    """It was called figure 6 here, which is accuracy against latency."""
    text = (HOUSE / "docs" / page).read_text(encoding="utf-8")
    assert set(re.findall(r"[Ff]igure (\d+)", text)) == {"8"}


def test_every_experiment_is_in_the_map():
    text = MAP.read_text(encoding="utf-8")
    by_command = text.partition("## Tables and figures by command")[2]
    assert not [name for name in NAMES if f"`binas reproduce {name}`" not in by_command]
