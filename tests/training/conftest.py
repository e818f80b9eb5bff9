"""Compiles each program once per test file, although every call of `train` builds its programs again."""

import json
import os

import pytest

from alphagat.config_fields import to_dict
from alphagat.training import evaluation, loop


@pytest.fixture
def process_environment() -> dict[str, str]:
    """Returns the environment of a subprocess."""
    return os.environ | {"JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def programs_once():
    """Shares compiled programs among all runs of a file, keyed by function and config."""
    make_iterations, make_matches, programs, matches = loop.make_iterations, evaluation.Matches, {}, {}

    def key(run) -> str:
        values = to_dict(run.config)
        return json.dumps([{name: values[name] for name in values if name != "checkpoint"}, run.mesh.size])

    def compile_once(run, *arguments):
        if key(run) not in programs:
            programs[key(run)] = make_iterations(run, *arguments)
        return programs[key(run)]

    def match_once(run):
        if key(run) not in matches:
            matches[key(run)] = make_matches(run)
        return matches[key(run)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_iterations", compile_once)
        patch.setattr(evaluation, "Matches", match_once)
        yield
