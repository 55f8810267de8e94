"""An architecture drawn as text, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binas.space.architecture import Architecture
from binas.space.families import Shape
from binas.space.networks import input_shapes, network_sizes
from binas.space.space import SearchSpace


def draw(space: SearchSpace, architecture: Architecture) -> str:
    """One line for input, stem, each stage and head: its name, the shape that leaves it, its blocks in a row."""
    rows = list(_rows(space, architecture))
    name, shape = (max(len(row[i]) for row in rows) for i in (0, 1))
    return "\n".join(f"{a:<{name}}  {b:<{shape}}  {c}".rstrip() for a, b, c in rows)


def _rows(space: SearchSpace, architecture: Architecture) -> Iterator[tuple[str, str, str]]:
    channels, side, classes = network_sizes(space)
    shapes = input_shapes(space)
    yield "input", _shape(Shape(channels, side)), ""
    yield "stem", _shape(shapes[0]), _blocks(space.stem)
    for stage, names, shape in zip(space.stages, architecture.stages, shapes[1:], strict=True):
        yield stage.name, _shape(shape), _blocks(names) or "(no blocks)"
    layers = [*space.head, "pool", *([f"linear {space.features}"] if space.features else []), "classifier"]
    yield "head", f"{classes} classes", _blocks(layers)


def _shape(shape: Shape) -> str:
    return f"{shape.channels} x {shape.size} x {shape.size}"


def _blocks(names: Sequence[str]) -> str:
    return " -> ".join(f"[{name}]" for name in names)
