"""Replies: data for programs, text for people, an error after the data."""

import json

import pytest
import typer
from typer.testing import CliRunner

from binas.base.errors import BinasError
from binas.base.progress import Progress, Terminal
from binas.cli.options import command
from binas.cli.output import Reply, table_of_known


def test_programs_get_data_and_people_text(capsys):
    reply = Reply({"a": 1}, lambda: print("one"))
    reply.give(as_json=False)
    assert capsys.readouterr().out == "one\n"
    reply.give(as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_an_error_comes_after_the_data_and_instead_of_the_text(capsys):
    reply = Reply({"a": None}, lambda: print("one"), BinasError("no answer"))
    with pytest.raises(BinasError, match="no answer"):
        reply.give(as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": None}
    with pytest.raises(BinasError, match="no answer"):
        reply.give(as_json=False)
    assert capsys.readouterr().out == ""


def test_columns_without_anything_known_are_left_out(capsys):
    table_of_known(("name", "variant", "value"), [("a", "-", "1"), ("b", "-", "-")])
    shown = capsys.readouterr().out
    assert "variant" not in shown
    assert "value" in shown
    table_of_known(("name",), [])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("typed", "kind"), [([], Terminal), (["--quiet"], Progress), (["--json"], Progress)])
def test_progress_is_told_to_people_only(typed, kind):
    app, seen = typer.Typer(), []

    @command(app, "work", "binas work")
    def work(progress=None) -> Reply:
        """Work."""
        seen.append(type(progress))
        return Reply({})

    assert CliRunner().invoke(app, typed).exit_code == 0
    assert seen == [kind]
    assert isinstance(work(), Reply)  # the function itself stays one


def test_what_replies_nothing_has_no_json():
    app = typer.Typer()

    @command(app, "write", "binas write")
    def write() -> None:
        """Write."""

    assert "--json" not in CliRunner().invoke(app, ["--help"]).output
    assert CliRunner().invoke(app, ["--json"]).exit_code == 2
