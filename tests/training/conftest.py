"""Traces each program of these tests once: `train` builds its programs anew at every call."""

import json
import os

import pytest

from alphagat.config_fields import to_dict
from alphagat.training import loop


@pytest.fixture
def process_environment() -> dict[str, str]:
    """Returns the environment of a program that a test starts."""
    return os.environ | {"JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def programs_once():
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
