"""``binas space list|show|count|sample|validate``, ``binas schema`` and ``binas example``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from binas.cli.options import Json, examples
from binas.cli.output import print_json, say, table

Source = Annotated[str, typer.Argument(help="Name of a built-in space, or a YAML file.", metavar="SPACE")]

spaces = typer.Typer(help="Look at search spaces.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the main application."""
    app.add_typer(spaces, name="space")
    app.command("schema", epilog=examples("binas schema costs > costs.schema.json"))(print_schema)
    app.command(
        "example", epilog=examples("binas example paper example", "binas search example --limit latency=45ms")
    )(write_example)


def print_schema(
    kind: Annotated[
        Literal["space", "contributions", "costs", "samples"], typer.Argument(help="Which file.")
    ],
) -> None:
    """Print the JSON Schema of a binas file."""
    from binas.tables.schema import schema

    print_json(schema(kind))


@spaces.command("list", epilog=examples("binas space list", "binas space list --json"))
def list_spaces(as_json: Json = False) -> None:
    """List the built-in spaces."""
    from binas.space.files import builtin_names, load_space

    found = [load_space(name) for name in builtin_names()]
    if as_json:
        print_json([{"name": s.name, "description": s.description, "architectures": s.count} for s in found])
        return
    rows = [(s.name, f"{s.count:.3g}", str(s.alpha_size + s.beta_size), s.description) for s in found]
    table(("space", "architectures", "binaries", "description"), rows)


@spaces.command(
    "show", epilog=examples("binas space show imagenet-mbconv", "binas space show my-space.yaml --json")
)
def show(space: Source, as_json: Json = False) -> None:
    """Show the stages of a space; --json prints the whole definition."""
    from binas.space.files import load_space, space_to_data

    found = load_space(space)
    if as_json:
        print_json({**space_to_data(found), "fingerprint": found.fingerprint})
        return
    say(f"{found.name}: {found.description or 'no description'}")
    say(
        f"{found.count} architectures, {found.alpha_size} + {found.beta_size} binaries, fingerprint {found.fingerprint}"
    )
    rows = []
    for stage in found.stages:
        attributes = ", ".join(f"{key} {value}" for key, value in stage.attributes)
        blocks = [" ".join(config.name for config in block) for block in stage.blocks]
        configs = blocks[0] if blocks and len(set(blocks)) == 1 else " | ".join(blocks)
        rows.append((stage.name, ", ".join(map(str, stage.depths)), attributes, configs))
    table(("stage", "depths", "attributes", "configs of a block"), rows)


@spaces.command("count", epilog=examples("binas space count ofa-mbv3"))
def count(space: Source, as_json: Json = False) -> None:
    """Print the exact number of architectures."""
    from binas.space.files import load_space

    found = load_space(space)
    if as_json:
        print_json(
            {
                "name": found.name,
                "architectures": found.count,
                "alpha": found.alpha_size,
                "beta": found.beta_size,
            }
        )
    else:
        say(str(found.count))


@spaces.command(
    "sample",
    epilog=examples(
        "binas space sample demo --count 3 --seed 7", "binas space sample ofa-mbv3 --form blocks"
    ),
)
def sample(
    space: Source,
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many architectures.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same architectures.")] = 0,
    how: Annotated[
        Literal["decisions", "architectures"],
        typer.Option(help="Uniform over decisions (as in the paper) or over architectures."),
    ] = "decisions",
    form: Annotated[
        Literal["compact", "blocks", "json"],
        typer.Option(help="Compact strings, timm-style block strings, or JSON."),
    ] = "compact",
    as_json: Json = False,
) -> None:
    """Draw random architectures."""
    from binas.space import load_space, sample_many, to_block_string

    found = load_space(space)
    drawn = sample_many(found, count, seed, how)
    texts = [to_block_string(found, a) if form == "blocks" else str(a) for a in drawn]
    if as_json or form == "json":
        print_json([a.to_json() for a in drawn] if form == "json" else texts)
        return
    for text in texts:
        say(text)


@spaces.command("validate", epilog=examples("binas space validate my-space.yaml"))
def validate(space: Source, as_json: Json = False) -> None:
    """Check a space file; errors name the line and the key."""
    from binas.space.files import load_space

    found = load_space(space)
    if as_json:
        print_json({"valid": True, "name": found.name, "fingerprint": found.fingerprint})
    else:
        say(f"{found.name} is valid: {len(found.stages)} stages, {found.count} architectures.")


def write_example(
    name: Annotated[
        Literal["paper"], typer.Argument(help="Which example: the tables of the BINAS paper, reconstructed.")
    ],
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")],
    overwrite: Annotated[bool, typer.Option(help="Replace the files of an earlier example.")] = False,
    as_json: Json = False,
) -> None:
    """Write a complete example folder: space.yaml, contributions.json, costs.json."""
    from binas.testing.paper_example import ASSUMPTIONS, write_paper_example

    paths = write_paper_example(folder, overwrite)
    if as_json:
        print_json({"example": name, "files": [str(path) for path in paths], "assumptions": ASSUMPTIONS})
        return
    names = ", ".join(path.name for path in paths)
    say(f"Wrote {names} to {folder}: the paper's tables, reconstructed from its figures.")
    say(f"Try: binas search {folder} --limit latency=45ms")
