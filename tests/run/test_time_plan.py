"""Plans for a time budget, with invented rates: no clock is read."""

import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings, strategies as st
from PIL import Image

from binas.base.errors import ConfigError, UnitError
from binas.base.progress import Progress
from binas.run.config import given_settings, load_config
from binas.run.plan import FILLED, LIMIT, Budget, expected_seconds, make_plan, plan_of, total_seconds
from binas.run.run import Run, open_run
from binas.run.start import budget_of, configure, create_run
from binas.run.starter import smaller_start
from binas.space import load_space
from binas.tasks import all_steps
from binas.tasks.outlook import Images, Outlook, Rates, guessed_rates
from binas.training.team import one_thread
from tiny_run import TRAIN, call, write_config

RATES = Rates(
    heaviest=2e-3,
    supernet=2.2e-3,
    network=1.5e-3,
    heaviest_forward=4e-4,
    multipath=3e-4,
    forward=2e-4,
    recalibrate=3e-4,
    table=14.0,
    prepare=0.3,
)
IMAGES = Images(train=12_800, validation=3_200, test=4_000)
AMOUNTS = {item.setting: item for step in all_steps() for item in step.amounts}
LIMITS = ("search.limits", ["latency=25%", "latency=50%", "latency=75%"])


def outlook(*changes, rates=RATES, images=IMAGES):
    return Outlook(load_config(None, [LIMITS, *changes]), images, rates, 10, (28, 28), "demo")


class TestFilling:
    @pytest.mark.parametrize("minutes", [4, 10, 30, 120, 600])
    def test_the_time_is_filled_and_kept(self, minutes):
        plan = make_plan(outlook(), Budget(60 * minutes, spent=20))
        assert 0.9 * 60 * minutes <= plan.total <= FILLED * 60 * minutes + 1

    def test_most_of_it_trains_the_heaviest_network_and_the_supernet(self):
        plan = make_plan(outlook(), Budget(7200))
        shares = {name: seconds.total / plan.total for name, seconds in plan.expected.items()}
        assert 0.2 < shares["train.heaviest"] < 0.35
        assert 0.33 < shares["train.supernet"] < 0.5
        assert shares["finetune"] + shares["compare"] > 0.12  # rivals are tuned for as many epochs
        assert 15 <= plan.chosen["measure.seconds"] <= 300

    def test_more_time_is_never_less_of_anything(self):
        plans = [make_plan(outlook(), Budget(60 * minutes)) for minutes in (5, 15, 60, 240)]
        for setting in AMOUNTS:
            values = [plan.chosen[setting] for plan in plans]
            assert values == sorted(values), setting

    def test_rivals_are_tuned_where_that_stays_within_its_share(self):
        amount = AMOUNTS["compare.tune"]
        long, short = (make_plan(outlook(), Budget(seconds)) for seconds in (7200, 200))
        assert long.chosen["compare.tune"] >= 1
        assert short.chosen["compare.tune"] == 0
        without = make_plan(outlook(), Budget(7200, frozenset({"compare.tune"})))
        assert without.chosen["compare.tune"] == 0
        assert without.chosen["train.supernet.epochs"] >= long.chosen["train.supernet.epochs"]
        assert long.expected["compare"].total > 3 * without.expected["compare"].total
        assert amount.within

    @given(
        seconds=st.floats(200, 1e5),
        speed=st.floats(0.01, 100),
        train=st.integers(500, 10**6),
        spent=st.floats(0, 60),
    )
    @settings(max_examples=15)
    def test_whatever_the_machine(self, seconds, speed, train, spent):
        """A plan keeps the time and every bound, or says the least it needs; with that time there is one."""
        rates = RATES.model_copy(
            update={key: speed * getattr(RATES, key) for key in ("heaviest", "supernet", "network")}
        )
        images = Images(train=train, validation=train // 4, test=train // 4)
        looked = outlook(rates=rates, images=images)
        try:
            plan = make_plan(looked, Budget(seconds, spent=spent))
        except ConfigError as error:
            needed = str(error).split("Give --time ")[1].split(" or more")[0]
            plan = make_plan(looked, replace(budget_of(needed), spent=spent))
            assert plan.budget > seconds
        assert plan.total <= plan.budget
        for setting, amount in AMOUNTS.items():
            assert amount.least <= plan.chosen[setting] <= amount.most

    def test_more_workers_take_less_time(self):
        two = RATES.model_copy(update={"workers": 2})
        one_seconds, two_seconds = (expected_seconds(outlook(rates=rates)) for rates in (RATES, two))
        assert two_seconds["sample"].work == pytest.approx(one_seconds["sample"].work / 2, rel=0.01)
        assert (
            two_seconds["finetune"].work < 0.75 * one_seconds["finetune"].work
        )  # three networks in two turns
        assert two_seconds["train.supernet"].work < one_seconds["train.supernet"].work  # validating is shared
        assert two_seconds["measure"] == one_seconds["measure"]  # nothing runs beside it


class TestWhatTheUserGave:
    def test_stays_and_is_marked(self):
        given_names = frozenset({"finetune.epochs", "estimate.passes"})
        plan = make_plan(outlook("finetune.epochs=7", "estimate.passes=5"), Budget(7200, given_names))
        assert plan.chosen["finetune.epochs"] == 7
        assert plan.chosen["estimate.passes"] == 5
        assert not given_names & set(plan.own)
        assert "7 epochs (as given)" in "\n".join(plan.lines())

    def test_is_read_from_file_and_changes(self, tmp_path):
        path = tmp_path / "c.yaml"
        path.write_text("train: {heaviest: {epochs: 3}}\nspace: demo\n")
        found = given_settings(path, ["finetune.epochs=2", "estimate={passes: 9}", ("sample.count", 5)])
        assert found == {
            "train.heaviest.epochs",
            "space",
            "finetune.epochs",
            "estimate.passes",
            "sample.count",
        }

    def test_is_named_where_it_takes_too_long(self):
        budget = Budget(600, frozenset({"train.supernet.epochs", "search.limits"}))
        with pytest.raises(ConfigError, match=r"train\.supernet\.epochs stay as you gave") as error:
            make_plan(outlook("train.supernet.epochs=500"), budget)
        assert "search.limits" not in str(error.value)
        assert "train.supernet" in str(error.value)


class TestTooShort:
    def test_fewer_images_first(self):
        plan = make_plan(outlook(), Budget(150))
        assert 20 * 10 <= plan.own[LIMIT] < IMAGES.train + IMAGES.validation
        assert plan.images.train + plan.images.validation == plan.own[LIMIT]
        assert f"only {plan.own[LIMIT]:,} images" in "\n".join(plan.lines())

    def test_images_are_not_limited_against_the_user(self):
        with pytest.raises(ConfigError, match="150s is too short"):
            make_plan(outlook(), Budget(150, frozenset({LIMIT})))

    def test_below_the_least_it_is_refused(self):
        with pytest.raises(
            ConfigError, match=r"30s is too short: the least .* about \d+.* Nothing was changed"
        ):
            make_plan(outlook(), Budget(30))


def test_seconds_grow_with_their_amounts():
    """A step's time grows with each setting it says it grows with."""
    for setting, amount in AMOUNTS.items():
        less, more = (outlook(f"{setting}={value}") for value in (amount.least, amount.most))
        assert total_seconds(less) < total_seconds(more), setting


def test_every_step_of_ours_says_how_long_it_takes():
    guessed = Outlook(load_config(), IMAGES, guessed_rates(load_space("small-28")))
    for name, seconds in expected_seconds(guessed).items():
        assert seconds.total > 0 or name == "train.data", name
    assert 200 < total_seconds(guessed) < 2000  # the defaults on the demo's images: minutes


class TestRuns:
    """A whole run with a time; the rates are invented, so no test waits for a clock."""

    RATES = RATES.model_copy(update=dict.fromkeys(("heaviest", "supernet", "network"), 0.002))

    @pytest.fixture
    def probed(self, monkeypatch):
        calls = []

        def probe(space, data, config):
            calls.append(config)
            return self.RATES

        monkeypatch.setattr("binas.run.probe.probe", probe)
        return calls

    @pytest.fixture
    def open_config(self, tmp_path):
        """The tiny run with only finetune.epochs given of what a plan may choose."""
        path = write_config(tmp_path / "config")
        content = json.loads(path.read_text())
        del content["train"]["heaviest"]["epochs"], content["train"]["supernet"]["epochs"]
        del content["estimate"], content["sample"], content["check"], content["compare"]
        path.write_text(json.dumps(content))
        return path

    def start(self, config, out, time="60s", **more):
        budget = budget_of(time, config)
        return create_run(out, configure(out, config), progress=Progress(), budget=budget, **more)

    def test_the_plan_is_in_the_configuration_and_kept(self, probed, open_config, tmp_path):
        run = self.start(open_config, tmp_path / "run")
        plan = plan_of(run)
        stored = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
        assert stored["train"]["heaviest"]["epochs"] == plan.own["train.heaviest.epochs"] > 1
        assert stored["finetune"]["epochs"] == 1
        assert plan.given == ("finetune.epochs",)
        assert open_run(tmp_path / "run").config == run.config.model_copy(
            update={"space": open_run(tmp_path / "run").config.space}
        )
        again = self.start(open_config, tmp_path / "run")
        assert again.config.model_dump() == run.config.model_dump()
        assert len(probed) == 1  # the same time: the same plan, without probing again

    @pytest.mark.slow
    def test_other_time_on_a_run_that_has_begun(self, probed, open_config, tmp_path):
        """What has begun keeps its settings; what has not is planned anew."""
        with one_thread():
            run = self.start(open_config, tmp_path / "run", "40s")
            steps = [step for step in all_steps() if step.name in TRAIN]
            from binas.run.engine import advance

            advance(run, steps)
            longer = self.start(open_config, tmp_path / "run", "5min")
        first, second = run.config.model_dump(), longer.config.model_dump()
        assert second["train"] == first["train"]
        assert second["data"] == first["data"]
        assert second["sample"]["count"] > first["sample"]["count"]
        assert not set(TRAIN) & set(plan_of(longer).expected)

    def test_a_run_without_plan_is_not_probed(self, probed, config, tmp_path):
        create_run(tmp_path / "run", configure(tmp_path / "run", config))
        assert probed == []
        assert not (tmp_path / "run" / "plan.json").exists()

    def test_too_short_leaves_nothing(self, probed, open_config, tmp_path):
        code, said = call("run", open_config, "--out", tmp_path / "run", "--time", "3s")
        assert code == 2
        assert "3s is too short" in said
        assert not (tmp_path / "run").exists()

    def test_times_are_read_before_anything_else(self, probed, open_config, tmp_path):
        code, said = call("run", open_config, "--out", tmp_path / "run", "--time", "20")
        assert code == 2
        assert "no unit" in said
        assert probed == []
        with pytest.raises(UnitError):
            budget_of("soon")


def test_a_run_says_what_init_would_take_for_its_time(tmp_path):
    """Photos of 200 pixels and ten minutes: the run keeps its space and size, and is told of smaller ones."""
    for number in range(100):
        folder = tmp_path / "photos" / f"class-{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (200, 200), (number, 0, 0)).save(folder / f"{number}.png")
    space = load_space("photos-160")
    source = {"kind": "folder", "path": str(tmp_path / "photos"), "size": 160, "channels": 3}
    config = load_config(None, [(f"data.{name}", value) for name, value in source.items()])
    seen = Outlook(config, IMAGES, RATES.times(30), 2, (160, 160), "photos-160")
    plan, run = make_plan(seen, Budget(1800)), Run(tmp_path, config, space)
    said = smaller_start(run, seen, plan)
    assert "--time 30min` would take" in said
    assert "pixels with the space" in said
    rich = make_plan(replace(seen, rates=RATES), Budget(36_000))
    assert smaller_start(run, replace(seen, rates=RATES), rich) == ""
    embedded = Run(tmp_path, load_config(None, []), space)
    assert smaller_start(embedded, seen, plan) == ""


def test_weights_that_were_given_are_not_trained_because_there_is_time(tmp_path):
    given = outlook(("train.start", tmp_path / "start.safetensors"), ("train.heaviest.epochs", 0))
    chosen = make_plan(given, Budget(3600)).chosen
    assert chosen["train.heaviest.epochs"] == 0
    assert chosen["train.supernet.epochs"] > 1
