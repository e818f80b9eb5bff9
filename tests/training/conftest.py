"""Compiles each program once per test file, although every call of `train` builds its programs again."""

import json
import os

import pytest

from alphagat.config_fields import to_dict
from alphagat.training import loop


@pytest.fixture
def process_environment() -> dict[str, str]:
    """Returns the environment of a subprocess."""
    return os.environ | {"JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def programs_once():
    """Shares compiled programs among all runs of a file, keyed by function and config."""
    make_iterations, make_evaluator, programs, evaluators = loop.make_iterations, loop.RunEvaluator, {}, {}

    def key(run) -> str:
        values = to_dict(run.config)
        return json.dumps([{name: values[name] for name in values if name != "checkpoint"}, run.mesh.size])

    def compile_once(run, *arguments):
        if key(run) not in programs:
            programs[key(run)] = make_iterations(run, *arguments)
        return programs[key(run)]

    def prepare_once(run, recorded):
        if recorded is not None:  # as each run reads it
            return make_evaluator(run, recorded)
        if key(run) not in evaluators:
            evaluators[key(run)] = make_evaluator(run)
        return evaluators[key(run)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_iterations", compile_once)
        patch.setattr(loop, "RunEvaluator", prepare_once)
        yield
