"""Durations of compilations are kept in the cache folder, and no state of that folder is an error."""

import json

import pytest

from alphagat.runs import compile_times
from alphagat.runs.compile_times import FILE, expected_seconds, remember
from alphagat.runtime.xla import CACHE_VARIABLE


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def test_the_last_duration_of_the_same_boards_is_expected(cache):
    assert expected_seconds(["hex:5"]) is None
    remember(["hex:5"], 20.04)
    remember(["hex:5", "hex:7"], 50)
    remember(["hex:5"], 24)
    assert expected_seconds(["hex:5"]) == 24
    assert expected_seconds(["hex:5", "hex:7"]) == 50
    assert expected_seconds(["hex:7"]) is None


def test_the_oldest_are_dropped(cache, monkeypatch):
    monkeypatch.setattr(compile_times, "MAX_ENTRIES", 2)
    for size in (3, 4, 3, 5):
        remember([f"hex:{size}"], size)
    assert [expected_seconds([f"hex:{size}"]) for size in (3, 4, 5)] == [3, None, 5]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hex:5": "20"}', '{"hex:5": -1}', '{"hex:5": NaN}', "\0"])
def test_a_damaged_file_is_replaced(cache, text):
    (cache / FILE).write_text(text)
    assert expected_seconds(["hex:5"]) is None
    remember(["hex:5"], 3)
    assert json.loads((cache / FILE).read_text()) == {"hex:5": 3}


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    for place in (None, tmp_path / "missing"):
        if place is None:
            monkeypatch.delenv(CACHE_VARIABLE, raising=False)
        else:
            monkeypatch.setenv(CACHE_VARIABLE, str(place))
        remember(["hex:5"], 3)
        assert expected_seconds(["hex:5"]) is None
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_no_error(cache, monkeypatch):
    def fail(file, text):
        raise PermissionError(file)

    monkeypatch.setattr(compile_times, "write_atomically", fail)
    remember(["hex:5"], 3)
    assert expected_seconds(["hex:5"]) is None
