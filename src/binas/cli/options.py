"""Commands and their options: a function becomes a command, its settings become options.

A command returns a :class:`Reply`; ``--json`` and printing are added here, and ``--quiet`` where it takes a ``progress``. A
task's options change the run's settings as ``--set TASK.NAME=VALUE`` would; settings that have parts of their own
(``train.heaviest``) have no option, ``--set`` reaches them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from binas.base.errors import ConfigError
from binas.base.files import parse_yaml
from binas.base.progress import Progress, Terminal
from binas.cli.output import Reply
from binas.tasks._base import Task

Command = Callable[..., Any]
Function = TypeVar("Function", bound=Command)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Redo = Annotated[
    bool, typer.Option("--redo", help="Set aside what is there, and do it again; RUN/old/ keeps it.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting, e.g. train.heaviest.epochs=3."),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        "-l",
        help="COST=QUANTITY, e.g. latency=45ms, or latency=25% of the range; >= for a lower limit; "
        "latency=45ms@batch=1,device=pixel refuses a table of anything else. Repeatable: all are kept.",
    ),
]
Dir = Annotated[
    Path, typer.Argument(help="A run, or a folder with space.yaml, contributions and costs.", metavar="DIR")
]
Ask = Annotated[Path | None, typer.Option(help="Ask for once: write to this file, leave the run alone.")]
Plot = Annotated[
    Path | None, typer.Option(help="Draw predicted against measured networks to FILE.html or FILE.png.")
]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a run.", metavar="RUN")]
Space = Annotated[str, typer.Argument(help="Name of a built-in space, or a YAML file.", metavar="SPACE")]


def command(
    app: typer.Typer, name: str, *examples: str, options: Callable[[Command], Command] | None = None
) -> Callable[[Function], Function]:
    """Make a function a command, with examples to copy; ``options`` are those of a task or a model."""
    epilog = "Examples:\n\n" + "\n\n".join(f"  {line}" for line in examples)

    def add(function: Function) -> Function:
        answering = _answer(function)
        app.command(name, epilog=epilog)(answering if options is None else options(answering))
        return function

    return add


def _answer(function: Command) -> Command:
    """The function with ``--json``, and ``--quiet`` for its progress; one that replies nothing has neither."""
    declared = signature(function, eval_str=True)
    if declared.return_annotation is None:
        return function
    works = "progress" in declared.parameters

    def call(given: dict[str, Any]) -> None:
        as_json, quiet = given.pop("as_json"), given.pop("quiet", False)
        if works:
            given["progress"] = Progress() if quiet or as_json else Terminal()
        reply: Reply | None = function(**given)
        if reply is not None:  # a helper of several processes says nothing
            reply.give(as_json)

    added = [_option("quiet", Quiet, False)] if works else []
    return _replace(function, "progress", [*added, _option("as_json", Json, False)], call)


def with_settings(task: Task) -> Callable[[Command], Command]:
    """Give a command an option for every plain setting of a task; it receives what was given as ``changes``."""
    fields = dict(_plain_fields(task.settings))
    options = [*(_setting(name, field) for name, field in fields.items()), _option("set_", Set, None)]

    def wrap(function: Command) -> Command:
        def call(given: dict[str, Any]) -> None:
            more = given.pop("set_") or ()
            values = _typed(given, {name: (f"{task.name}.{name}", field) for name, field in fields.items()})
            changes = [(f"{task.name}.{name}", value) for name, value in values.items()]
            function(**given, changes=[*changes, *more])

        return _replace(function, "changes", options, call)

    return wrap


def with_options(model: type[BaseModel]) -> Callable[[Command], Command]:
    """Give a command an option for every field of a model; it receives the checked model as ``settings``."""
    fields = dict(_plain_fields(model))
    flags = {name: (_flag(name, field), field) for name, field in fields.items()}

    def wrap(function: Command) -> Command:
        def call(given: dict[str, Any]) -> None:
            values = _typed(given, flags)
            try:
                settings = model.model_validate(values)
            except ValidationError as error:
                wrong = error.errors()[0]
                message = wrong["msg"].replace("Input should be", "must be")
                flag = flags[str(wrong["loc"][0])][0]
                raise ConfigError(f"{flag}: {message}, got {wrong['input']!r}.") from error
            function(**given, settings=settings)

        return _replace(function, "settings", [_setting(*item) for item in fields.items()], call)

    return wrap


def _typed(given: dict[str, Any], fields: dict[str, tuple[str, FieldInfo]]) -> dict[str, Any]:
    """Take the options of settings out of what was given; the values of those that were typed."""
    typed = {name: given.pop(name) for name in fields}
    return {name: _value(*fields[name], value) for name, value in typed.items() if value is not None}


def _replace(
    function: Command, name: str, options: Sequence[Parameter], call: Callable[[dict[str, Any]], None]
) -> Command:
    """The function with options instead of the parameter ``name``; ``call`` makes one of the other."""

    def called(**given: Any) -> None:
        call(given)

    own = signature(function, eval_str=True).parameters.values()
    plain = [item.replace(kind=Parameter.KEYWORD_ONLY) for item in own if item.name != name]
    plain += options
    called.__signature__ = Signature(plain)  # type: ignore[attr-defined]
    called.__annotations__ = {item.name: item.annotation for item in plain}
    called.__name__, called.__doc__ = function.__name__, function.__doc__
    return called


def _option(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _setting(name: str, field: FieldInfo) -> Parameter:
    """The option of one setting; its default is 'as the run has it'."""
    flag, text = _flag(name, field), field.description or ""
    shown = "" if field.is_required() else f" [{_shown(field.default)}]"
    many, switch = get_origin(field.annotation) is tuple, field.annotation is bool
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if switch else flag,
        help=f"{text[:1].upper()}{text[1:]}{' Repeatable.' if many else ''}{shown}",
        metavar=None if switch else _metavar(field),
        show_default=False,
    )
    kind: Any = bool if switch else list[str] if many else str
    return _option(name, Annotated[kind | None, option], None)


def _flag(name: str, field: FieldInfo) -> str:
    """``--time-limit`` for ``time_limit``; a field that has a title of its own is called by it."""
    return f"--{(field.title or name).replace('_', '-')}"


def _plain_fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Settings that are single values or lists of them."""
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        if not any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
            yield name, field


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _metavar(field: FieldInfo) -> str:
    """What may be written, for the help."""
    leaves = [leaf for leaf in _leaves(field.annotation) if leaf is not type(None)]
    choices = [choice for leaf in leaves if get_origin(leaf) is Literal for choice in get_args(leaf)]
    if choices:
        return "|".join(map(str, choices))
    names = [leaf.__name__.upper() for leaf in leaves if isinstance(leaf, type)]
    return {"STR": "TEXT", "INT": "INTEGER"}.get(names[0], names[0]) if names else "VALUE"


def _leaves(kind: Any) -> list[Any]:
    """The types a setting is made of: of ``tuple[int, ...] | None`` int and NoneType."""
    if get_origin(kind) is Literal or not get_args(kind):
        return [kind]
    return [leaf for inner in get_args(kind) if inner is not Ellipsis for leaf in _leaves(inner)]


def _value(name: str, field: FieldInfo, given: Any) -> Any:
    """What was typed as the value of a setting; the configuration checks it."""
    if isinstance(given, list):
        return [_value(name, field, item) for item in given]
    leaves = _leaves(field.annotation)
    if not isinstance(given, str) or (given == "none" and type(None) in leaves):
        return None if isinstance(given, str) else given
    is_text = any(leaf in (str, Path) or get_origin(leaf) is Literal for leaf in leaves)
    return given if is_text else parse_yaml(given, name).data
