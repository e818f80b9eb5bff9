"""JSON of any size and depth is read or refused by a ValueError of one line."""

import contextlib
import json

import pytest

from alphagat import bounded_json
from tests.fuzz import mutants

VALUE = {"a": [1, -2.5, None, True], "b": {"c": "ü [{", "d": []}}
DEEP = {
    "lists": "[" * 200_000,
    "closed lists": "[" * 500 + "]" * 500,
    "objects": '{"a":' * 200_000,
    "101 levels": "[" * 101 + "]" * 101,
    "101 levels of both": '[{"a":' * 50 + "[]" + "}]" * 50,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
@pytest.mark.parametrize("as_bytes", [False, True])
def test_deep_nesting_is_refused(text: str, as_bytes: bool):
    with pytest.raises(ValueError, match=r"nested deeper than 100 levels") as caught:
        bounded_json.parse(text.encode() if as_bytes else text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, json.dumps([[[]]] * 1000), json.dumps(VALUE)])
def test_valid_values_are_unchanged(text: str, tmp_path):
    assert bounded_json.parse(text) == bounded_json.parse(text.encode()) == json.loads(text)
    (tmp_path / "x.json").write_text(text)
    assert bounded_json.read(tmp_path / "x.json") == json.loads(text)


def test_size_is_bounded(tmp_path):
    assert bounded_json.parse("[1, 2]", max_bytes=6) == [1, 2]
    with pytest.raises(ValueError, match="it is larger than"):
        bounded_json.parse("[1, 2]", max_bytes=5)
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match="it is larger than"):
        bounded_json.read(tmp_path / "x.json", max_bytes=5)


def test_damaged_json_raises_only_value_errors(rounds: int):
    for data in mutants([json.dumps(VALUE, ensure_ascii=False).encode()], 1000 * rounds):
        for text in (data, data.decode(errors="replace")):
            with contextlib.suppress(ValueError):
                json.dumps(bounded_json.parse(text))
