"""What can be checked by reading: links lead somewhere, named files exist, commands have the options that are written."""

import csv
import json
import re
import shlex
import tomllib

import jsonschema
import pytest
import typer
import yaml
from markdown.extensions.toc import slugify
from pages import HOUSE, blocks, commands, prose, spans, written_pages

from binas.cli.main import app
from binas.space import space_from_data
from binas.space.rules import NetworkRules
from binas.tables.schema import SCHEMAS, schema

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)
NAMED = re.compile(r"(?:tests|benchmarks|tools|configs|docs|src)/[\w./-]+\.(?:py|md|yaml|png)")
PLACEHOLDER = re.compile(r"^(?:\.\.\.|[A-Z_]+\|.*)$")
PAGES = [pytest.param(page, id=str(page.relative_to(HOUSE))) for page in written_pages()]
COMMAND = typer.main.get_command(app)
USAGE = typer.BadParameter.__mro__[1]  # UsageError, of the click that typer uses


def anchors(page):
    """The anchors of a page; headings are kept such that every renderer makes the same of them."""
    return {
        slugify(re.sub(r"[`*]", "", title), "-")
        for title in HEADING.findall(page.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    wrong = []
    for target in LINK.findall(prose(page)):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (page.parent / file).resolve() if file else page
        generated = to.is_relative_to(HOUSE / "docs" / "reference" / "api")
        if not to.exists() or (anchor and not generated and anchor not in anchors(to)):
            wrong.append(target)
    assert not wrong


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    named = {found for span in spans(page) for found in NAMED.findall(span)}
    assert not [name for name in sorted(named) if not (HOUSE / name).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_commands_have_the_options_that_are_written(page):
    written = [words for block in blocks(page) if block.language == "bash" for words in commands(block)]
    for span in spans(page):
        if span.startswith("binas "):
            written.append(shlex.split(span.replace("`", "")))
    wrong = [fault for words in written if words[0] == "binas" for fault in faults(words[1:])]
    assert not wrong


def faults(words):
    """What a command line says that the command does not know."""
    words = [word for word in words if not PLACEHOLDER.match(word)]
    command, names = COMMAND, []
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        chosen = words.pop(0)
        names.append(chosen)
        choices = chosen.split("|")
        unknown = [
            name for name in choices if name not in command.commands and name not in ("TASK", "COMMAND")
        ]
        if unknown or choices[0] not in command.commands:
            return [f"no command {' '.join(names)}"] if unknown else []
        command = command.commands[choices[0]]
    words = words[: words.index(">")] if ">" in words else words
    try:
        command.make_parser(command.context_class(command)).parse_args(list(words))
    except USAGE as error:
        said = f"binas {' '.join(names)}: {error.format_message()}"
        return (
            [] if said.endswith("requires an argument.") else [said]
        )  # prose names options without their values
    return [f"{key}: no such setting" for key in keys(words) if not is_setting(key)]


def test_what_is_not_there_is_found():
    assert faults(["search", "DIR", "--limitz", "latency=45ms"])
    assert faults(["serch", "DIR"])
    assert faults(["run", "--out", "RUN", "--set", "train.epochs=3"])
    assert not faults(["space", "list|show", "demo"])
    assert not faults(["run", "--out", "RUN", "--set", "train.heaviest.epochs=3"])


def keys(words):
    """The settings that --set names."""
    return [words[at + 1].partition("=")[0] for at, word in enumerate(words[:-1]) if word == "--set"]


def is_setting(key):
    reference = (HOUSE / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    return f"| `{key}`" in reference or key.isupper() or key in ("key", "part.setting", "PART.SETTING")


@pytest.mark.parametrize("page", PAGES)
def test_data_in_blocks_can_be_read(page):
    readers = {"json": read_json, "toml": tomllib.loads, "yaml": read_yaml, "csv": read_csv}
    for block in blocks(page):
        if block.language in readers and block.run:
            readers[block.language](block.text)


def read_json(text):
    """A file of ours is held to its schema."""
    data = json.loads(text)
    kind = str(data.get("format", "")).removeprefix("binas/") if isinstance(data, dict) else ""
    if kind in SCHEMAS:
        jsonschema.validate(data, schema(kind))


def read_csv(text):
    """Every row has the columns of the first."""
    first, *rows = csv.reader(text.splitlines())
    assert rows
    assert {len(row) for row in rows} == {len(first)}


def read_yaml(text):
    """A space is built, rules and parts of a configuration are checked by what reads them."""
    from binas.run.config import config_model

    data = yaml.safe_load(text)
    if data.get("format") == "binas/space":
        space_from_data(data)
    elif set(data) == {"rules"}:
        NetworkRules.model_validate(data["rules"])
    elif set(data) <= set(config_model().model_fields):
        config_model().model_validate(data)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_json, '{"format": "binas/costs", "version": 1, "costs": {"latency": {"units": "ms"}}}'),
        (read_yaml, "rules: {padding: some}"),
        (read_csv, "key,value\na,1,ms"),
    ],
)
def test_wrong_data_is_found(read, text):
    with pytest.raises((AssertionError, ValueError, jsonschema.ValidationError)):
        read(text)


def test_the_readme_is_short():
    lines = (HOUSE / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert (HOUSE / "docs" / "images" / "report.png").stat().st_size < 200_000


def test_every_page_of_the_site_is_in_its_navigation():
    nav = (HOUSE / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = [path.relative_to(HOUSE / "docs").as_posix() for path in (HOUSE / "docs").rglob("*.md")]
    assert sorted(re.findall(r"[\w/.-]+\.md", nav)) == sorted(
        page for page in pages if not page.startswith("reproduction/")
    )
