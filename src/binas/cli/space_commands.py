"""``binas space list|show|count|sample|validate``, ``binas schema`` and ``binas example``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from binas.cli.options import Space, command, with_options
from binas.cli.output import Reply, print_json, say, table
from binas.space.sampling import DrawSettings

if TYPE_CHECKING:
    from binas.space.space import SearchSpace

app = typer.Typer()
spaces = typer.Typer(help="Look at search spaces.", no_args_is_help=True)
app.add_typer(spaces, name="space")


@command(app, "schema", "binas schema costs > costs.schema.json")
def print_schema(
    kind: Annotated[
        Literal["space", "contributions", "costs", "samples"], typer.Argument(help="Which file.")
    ],
) -> None:
    """Print the JSON Schema of a binas file."""
    from binas.tables.schema import schema

    print_json(schema(kind))


@command(spaces, "list", "binas space list", "binas space list --json")
def list_spaces() -> Reply:
    """List the built-in spaces."""
    from binas.space.files import builtin_names, load_space

    known = [load_space(name) for name in builtin_names()]
    rows = [(s.name, f"{s.count:.3g}", str(s.alpha_size + s.beta_size), s.description) for s in known]
    return Reply(
        [{"name": s.name, "description": s.description, "architectures": s.count} for s in known],
        lambda: table(("space", "architectures", "binaries", "description"), rows),
    )


@command(spaces, "show", "binas space show imagenet-mbconv", "binas space show my-space.yaml --json")
def show(space: Space) -> Reply:
    """Show the stages of a space; --json prints the whole definition."""
    from binas.space.files import load_space, space_to_data

    loaded = load_space(space)
    return Reply({**space_to_data(loaded), "fingerprint": loaded.fingerprint}, lambda: _show_stages(loaded))


def _show_stages(space: SearchSpace) -> None:
    binaries = f"{space.alpha_size} + {space.beta_size} binaries"
    say(f"{space.name}: {space.description or 'no description'}")
    say(f"{space.count} architectures, {binaries}, fingerprint {space.fingerprint}")
    rows = []
    for stage in space.stages:
        attributes = ", ".join(f"{key} {value}" for key, value in stage.attributes)
        blocks = [" ".join(config.name for config in block) for block in stage.blocks]
        configs = blocks[0] if blocks and len(set(blocks)) == 1 else " | ".join(blocks)
        rows.append((stage.name, ", ".join(map(str, stage.depths)), attributes, configs))
    table(("stage", "depths", "attributes", "configs of a block"), rows)


@command(spaces, "count", "binas space count ofa-mbv3")
def count(space: Space) -> Reply:
    """Print the exact number of architectures."""
    from binas.space.files import load_space

    loaded = load_space(space)
    sizes = {"architectures": loaded.count, "alpha": loaded.alpha_size, "beta": loaded.beta_size}
    return Reply({"name": loaded.name, **sizes}, lambda: say(str(loaded.count)))


@command(
    spaces,
    "sample",
    "binas space sample demo --count 3 --seed 7",
    "binas space sample ofa-mbv3 --form blocks",
    options=with_options(DrawSettings),
)
def sample(space: Space, settings: Any = None) -> Reply:
    """Draw random architectures."""
    from binas.space import load_space, sample_many, to_block_string

    loaded = load_space(space)
    drawn = sample_many(loaded, settings.count, settings.seed, settings.how)
    if settings.form == "json":
        objects = [item.to_json() for item in drawn]
        return Reply(objects, lambda: print_json(objects))
    texts = [to_block_string(loaded, item) if settings.form == "blocks" else str(item) for item in drawn]
    return Reply(texts, lambda: say(*texts))


@command(spaces, "validate", "binas space validate my-space.yaml")
def validate(space: Space) -> Reply:
    """Check a space file; errors name the line and the key."""
    from binas.space.files import load_space

    loaded = load_space(space)
    return Reply(
        {"valid": True, "name": loaded.name, "fingerprint": loaded.fingerprint},
        lambda: say(f"{loaded.name} is valid: {len(loaded.stages)} stages, {loaded.count} architectures."),
    )


@command(app, "example", "binas example paper example", "binas search example --limit latency=45ms")
def write_example(
    name: Annotated[
        Literal["paper"], typer.Argument(help="Which example: the tables of the BINAS paper, reconstructed.")
    ],
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")],
    overwrite: Annotated[bool, typer.Option(help="Replace the files of an earlier example.")] = False,
) -> Reply:
    """Write a complete example folder: space.yaml, contributions.json, costs.json."""
    from binas.testing.paper_example import ASSUMPTIONS, write_paper_example

    paths = write_paper_example(folder, overwrite)
    names = ", ".join(path.name for path in paths)
    return Reply(
        {"example": name, "files": [str(path) for path in paths], "assumptions": ASSUMPTIONS},
        lambda: say(
            f"Wrote {names} to {folder}: the paper's tables, reconstructed from its figures.",
            f"Try: binas search {folder} --limit latency=45ms",
        ),
    )
