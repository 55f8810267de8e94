"""The reconstruction of the paper's tables gives every number that the paper prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from binas.base.errors import FileError
from binas.costs import analytic_costs
from binas.run.folder import Folder, load
from binas.search.solve import solve
from binas.space import load_space
from binas.testing.paper_example import write_paper_example

# As printed in the figure on insights: left (depth and latency), middle (per stage), right (per block).
THIRD_BLOCK = [0.327805, 0.253799, 0.319214, 0.691796, 0.987206]
FOURTH_BLOCK = [0.077003, 0.116189, 0.113785, 0.312606, 0.363792]
LATENCY_MS = [6.5, 2.4, 1.9, 3.0, 1.9]
PER_STAGE = {
    ("expansion", 3, 4): [
        0.04170036315917969,
        0.029999256134033203,
        0.029224872589111328,
        0.07246255874633789,
        0.1118006706237793,
    ],
    ("expansion", 4, 6): [
        0.06004810333251953,
        0.060211181640625,
        0.08327674865722656,
        0.14120054244995117,
        0.2086467742919922,
    ],
    ("kernel", 3, 5): [
        0.008801142374674479,
        0.025275230407714844,
        0.03856658935546875,
        0.0424502690633138,
        0.0012760162353515625,
    ],
    ("se", False, True): [
        0.024433135986328125,
        0.03580697377522787,
        0.05210049947102864,
        0.16463375091552734,
        0.20270792643229166,
    ],
}
PER_BLOCK = {
    ("expansion", 3, 4): [0.0805816650390625, 0.09049797058105469, 0.04370002746582031, 0.013370513916015625],
    ("expansion", 4, 6): [0.16334991455078124, 0.1725605010986328, 0.07890777587890624, 0.02788848876953125],
    ("kernel", 3, 5): [
        0.027814229329427086,
        0.04351882934570313,
        0.0037096659342447918,
        0.018052673339843752,
    ],
    ("se", False, True): [0.09007975260416667, 0.2050000508626302, 0.0879992167154948, 0.0006668090820312498],
}
EXACT = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("example") / "new" / "paper"
    written = write_paper_example(path)
    assert sorted(p.name for p in path.iterdir()) == sorted(p.name for p in written)
    return load(path)


def difference(folder: Folder, key: str, low: object, high: object) -> np.ndarray:
    """Appendix "Averaging Individual Accuracy Contribution": the mean over configs with ``high`` minus the
    mean over those with ``low``, for every stage and block.
    """
    result = np.empty((5, 4))
    for s, stage in enumerate(folder.space.stages):
        for b, block in enumerate(stage.blocks):
            values, option = folder.contributions.values.configs[s][b], [c.get(key) for c in block]
            means = [values[[value == wanted for value in option]].mean() for wanted in (low, high)]
            result[s, b] = means[1] - means[0]
    return result


class TestPrintedNumbers:
    @pytest.mark.parametrize("step", PER_STAGE, ids=str)
    def test_average_contribution_per_stage(self, folder: Folder, step: tuple[str, object, object]) -> None:
        np.testing.assert_allclose(difference(folder, *step).mean(axis=1), PER_STAGE[step], **EXACT)

    @pytest.mark.parametrize("step", PER_BLOCK, ids=str)
    def test_average_contribution_per_block(self, folder: Folder, step: tuple[str, object, object]) -> None:
        np.testing.assert_allclose(difference(folder, *step).mean(axis=0), PER_BLOCK[step], **EXACT)

    def test_what_a_third_and_a_fourth_block_add(self, folder: Folder) -> None:
        steps = np.diff(np.array(folder.contributions.values.depths), axis=1)
        np.testing.assert_allclose(steps, np.transpose([THIRD_BLOCK, FOURTH_BLOCK]), **EXACT)

    def test_mean_latency_of_a_block(self, folder: Folder) -> None:
        latency = folder.costs["latency"]
        means = [float(np.mean(blocks)) for blocks in latency.values.configs]
        np.testing.assert_allclose(means, LATENCY_MS, **EXACT)
        assert latency.unit.name == "ms"


class TestAssumptions:
    """What the provenance says was assumed is what the tables hold."""

    def test_contributions_average_zero(self, folder: Folder) -> None:
        for array in folder.contributions.values.arrays():
            assert abs(array.mean()) < 1e-12

    def test_base(self, folder: Folder) -> None:
        assert folder.contributions.base == 72.86

    def test_best_network_at_45_ms_is_predicted_as_the_figure_shows(self, folder: Folder) -> None:
        result = solve(folder.problem(["latency=45ms"]))
        assert result.evaluation is not None
        assert round(result.evaluation.accuracy, 1) == 75.3

    def test_latency_is_proportional_to_macs_within_a_stage(self, folder: Folder) -> None:
        macs = analytic_costs(folder.space)["macs"].values.configs
        for latency, work in zip(folder.costs["latency"].values.configs, macs, strict=True):
            ratio = np.array(latency) / np.array(work)
            np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-12)

    @pytest.mark.parametrize("which", ["contributions", "latency"])
    def test_provenance(self, folder: Folder, which: str) -> None:
        table = folder.contributions if which == "contributions" else folder.costs["latency"]
        data = table.provenance.to_data()
        assert data["source"].startswith("RECONSTRUCTION")
        for word in (
            "Printed in the paper",
            "Assumed",
            "72.86",
            "average zero",
            "without interaction",
            "MACs",
        ):
            assert word in data["assumptions"]
        assert data["tool"].startswith("binas ")
        assert data["date"]


class TestFolder:
    def test_space_and_exact_costs(self, folder: Folder) -> None:
        assert folder.space == load_space("imagenet-mbconv")
        assert list(folder.costs.costs) == ["latency", "macs", "params", "weight_bytes", "peak_memory"]
        for name, cost in analytic_costs(folder.space).costs.items():
            assert folder.costs[name].fixed == cost.fixed
            assert folder.costs[name].values.equals(cost.values)

    @pytest.mark.parametrize("present", ["space.yaml", "contributions.json", "costs.json"])
    def test_existing_files_are_not_overwritten(self, tmp_path: Path, present: str) -> None:
        (tmp_path / present).write_text("mine")
        with pytest.raises(
            FileError, match=f"already holds {present}; choose another folder or pass --overwrite"
        ):
            write_paper_example(tmp_path)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {present: "mine"}

    def test_overwriting_when_asked(self, tmp_path: Path) -> None:
        (tmp_path / "costs.json").write_text("mine")
        (tmp_path / "notes.txt").write_text("kept")
        write_paper_example(tmp_path, overwrite=True)
        assert load(tmp_path).costs["latency"].unit.name == "ms"
        assert (tmp_path / "notes.txt").read_text() == "kept"

    def test_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine")
        with pytest.raises(FileError, match="cannot write"):
            write_paper_example(tmp_path / "file")
        assert (tmp_path / "file").read_text() == "mine"
