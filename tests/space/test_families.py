"""Block families without torch: strings, layers, the register."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from binas.base.errors import ArchitectureError, SpaceError
from binas.space import BlockCode, parse_block
from binas.space.codes import whole
from binas.space.families import (
    DEFAULT_RULES,
    BlockShape,
    ConvShape,
    Shape,
    Trace,
    _base,
    describe,
    family_names,
    family_of_kind,
    known_kinds,
    register,
)
from binas.space.families.bottleneck import BOTTLENECK
from binas.space.families.mbconv import MBCONV


@pytest.fixture
def own_register(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(_base, "_FAMILIES", dict(_base._FAMILIES))


NEW = replace(BOTTLENECK, name="new", kinds=("nw",), fields=("g", "dil"))


class TestRegister:
    def test_what_is_built_in(self) -> None:
        assert family_names() == ("bottleneck", "mbconv")
        assert known_kinds() == ("ir", "ds", "dsa", "cn", "er", "mp", "bt")
        assert family_of_kind("er") is MBCONV

    @pytest.mark.usefixtures("own_register")
    def test_a_new_family_extends_the_grammar(self) -> None:
        with pytest.raises(ArchitectureError, match="starts with 'nw'"):
            parse_block("nw_k3_c8")
        register(NEW)
        code = parse_block("nw_k3_c8_dil2_g4")
        assert code.extra == (("dil", 2.0), ("g", 4.0))
        assert (code.get("g", 1), code.get("other", 1)) == (4, 1)
        assert code == BlockCode("nw", 3, 1, 8, extra=(("g", 4), ("dil", 2)))
        assert str(code) == "nw_r1_k3_s1_e1_c8_dil2_g4"
        assert parse_block(str(code)) == code

    @pytest.mark.usefixtures("own_register")
    def test_fields_belong_to_their_family(self) -> None:
        register(NEW)
        for text in ("bt_k3_c8_g4", "nw_k3_c8_h4"):
            with pytest.raises(ArchitectureError, match="unknown part"):
                parse_block(text)
        with pytest.raises(ArchitectureError, match="gives g twice"):
            parse_block("nw_k3_c8_g4_g4")
        with pytest.raises(ArchitectureError, match="g must be above 0"):
            parse_block("nw_k3_c8_g0")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"name": "mbconv"}, "'mbconv' is registered already"),
            ({"kinds": ("ir",)}, "the kind 'ir' .* is taken"),
            ({"kinds": ("x_y",)}, "the kind 'x_y'"),
            ({"fields": ("se",)}, "the field 'se'"),
            ({"fields": ("kernel",)}, "the field 'kernel'"),
            ({"fields": ("nr",)}, "the field 'nr'"),
            ({"fields": ("G",)}, "the field 'G'"),
        ],
    )
    @pytest.mark.usefixtures("own_register")
    def test_refused(self, changes: dict[str, object], message: str) -> None:
        with pytest.raises(SpaceError, match=message):
            register(replace(NEW, **changes))
        assert family_names() == ("bottleneck", "mbconv")

    def test_unknown_kind(self) -> None:
        with pytest.raises(SpaceError, match="no block family has the kind 'zz'; known are ir"):
            family_of_kind("zz")

    def test_needs_no_torch(self) -> None:
        script = (
            "import sys\n"
            "from binas.space import load_space\n"
            "from binas.costs import analytic_costs, peak_activation\n"
            "space = load_space('demo')\n"
            "analytic_costs(space), peak_activation(space)\n"
            "assert 'torch' not in sys.modules\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True)


class TestLayers:
    @pytest.mark.parametrize("text", ["bt_k3_c8_se0.25", "bt_k3_c8_noskip"])
    def test_a_bottleneck_has_no_such_parts(self, text: str) -> None:
        with pytest.raises(SpaceError, match="cannot be built"):
            describe(parse_block(text), 8, DEFAULT_RULES)

    def test_the_shortcut_is_a_convolution_where_the_shape_changes(self) -> None:
        same, wider = (describe(parse_block(f"bt_k3_c{c}_nre"), 8, DEFAULT_RULES) for c in (8, 16))
        assert isinstance(same, BlockShape)
        assert isinstance(wider, BlockShape)
        assert same.shortcut == ()
        assert wider.shortcut == (ConvShape(8, 16),)

    def test_steps_are_numbered_as_they_are_written(self) -> None:
        trace = Trace(Shape(8, 4))
        last = trace.run([describe(parse_block("ir_k3_e2_c8_se0.25"), 8, DEFAULT_RULES)])
        assert last == len(trace.steps) == 8
        assert [step.reads for step in trace.steps] == [(0,), (1,), (2,), (3,), (4,), (2, 5), (6,), (7, 0)]

    def test_layers_that_do_not_fit(self) -> None:
        for wrong, message in (((4, 4, 2), "odd"), ((6, 8, 3, 1, 4), "do not split into 4 groups")):
            with pytest.raises(SpaceError, match=message):
                ConvShape(*wrong)
        with pytest.raises(SpaceError, match="residual connection adds"):
            Trace(Shape(4, 4)).run([BlockShape((ConvShape(4, 8),), ())])

    @pytest.mark.parametrize("value", [0, 2.5, True, "3", None, 10**7])
    def test_whole_options(self, value: object) -> None:
        with pytest.raises(SpaceError, match="here: kernel must be a whole number"):
            whole(value, "kernel", "here")
