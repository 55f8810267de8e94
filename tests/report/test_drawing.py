import pytest

from binas.report.numbers import drawing
from binas.space import load_space
from binas.space.space import Config, SearchSpace, Stage


def space_of(*configs):
    return SearchSpace("made-up", (Stage("s1", (1,), (configs,)),))


def test_the_paper_s_space_has_width_glyph_and_badge():
    parts = drawing(load_space("imagenet-mbconv"))
    assert (parts["width"], parts["most"], parts["glyph"], parts["badges"]) == (
        "expansion",
        6.0,
        "kernel",
        ["se"],
    )


def test_names_are_the_fallback():
    parts = drawing(space_of(Config("a"), Config("b")))
    assert parts == {"width": None, "most": 1.0, "glyph": None, "badges": [], "words": []}


def test_other_options_are_words_and_switches_badges():
    parts = drawing(space_of(Config("a", (("act", "re"), ("skip", True), ("rate", 0.5)))))
    assert (parts["words"], parts["badges"]) == (["act", "rate"], ["skip"])


@pytest.mark.parametrize("kernel", [11, 3.5, "3x3", True, 0])
def test_a_kernel_that_is_no_small_whole_number_is_no_grid_of_dots(kernel):
    assert drawing(space_of(Config("a", (("kernel", kernel),))))["glyph"] is None


def test_some_configs_may_lack_an_option():
    parts = drawing(load_space("nas-bench-macro"))
    assert (parts["width"], parts["glyph"], parts["words"]) == ("expansion", "kernel", ["op"])
