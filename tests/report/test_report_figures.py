from made_up_report import SPACE, contributions, costs, full_report
from PIL import Image

from binas.report.data import ReportData
from binas.report.figures import write_figures


def test_every_figure_is_a_picture(tmp_path):
    paths = write_figures(full_report(), tmp_path / "figures")
    assert [path.stem for path in paths] == [
        "frontier",
        "insights",
        "rules",
        "formula",
        "prediction",
        "training",
        "time",
    ]
    for path in paths:
        with Image.open(path) as picture:
            assert picture.format == "PNG"
            assert min(picture.size) > 500
            assert len(picture.convert("L").getcolors()) > 20  # not an empty sheet


def test_figures_without_numbers_are_left_out(tmp_path):
    paths = write_figures(
        ReportData(SPACE, contributions(), costs(), "latency", title="costs $5_0$"), tmp_path
    )
    assert [path.name for path in paths] == ["frontier.png", "insights.png", "rules.png"]
