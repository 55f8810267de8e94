"""Options made of settings: a task declares what can be set, its command offers it.

An option changes the run's setting as ``--set TASK.NAME=VALUE`` would. Settings that have parts of their own
(``train.heaviest``) have no option; ``--set`` reaches them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from binas.base.errors import ConfigError
from binas.base.files import parse_yaml
from binas.base.progress import Progress, Terminal
from binas.tasks._base import Task

Command = Callable[..., None]
Model = TypeVar("Model", bound=BaseModel)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Redo = Annotated[
    bool,
    typer.Option("--redo", help="Set aside what is there, and do it again; RUN/old/ keeps it."),
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
Plot = Annotated[
    Path | None, typer.Option(help="Draw predicted against measured networks to FILE.html or FILE.png.")
]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a run.", metavar="RUN")]


def examples(*lines: str) -> str:
    """The epilog of a command: examples that can be copied."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def show_progress(quiet: bool, as_json: bool) -> Progress:
    """Progress for people, where somebody looks."""
    return Progress() if quiet or as_json else Terminal()


def with_settings(task: Task) -> Callable[[Command], Command]:
    """Give a command an option for every plain setting of a task; it receives what was given as ``changes``."""
    fields = dict(_plain_fields(task.settings))

    def changes(given: dict[str, Any]) -> dict[str, Any]:
        named = {f"{task.name}.{name}": (fields[name], given[name]) for name in fields}
        values = [(name, _value(name, *item)) for name, item in named.items() if item[1] is not None]
        return {"changes": [*values, *(given["set_"] or ())]}

    more = inspect.Parameter("set_", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Set)
    return _offer([*(_parameter(name, field) for name, field in fields.items()), more], changes, task.does)


def with_options(model: type[Model]) -> Callable[[Command], Command]:
    """Give a command an option for every field of a model; it receives the checked model as ``settings``."""
    fields = dict(_plain_fields(model))

    def settings(given: dict[str, Any]) -> dict[str, Any]:
        values = {
            name: _value(_flag(name, field), field, given[name])
            for name, field in fields.items()
            if given[name] is not None
        }
        try:
            return {"settings": model.model_validate(values)}
        except ValidationError as error:
            wrong = error.errors()[0]
            name = str(wrong["loc"][0])
            message = wrong["msg"].replace("Input should be", "must be")
            raise ConfigError(f"{_flag(name, fields[name])}: {message}, got {wrong['input']!r}.") from error

    return _offer([_parameter(name, field) for name, field in fields.items()], settings)


def _offer(
    options: list[inspect.Parameter], deliver: Callable[[dict[str, Any]], dict[str, Any]], does: str = ""
) -> Callable[[Command], Command]:
    """Add options to a command; what ``deliver`` makes of them are arguments of the command."""
    names = {item.name for item in options}

    def wrap(command: Command) -> Command:
        def called(**given: Any) -> None:
            own = {name: value for name, value in given.items() if name not in names}
            command(**own, **deliver(given))

        kept = inspect.signature(command, eval_str=True).parameters
        handed = {"changes", "settings"}
        parameters = [*(item for name, item in kept.items() if name not in handed), *options]
        plain = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in parameters]
        called.__signature__ = inspect.Signature(plain)  # type: ignore[attr-defined]
        called.__annotations__ = {item.name: item.annotation for item in plain}
        called.__name__, called.__doc__ = command.__name__, command.__doc__ or does
        return called

    return wrap


def _flag(name: str, field: FieldInfo) -> str:
    """``--time-limit`` for ``time_limit``; a field that has a title of its own is called by it."""
    return f"--{(field.title or name).replace('_', '-')}"


def _plain_fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Settings that are single values or lists of them."""
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        if not any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
            yield name, field


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    """The option of one setting; its default is 'as the run has it'."""
    flag = _flag(name, field)
    shown = "" if field.is_required() else f" [{_shown(field.default)}]"
    text = field.description or ""
    description = text[:1].upper() + text[1:]
    many = get_origin(field.annotation) is tuple
    kind: Any = list[str] | None if many else str | None
    if field.annotation is bool:
        option = typer.Option(f"{flag}/--no-{flag[2:]}", help=f"{description}{shown}", show_default=False)
        kind = bool | None
    else:
        help_text = f"{description}{' Repeatable.' if many else ''}{shown}"
        option = typer.Option(flag, help=help_text, metavar=_metavar(field), show_default=False)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )


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
