"""``binas space``, ``schema`` and ``example``."""

import json

from calling import answer, refusal, said


def test_the_built_in_spaces():
    names = {item["name"] for item in answer("space", "list")}
    assert names >= {"imagenet-mbconv", "ofa-mbv3", "nas-bench-macro", "demo"}
    assert answer("space", "count", "imagenet-mbconv")["architectures"] == 22608**5
    assert said("space", "count", "nas-bench-macro").strip() == "3969"


def test_a_space_that_is_shown_can_be_read_again(tmp_path):
    shown = answer("space", "show", "demo")
    path = tmp_path / "again.yaml"
    fingerprint = shown.pop("fingerprint")
    path.write_text(json.dumps(shown))
    assert answer("space", "validate", path)["fingerprint"] == fingerprint
    assert "s1" in said("space", "show", "demo")
    assert "is valid" in said("space", "validate", "demo")


def test_samples_repeat_with_their_seed():
    one, two = (answer("space", "sample", "demo", "--count", 3, "--seed", 5) for _ in range(2))
    assert one == two
    assert len(one) == 3
    assert "er_r1_k" in said("space", "sample", "demo", "--form", "blocks")


def test_schemas_are_printed():
    for kind in ("space", "contributions", "costs", "samples"):
        schema = json.loads(said("schema", kind))
        assert schema["$schema"].startswith("https://json-schema.org")


def test_example_writes_a_folder_and_keeps_what_is_there(tmp_path):
    folder = tmp_path / "new"
    assert f"binas search {folder}" in said("example", "paper", folder)
    assert {path.name for path in folder.iterdir()} == {"space.yaml", "contributions.json", "costs.json"}
    (folder / "costs.json").write_text("mine")
    assert "already holds" in refusal("example", "paper", folder)
    assert (folder / "costs.json").read_text() == "mine"
    said("example", "paper", folder, "--overwrite")
    assert (folder / "costs.json").read_text() != "mine"
