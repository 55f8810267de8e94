import pytest
from test_calibrate import SPACE, isolated, networks

from binas.base.errors import FileError
from binas.costs.verify import check_formula
from binas.report.verification_plot import plot_verification, verification_html


@pytest.fixture(scope="module")
def cost():
    fit, held_out = (networks(isolated(), 0.9, (-0.03,) * 3, 0.4, n, 0.02, n) for n in (14, 20))
    return check_formula(SPACE, isolated(), fit, held_out)


def test_every_network_is_on_the_page(cost):
    page = verification_html(cost)
    for check in cost.provenance.verification.checks:
        assert check.architecture.replace("_", "\\u003cbr\\u003e") in page


def test_files(cost, tmp_path):
    plot_verification(cost, tmp_path / "check.html")
    assert "<html>" in (tmp_path / "check.html").read_text()
    plot_verification(cost, tmp_path / "check.png")
    assert (tmp_path / "check.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FileError, match=r"\.html or \.png"):
        plot_verification(cost, tmp_path / "check.pdf")


def test_a_table_that_was_not_verified_cannot_be_drawn(tmp_path):
    with pytest.raises(FileError, match="binas costs verify"):
        plot_verification(isolated(), tmp_path / "check.html")
