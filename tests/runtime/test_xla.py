"""Tests XLA flags by name, and the location of the compilation cache."""

import os
import subprocess
import sys

import pytest

from alphagat.errors import UserError
from alphagat.runtime import xla


def test_flags_are_added(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_mine=1")
    xla.use_flags("deterministic")
    assert xla.os.environ["XLA_FLAGS"] == "--xla_mine=1 --xla_gpu_deterministic_ops=true"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", xla.GPU_LOOPS),
        ("--xla_mine=1", f"--xla_mine=1 {xla.GPU_LOOPS}"),
        (xla.GPU_LOOPS, xla.GPU_LOOPS),
        ("--xla_gpu_enable_command_buffer=", "--xla_gpu_enable_command_buffer="),
        ("my.flags", "my.flags"),
    ],
)
def test_loops_stay_on_the_gpu_unless_the_user_decides(before, after, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", before)
    xla.keep_loops_on_gpu()
    assert xla.os.environ["XLA_FLAGS"] == after


def test_a_file_of_flags_is_kept(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "my.flags")
    xla.use_flags("default")
    with pytest.raises(
        UserError, match=r"^--xla debug: XLA_FLAGS=my\.flags names a file; write its flags there instead$"
    ):
        xla.use_flags("debug")
    assert xla.os.environ["XLA_FLAGS"].strip() == "my.flags"


def test_an_unknown_name_raises():
    with pytest.raises(UserError, match="--xla fast: choose one of default, deterministic"):
        xla.use_flags("fast")


def test_each_processor_has_its_own_cache_unless_one_is_set(monkeypatch, tmp_path):
    monkeypatch.delenv(xla.CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = []
    for processor in ("one", "another", "one"):
        monkeypatch.delenv(xla.CACHE_VARIABLE, raising=False)
        monkeypatch.setattr(xla, "_describe_processor", lambda processor=processor: processor)
        xla.use_cache()
        folders.append(xla.os.environ[xla.CACHE_VARIABLE])
    assert folders[0] == folders[2] != folders[1]
    assert all(folder.startswith(str(tmp_path / "alphagat")) for folder in folders)
    monkeypatch.setenv(xla.CACHE_VARIABLE, "elsewhere")
    xla.use_cache()
    assert xla.os.environ[xla.CACHE_VARIABLE] == "elsewhere"


def test_without_a_home_there_is_no_cache(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    for name in (xla.CACHE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(xla.Path, "home", home)
    xla.use_cache()
    assert xla.CACHE_VARIABLE not in xla.os.environ


@pytest.mark.parametrize("platform", ["rocm", "nonsense"])
def test_a_platform_that_jax_does_not_have_is_refused(platform):
    environment = os.environ | {"JAX_PLATFORMS": platform}
    command = [sys.executable, "-m", "alphagat", "doctor"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith(f"error: JAX_PLATFORMS={platform}: JAX finds no such devices here; install")
