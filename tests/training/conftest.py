"""Compiles each program of these tests once: `train` builds its programs anew at every call."""

import gc
import json
import os
import warnings
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from alphagat.config_validation import to_dict
from alphagat.training import loop

CACHE_OPTIONS = {
    "jax_persistent_cache_min_compile_time_secs": 0.1,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@pytest.fixture(autouse=True)
def collect_garbage():
    """Ends the reads that Orbax leaves half done after a failure here, where they cannot disturb the next test."""
    yield
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def compiled_once(cache_folder: Path):
    """Keeps compiled programs in a folder, which the programs that a test starts use as well."""
    options = {"jax_compilation_cache_dir": str(cache_folder), **CACHE_OPTIONS}
    before = {name: getattr(jax.config, name) for name in options}
    compilation_cache.reset_cache()
    for name, value in options.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture
def process_environment(compiled_once, cache_folder: Path) -> dict[str, str]:
    """Returns the environment of a program that uses the same folder."""
    options = {"jax_compilation_cache_dir": cache_folder, **CACHE_OPTIONS, "jax_platforms": "cpu"}
    return os.environ | {name.upper(): str(value) for name, value in options.items()}


@pytest.fixture(scope="module")
def programs_once(compiled_once):
    """Traces equal programs once for all runs of a file: the same functions of the same config."""
    compile_iterations, make_matches, programs, matches = loop.compile_iterations, loop.Matches, {}, {}

    def key(setups, mesh) -> str:
        values = to_dict(setups[0].config)
        return json.dumps([{name: values[name] for name in values if name != "checkpoint"}, mesh.size])

    def compile_once(setups, mesh, *arguments):
        name = key(setups, mesh)
        if name not in programs:
            programs[name] = compile_iterations(setups, mesh, *arguments)
        return programs[name]

    def match_once(setups, mesh):
        name = key(setups, mesh)
        if name not in matches:
            matches[name] = make_matches(setups, mesh)
        return matches[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "compile_iterations", compile_once)
        patch.setattr(loop, "Matches", match_once)
        yield
