"""Weight files round-trip and play identically; damaged ones are refused."""

import contextlib
import errno
import json
import os
from pathlib import Path

import chex
import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import alphagat
from alphagat.agents import weight_files
from alphagat.agents.agent import load
from alphagat.agents.sources import resolve
from alphagat.cli import export
from alphagat.errors import UserError
from alphagat.evaluation.openings import random_positions
from alphagat.training.resume import load_weights
from alphagat.training.setup import make_setups
from tests.fuzz import mutants
from tests.training.tiny import save_tiny_run, tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return save_tiny_run(tmp_path_factory.mktemp("weights") / "run", 7)


@pytest.fixture(scope="module")
def file(run, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    assert export.run(["--workdir", str(run), "--out", str(file)]) == 0
    return file


def prior_logits(agent, states):
    return jax.jit(agent.evaluator)(agent.params, states).prior_logits


def test_the_file_plays_like_its_run(run, file, capsys):
    from_run, from_file = load(run), load(file)
    assert (from_file.iteration, from_file.config, from_file.game.name) == (7, tiny_config(), "hex:2")
    chex.assert_trees_all_equal(from_run.params, from_file.params)
    larger = load(file, board="hex:4")
    states = random_positions(larger.game, 8, 0, 5, seed=0)
    np.testing.assert_array_equal(prior_logits(larger, states), prior_logits(load(run, board="hex:4"), states))


def test_a_full_disk_leaves_no_partial_file(run, tmp_path, monkeypatch, capsys):
    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert export.run(["--workdir", str(run), "--out", str(tmp_path / "new.safetensors")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_file_may_use_another_precision_than_its_run(run, file, tmp_path, capsys):
    half = tmp_path / "half.safetensors"
    assert export.run(["--workdir", str(run), "--out", str(half), "--precision", "bfloat16"]) == 0
    found, expected = load(half), load(file)
    assert (found.config.network.precision, expected.config.network.precision) == ("bfloat16", "float32")
    chex.assert_trees_all_equal(found.params, expected.params)
    states = random_positions(found.game, 8, 0, 3, seed=0)
    in_half, in_full = (prior_logits(each, states) for each in (found, expected))
    assert not np.array_equal(in_half, in_full)
    again = load(half, precision="float32")
    np.testing.assert_array_equal(prior_logits(again, states), in_full)
    assert export.run(["--workdir", str(run), "--out", str(tmp_path / "x.safetensors"), "--precision", "int8"]) == 2
    assert "config.network.precision='int8'" in capsys.readouterr().err


def test_a_run_starts_from_a_file(run, file):
    config = tiny_config()
    config.boards = ("hex:3",)
    (setup,) = make_setups(config)
    found = load_weights(str(file), setup)
    chex.assert_trees_all_equal(found, load(run).params)
    config.network.width, config.network.num_blocks = 16, 5
    with pytest.raises(UserError) as refusal:
        load_weights(str(file), make_setups(config)[0])
    fixes = f"set config.network.width=8 (now 16), config.network.num_blocks={tiny_config().network.num_blocks} (now 5)"
    assert str(refusal.value) == f"config.init_from={str(file)!r} has the weights of another network: {fixes}"


def test_a_shipped_name_resolves_to_its_file(file, monkeypatch, tmp_path):
    monkeypatch.setattr(weight_files, "FOLDER", file.parent)
    assert weight_files.shipped_names() == ["tiny"]
    assert alphagat.load("tiny").iteration == 7
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()  # a folder of that name takes precedence
    with pytest.raises(UserError, match="holds no run"):
        alphagat.load("tiny")


def changed(file: Path, tmp_path: Path, change: str) -> Path:
    found, arrays = tmp_path / "other.safetensors", load_file(file)
    config, iteration = weight_files.read_header(file)
    if change == "missing":
        return found
    if change == "cut short":
        found.write_bytes(file.read_bytes()[:-1])
    elif change == "no network":
        save_file({"x": np.zeros(3)}, found)
    elif change == "an array less":
        save_file(dict(list(arrays.items())[1:]), found, {"config": "{}", "iteration": "1"})
    elif change == "not ours":
        save_file(arrays, found, {"config": '{"colour": 1}', "iteration": "1"})
    elif change == "a negative iteration":
        save_file(arrays, found, {"config": "{}", "iteration": "-5"})
    elif change == "not finite":
        broken = {name: value.copy() for name, value in arrays.items()}
        broken["params/features/kernel"].flat[-1] = np.inf
        with safe_open(file, framework="numpy") as opened:
            save_file(broken, found, opened.metadata())
    elif change == "8 bits":  # a type that numpy lacks
        header = {"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}
        with safe_open(file, framework="numpy") as opened:
            header["__metadata__"] = opened.metadata()
        text = json.dumps(header).encode()
        found.write_bytes(len(text).to_bytes(8, "little") + text + bytes(2))
    elif change == "another shape":
        config.network.width = 16
        weight_files.write(found, load(file).params, config, iteration)
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("missing", "does not exist; use a run folder"),
        ("cut short", "cannot be read"),
        ("no network", "is not an AlphaGAT network: its metadata lacks 'config'"),
        ("an array less", "has arrays that do not match its config"),
        ("not ours", "config.colour is not a field"),
        ("a negative iteration", "cannot be read: its iteration is -5, but must be at least 0 and at most 1000000"),
        ("not finite", "holds the parameter params/features/kernel with values that are not finite"),
        ("8 bits", "has arrays that do not match its config"),
        ("another shape", "has arrays that do not match its config"),
    ],
)
def test_damaged_files_are_refused(file, tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        load(changed(file, tmp_path, change))


def test_another_iteration_is_refused(file):
    with pytest.raises(UserError, match="holds iteration 7, not 3"):
        load(file, 3)


MISTAKES = {
    "exists": ("tiny.safetensors", "exists, and nothing is overwritten"),
    "ending": ("tiny.npz", "end the name with .safetensors"),
    "folder": ("no/tiny.safetensors", "there is no folder"),
}


@pytest.mark.parametrize(("name", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_errors_give_one_line_and_exit_2(run, file, capsys, name, message):
    before = file.read_bytes()
    assert export.run(["--workdir", str(run), "--out", str(file.parent / name)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message in printed.err
    assert file.read_bytes() == before


def test_damaged_bytes_raise_only_user_errors(file, tmp_path, rounds: int):
    """Neither the header, a JSON object with the config inside, nor the parameters may raise anything else."""
    data, shapes = file.read_bytes(), jax.tree.map(jax.typeof, load(file).params)
    size = 8 + int.from_bytes(data[:8], "little")
    parts = {"header": [data[:size]], "body": [data[size:]], "all": [data]}
    read = 0
    for name, valid in parts.items():
        for damaged in mutants(valid, 150 * rounds):
            whole = {"header": damaged + data[size:], "body": data[:size] + damaged, "all": damaged}[name]
            (tmp_path / "x.safetensors").write_bytes(whole)
            with contextlib.suppress(UserError):
                chex.assert_trees_all_equal_shapes_and_dtypes(
                    resolve(tmp_path / "x.safetensors").read_params(shapes), shapes
                )
                read += 1
    assert 0 < read < 450 * rounds


def test_a_deep_config_is_refused(file, tmp_path):
    save_file(load_file(file), tmp_path / "x.safetensors", {"config": "[" * 200_000, "iteration": "1"})
    with pytest.raises(UserError, match="cannot be read: it is nested deeper than 100 levels"):
        load(tmp_path / "x.safetensors")


def test_a_folder_is_no_weight_file(tmp_path):
    (tmp_path / "x.safetensors").mkdir()
    with pytest.raises(UserError, match=r"x\.safetensors holds no run"):
        load(tmp_path / "x.safetensors")
