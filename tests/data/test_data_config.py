import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from binas.base.errors import DataError
from binas.base.files import parse_yaml
from binas.data import AugmentConfig, DataConfig, load_data


def test_the_embedded_sample_is_the_default():
    data = load_data(DataConfig())
    assert data.name == "embedded Fashion-MNIST sample"
    limited = load_data(DataConfig(limit=100, validation_share=0.5, seed=4))
    assert [len(part) for part in (limited.train, limited.validation, limited.test)] == [50, 50, 100]
    assert limited.fingerprint() != load_data(DataConfig(limit=100, validation_share=0.5)).fingerprint()


def test_a_limit_that_leaves_too_little_is_refused():
    with pytest.raises(DataError, match="two or more"):
        load_data(DataConfig(limit=10))


def test_a_description_survives_writing_and_reading():
    config = DataConfig(kind="folder", path="photos", size=64, channels=1, seed=2)
    written = config.model_dump(mode="json", exclude_unset=True)
    assert written == {"kind": "folder", "path": "photos", "size": 64, "channels": 1, "seed": 2}
    assert DataConfig.model_validate(written) == config


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "embedded", "path": "here"}, "embedded does not use path"),
        ({"kind": "arrays"}, "needs a path"),
        ({"kind": "arrays", "path": "a.npz", "size": 3}, "arrays does not use size"),
        ({"kind": "folder", "path": "here"}, "needs a size"),
        ({"kind": "folder", "path": "here", "size": 9, "streaming": True}, "does not use streaming"),
        ({"kind": "huggingface", "size": 9}, "either a path or a name"),
        ({"kind": "huggingface", "size": 9, "path": "x", "name": "y"}, "either a path or a name"),
        ({"kind": "huggingface", "name": "x", "size": 9, "length": 5}, "huggingface does not use length"),
        (
            {"kind": "huggingface", "name": "x", "size": 9, "streaming": True, "cache": True},
            "with streaming does not use cache",
        ),
        ({"kind": "folder", "path": "here", "size": 9, "channels": 2}, "channels"),
        ({"validation_share": 1}, "less than 1"),
        ({"validation_share": float("nan")}, "finite number"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"sees": 1}, "Extra inputs"),
    ],
)
def test_descriptions_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(ValidationError, match=said):
        DataConfig.model_validate(wrong)


def test_every_field_is_documented():
    for model in (DataConfig, AugmentConfig):
        for name, field in model.model_fields.items():
            assert field.description, name


def test_the_examples_in_the_docs_are_valid():
    text = (Path(__file__).parents[2] / "docs" / "howto" / "data.md").read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", text, re.S)
    kinds = [DataConfig.model_validate(parse_yaml(example).data["data"]).kind for example in examples]
    assert set(kinds) == {"arrays", "folder", "huggingface", "fashion-mnist"}
