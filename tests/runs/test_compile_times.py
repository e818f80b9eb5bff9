"""Compilations are kept in the cache folder, and no state of that folder is an error."""

import json

import pytest

from alphagat.config import Config
from alphagat.runs import compile_times
from alphagat.runs.compile_times import FILE, describe_expected, remember
from alphagat.runtime.xla import CACHE_VARIABLE


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def config_of(*boards: str, width: int = 8, seed: int = 0) -> Config:
    config = Config(boards=boards, seed=seed)
    config.network.width = width
    return config


def test_times_on_other_devices_are_not_used(cache, monkeypatch):
    remember(config_of("hex:5"), 20, 0)
    monkeypatch.setattr(compile_times.jax, "device_count", lambda: 64)
    assert describe_expected(config_of("hex:5", width=16)) == ""


def test_other_programs_of_the_same_boards_are_expected_to_take_as_long(cache):
    assert describe_expected(config_of("hex:5")) == ""
    remember(config_of("hex:5"), 20.04, 0)
    remember(config_of("hex:5", "hex:7"), 50, 0)
    remember(config_of("hex:5", width=16), 24, 0)
    assert describe_expected(config_of("hex:5", width=32)) == ", about 24 s"
    assert describe_expected(config_of("hex:5", "hex:7", width=32)) == ", about 50 s"
    assert describe_expected(config_of("hex:7")) == ""


def test_the_same_programs_are_cached_whatever_the_seed(cache):
    remember(config_of("hex:5"), 20, 0)
    assert describe_expected(config_of("hex:5", seed=3)) == ", cached"


def test_fields_that_change_the_program_count(cache):
    remember(config_of("hex:5"), 20, 0)
    for path, value in (("selfplay.audit_every", 3), ("evaluation.value_scale", 0.5)):
        config = config_of("hex:5")
        part, field = path.split(".")
        setattr(getattr(config, part), field, value)
        assert describe_expected(config) == ", about 20 s"


def test_other_compiler_flags_give_other_programs(cache, monkeypatch):
    remember(config_of("hex:5"), 20, 0)
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert describe_expected(config_of("hex:5")) == ", about 20 s"


def test_a_cached_start_says_nothing_of_the_duration_of_compilations(cache):
    remember(config_of("hex:5"), 20, 0)
    remember(config_of("hex:5", width=16), 2, 1)
    assert describe_expected(config_of("hex:5", width=16)) == ", cached"
    assert describe_expected(config_of("hex:5", width=32)) == ", about 20 s"


def test_the_oldest_are_dropped(cache, monkeypatch):
    monkeypatch.setattr(compile_times, "MAX_ENTRIES", 4)
    for size in (3, 4, 3, 5):
        remember(config_of(f"hex:{size}"), size, 0)
    found = [describe_expected(config_of(f"hex:{size}", width=16)) for size in (3, 4, 5)]
    assert found == [", about 3 s", "", ", about 5 s"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"KEY": "20"}', '{"KEY": -1}', '{"KEY": NaN}', "\0"])
def test_a_damaged_file_is_replaced(cache, text):
    config = config_of("hex:5")
    remember(config, 20, 0)
    for key in json.loads((cache / FILE).read_text()):
        (cache / FILE).write_text(text.replace("KEY", key))
        assert describe_expected(config) in ("", ", about 20 s")
        remember(config, 3, 0)
        assert sorted(json.loads((cache / FILE).read_text()).values()) == [3, 3]


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    for place in (None, tmp_path / "missing"):
        if place is None:
            monkeypatch.delenv(CACHE_VARIABLE, raising=False)
        else:
            monkeypatch.setenv(CACHE_VARIABLE, str(place))
        remember(config_of("hex:5"), 3, 0)
        assert describe_expected(config_of("hex:5")) == ""
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_no_error(cache, monkeypatch):
    def fail(file, text):
        raise PermissionError(file)

    monkeypatch.setattr(compile_times, "write_atomically", fail)
    remember(config_of("hex:5"), 3, 0)
    assert describe_expected(config_of("hex:5")) == ""
