"""The page as text: self-contained, small, and safe whatever names it is given."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from made_up_report import full_report

from binas.base.errors import FileError
from binas.report.page import Reference, ReportData, embedded, render, write_report
from binas.space import load_space
from binas.testing.paper_example import paper_contributions, paper_costs

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


class Tags(HTMLParser):
    """Start tags with attributes, and the text of script elements."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)


@pytest.fixture(scope="module")
def text():
    return render(full_report())


def test_nothing_is_loaded_from_anywhere(text):
    for tag, attributes in Tags(text).tags:
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    assert "default-src 'none'" in text
    addresses = set(re.findall(r"https?://[^\s'\"<>)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_the_page_carries_its_numbers(text):
    numbers = json.loads(Tags(text).scripts[0])
    assert numbers["title"] == full_report().title
    assert numbers["frontier"]["networks"] == len(numbers["frontier"]["costs"])


def test_names_cannot_become_markup():
    data = replace(
        full_report(),
        title=HOSTILE,
        references=(Reference(HOSTILE, HOSTILE, 80.0, 1.0),),
        config=HOSTILE,
        commands=(HOSTILE,),
    )
    tags = Tags(render(data)).tags
    assert not [tag for tag, _ in tags if tag == "img"]
    assert len([tag for tag, _ in tags if tag == "script"]) == 2


def test_embedded_json_is_the_same_json():
    value = {"a": "<b> & \u2028 \u2029 </script>"}
    text = embedded(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_the_paper_s_frontier_fits_into_a_small_page():
    space = load_space("imagenet-mbconv")
    data = ReportData(space, paper_contributions(space), paper_costs(space), "latency")
    page = render(data)
    assert '"networks":6102' in page
    assert len(page) < 600_000


def test_the_file_is_written_whole_or_not_at_all(tmp_path, text):
    path = tmp_path / "new" / "report.html"
    write_report(full_report(), path)
    assert path.read_text(encoding="utf-8") == text
    assert [item.name for item in path.parent.iterdir()] == ["report.html"]
    with pytest.raises(FileError, match="as it was"):
        write_report(full_report(), path / "inside")
