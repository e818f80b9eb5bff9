"""Checkpoints restore every leaf exactly on any number of devices, or raise."""

import errno
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.agents.build import param_shapes
from alphagat.errors import UserError
from alphagat.runs import checkpoint_writer, manifest
from alphagat.runs.checkpoint_writer import CheckpointWriter, set_aside
from alphagat.runs.folder import open_run_folder
from alphagat.runs.saved_checkpoints import SavedCheckpoints, list_steps
from alphagat.runtime import sharding
from alphagat.training.setup import make_setups
from alphagat.training.state import RunState, placed_shapes, state_shapes, state_shardings
from tests.training.tiny import run_of, save_tiny_run, tiny_config, tiny_run, tiny_setup

STEP = 3
DEVICES = (1, 2, 4, 8)


@pytest.fixture(scope="module")
def setup():
    return tiny_setup()


@pytest.fixture(scope="module")
def content(setup) -> RunState:
    """Returns a run state on the host in which every leaf is random."""
    generator = np.random.default_rng(0)

    def draw(leaf):
        if leaf.dtype == np.bool_:
            return generator.integers(0, 2, leaf.shape).astype(bool)
        if leaf.dtype == np.float32:
            return generator.normal(size=leaf.shape).astype(np.float32)
        return generator.integers(0, 100, leaf.shape).astype(leaf.dtype)

    return jax.tree.map(draw, state_shapes(run_of(setup, sharding.make_mesh(1))))


def on_devices(content: RunState, num_devices: int) -> RunState:
    mesh = sharding.make_mesh(num_devices)
    return jax.device_put(content, state_shardings(mesh, content))


@pytest.fixture(scope="module")
def saved(content, tmp_path_factory) -> dict[int, Path]:
    """Returns folders with `content` as step 3, by the number of devices that saved it."""
    folders = {}
    for num_devices in DEVICES:
        folders[num_devices] = tmp_path_factory.mktemp(f"saved_on_{num_devices}")
        with CheckpointWriter(folders[num_devices]) as writer:
            writer.save(on_devices(content, num_devices), STEP)
    return folders


def contents_of(folder: Path) -> dict[str, bytes | None]:
    """Returns every file and folder below a folder, with the contents of the files."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def reads(checkpoints: SavedCheckpoints, setup) -> list[tuple[str, Callable[[], Any]]]:
    """Returns every way to read a checkpoint, with the item that it reads."""
    run = run_of(setup, sharding.make_mesh(8))
    return [
        ("run", lambda: checkpoints.restore(placed_shapes(run), STEP)),
        ("run", lambda: checkpoints.read(state_shapes(run), STEP)),
        ("params", lambda: checkpoints.restore_params(param_shapes(setup.game, setup.network), STEP)),
    ]


def assert_equal(one, other):
    chex.assert_trees_all_equal(one, other, strict=True)


@pytest.mark.parametrize("devices_before", DEVICES)
@pytest.mark.parametrize("devices_after", DEVICES)
def test_restores_exactly_on_other_devices(setup, content, saved, devices_before: int, devices_after: int):
    mesh = sharding.make_mesh(devices_after)
    assert list_steps(saved[devices_before]) == [STEP]
    state = SavedCheckpoints(saved[devices_before]).restore(placed_shapes(run_of(setup, mesh)), STEP)
    assert_equal(state, content)
    assert jax.tree.map(lambda x: x.sharding, state) == state_shardings(mesh, state)


def test_params_item_equals_the_params_of_the_run(setup, content, saved):
    params = SavedCheckpoints(saved[8]).restore_params(param_shapes(setup.game, setup.network), STEP)
    assert_equal(params, content.train.params)


def test_params_are_read_onto_a_device_of_this_process(setup, content, saved, monkeypatch):
    mine = jax.devices()[1]  # as in the second of several processes
    monkeypatch.setattr(jax, "local_devices", lambda: [mine])
    params = SavedCheckpoints(saved[8]).restore_params(param_shapes(setup.game, setup.network), STEP)
    assert all(leaf.devices() == {mine} for leaf in jax.tree.leaves(params))


def test_a_saved_state_may_be_donated_at_once(setup, content, tmp_path):
    state = on_devices(content, 8)
    overwrite = jax.jit(lambda x: jax.tree.map(jnp.zeros_like, x), donate_argnums=0, keep_unused=True)
    with CheckpointWriter(tmp_path) as writer:
        writer.save(state, STEP)
        overwrite(state)
    restored = SavedCheckpoints(tmp_path).restore(placed_shapes(run_of(setup, sharding.make_mesh(8))), STEP)
    assert_equal(restored, content)


def test_keeps_the_latest_three_and_every_fourth(content, tmp_path):
    state = on_devices(content, 1)
    with CheckpointWriter(tmp_path, keep=3, keep_every=4) as writer:
        for step in range(1, 11):
            writer.save(state, step)
        writer.wait()
        assert list_steps(tmp_path) == [4, 8, 9, 10]
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"4", "8", "9", "10"}


def test_incomplete_checkpoints_are_not_steps(setup, content, saved, tmp_path):
    """Readers ignore and keep leftovers of a killed save and foreign files."""
    folder = tmp_path / "checkpoints"
    shutil.copytree(saved[8] / "checkpoints", folder)
    shutil.copytree(folder / str(STEP), folder / "4.orbax-checkpoint-tmp-1700000000")
    shutil.rmtree(folder / "4.orbax-checkpoint-tmp-1700000000" / "run")
    (folder / "5.orbax-checkpoint-tmp").mkdir()
    (folder / "notes.txt").write_text("mine")
    before = contents_of(tmp_path)
    assert list_steps(tmp_path) == [STEP]
    assert_equal(SavedCheckpoints(tmp_path).restore(placed_shapes(run_of(setup, sharding.make_mesh(8))), STEP), content)
    assert contents_of(tmp_path) == before


def test_a_checkpoint_of_another_run_is_damaged(setup, content, tmp_path):
    """Only fields that never change, and that both configs have, identify a run."""
    config = tiny_config()
    open_run_folder(tmp_path, config)
    with CheckpointWriter(tmp_path) as writer:
        writer.save(on_devices(content, 1), STEP)
    checkpoints = SavedCheckpoints(tmp_path)
    assert checkpoints.find_damage(STEP) is None
    config.num_iterations += 1
    open_run_folder(tmp_path, config)
    assert checkpoints.find_damage(STEP) is None
    manifest = json.loads((tmp_path / "checkpoints" / str(STEP) / "manifest.json").read_text())
    del manifest["run"]["search.num_simulations"]
    manifest["run"]["search.removed"] = 1
    (tmp_path / "checkpoints" / str(STEP) / "manifest.json").write_text(json.dumps(manifest))
    assert checkpoints.find_damage(STEP) is None
    manifest["run"]["seed"] = 1
    (tmp_path / "checkpoints" / str(STEP) / "manifest.json").write_text(json.dumps(manifest))
    assert checkpoints.find_damage(STEP) == "it belongs to a run with config.seed=1"
    for _, read in reads(checkpoints, setup):
        with pytest.raises(UserError, match=r"is damaged: it belongs to a run with config\.seed=1"):
            read()


def test_reading_creates_no_folder(tmp_path):
    assert list_steps(tmp_path / "run") == []
    assert not (tmp_path / "run").exists()


FILES = ("manifest.json", "run/_METADATA", "run/manifest.ocdbt", "run/d/*", "run/ocdbt.process_0/d/*", "params/d/*")
HOWS = ("gone", "cut", "emptied", "flipped", "noise")


def damage(step: Path, pattern: str, how: str) -> None:
    """Damages the largest file that matches a pattern."""
    path = max(step.glob(pattern), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
        return
    if how == "flipped":
        data[len(data) // 2] ^= 16
    elif how == "noise":
        data = bytearray(np.random.default_rng(0).bytes(len(data)))
    path.write_bytes(data[: {"cut": len(data) // 2, "emptied": 0}.get(how, len(data))])


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("pattern", FILES)
def test_damage_is_detected_and_changes_nothing(setup, saved, tmp_path, pattern: str, how: str):
    shutil.copytree(saved[8] / "checkpoints", tmp_path / "checkpoints")
    step = tmp_path / "checkpoints" / str(STEP)
    damage(step, pattern, how)
    before = contents_of(tmp_path)
    checkpoints = SavedCheckpoints(tmp_path)
    assert list_steps(tmp_path) == [STEP]
    assert checkpoints.find_damage(STEP)
    for item, read in reads(checkpoints, setup):
        if pattern == "manifest.json" and how == "flipped":
            continue  # the hash of one file, in one of the two items
        if pattern.split("/")[0] in (item, "manifest.json"):
            with pytest.raises(UserError) as refusal:
                read()
            assert f"checkpoint {step} is damaged: " in str(refusal.value)
            assert "\n" not in str(refusal.value)
        else:
            read()  # intact
    assert contents_of(tmp_path) == before


def test_intact_checkpoints_have_no_damage(saved):
    for folder in saved.values():
        assert SavedCheckpoints(folder).find_damage(STEP) is None


def test_an_unknown_file_is_damage(saved, tmp_path):
    shutil.copytree(saved[8] / "checkpoints", tmp_path / "checkpoints")
    (tmp_path / "checkpoints" / str(STEP) / "run" / "d" / "more").write_bytes(b"1")
    assert SavedCheckpoints(tmp_path).find_damage(STEP) == "run/d/more is not in manifest.json"


def test_a_checkpoint_that_the_run_deletes_meanwhile_is_damaged(saved, monkeypatch):
    def list_files(*_):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(manifest, "_files", list_files)
    damage = "its files cannot be listed (No such file or directory)"
    assert SavedCheckpoints(saved[1]).find_damage(STEP) == damage


def test_damaged_checkpoints_are_set_aside_under_distinct_names(content, tmp_path):
    for number in range(2):
        with CheckpointWriter(tmp_path) as writer:
            writer.save(on_devices(content, 1), STEP)
            writer.wait()
            before = contents_of(tmp_path / "checkpoints" / str(STEP))
            place = set_aside(tmp_path, STEP)
            assert place == tmp_path / "checkpoints" / "damaged" / ("3", "3.1")[number]
            assert contents_of(place) == before
            assert list_steps(tmp_path) == []


def test_a_step_is_replaced(setup, content, tmp_path):
    other = content.replace(iteration=np.int32(77))
    with CheckpointWriter(tmp_path) as writer:
        writer.save(on_devices(content, 1), STEP)
        writer.wait()
        writer.replace(on_devices(other, 1), STEP)
    restored = SavedCheckpoints(tmp_path).restore(placed_shapes(run_of(setup, sharding.make_mesh(1))), STEP)
    assert_equal(restored, other)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [str(STEP)]


def test_a_complete_step_is_on_disk(content, tmp_path, monkeypatch):
    sync, synced = os.fsync, set()

    def note(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    with CheckpointWriter(tmp_path) as writer:
        writer.save(on_devices(content, 1), STEP)
        writer.wait()
    for pattern in FILES:
        for file in (tmp_path / "checkpoints" / str(STEP)).glob(pattern):
            assert file.stat().st_ino in synced, file


def test_only_one_copy_of_a_state_exists(content, tmp_path, monkeypatch):
    """Writing takes longer than the next iteration."""
    sealed, started = threading.Event(), []
    copy, seal = checkpoint_writer._copy, CheckpointWriter._seal

    def copy_after_the_last(state):
        started.append(sealed.is_set())
        return copy(state)

    def seal_late(self):
        time.sleep(0.5)
        sealed.set()
        seal(self)

    monkeypatch.setattr(CheckpointWriter, "_seal", seal_late)
    monkeypatch.setattr(checkpoint_writer, "_copy", copy_after_the_last)
    with CheckpointWriter(tmp_path) as writer:
        for step in (STEP, STEP + 1):
            writer.save(on_devices(content, 1), step)
    assert started == [False, True]


def test_a_removed_folder_is_not_made_again(content, tmp_path):
    with CheckpointWriter(tmp_path) as writer:
        (tmp_path / "checkpoints").rmdir()
        with pytest.raises(UserError, match="checkpoints was moved or removed during the run"):
            writer.save(on_devices(content, 1), STEP)
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_cannot_be_replaced_remains(content, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("the disk is full")

    with CheckpointWriter(tmp_path) as writer:
        writer.save(on_devices(content, 1), STEP)
        writer.wait()
        before = contents_of(tmp_path / "checkpoints" / str(STEP))
        monkeypatch.setattr("alphagat.runs.checkpoint_writer.write_manifest", fail)
        with pytest.raises(OSError, match="the disk is full"):
            writer.replace(on_devices(content, 1), STEP)
        assert contents_of(tmp_path / "checkpoints" / str(STEP)) == before


@pytest.mark.parametrize("field", ["params", "average"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nonfinite_parameters_are_not_saved(content, tmp_path, bad: float, field: str):
    leaves, structure = jax.tree.flatten(content.train.params)
    leaves[-1] = leaves[-1].copy()
    leaves[-1].flat[0] = bad
    broken = content.replace(train=content.train.replace(**{field: jax.tree.unflatten(structure, leaves)}))
    with CheckpointWriter(tmp_path) as writer:
        with pytest.raises(FloatingPointError, match="after iteration 3"):
            writer.save(on_devices(broken, 8), STEP)
        assert list_steps(tmp_path) == []


def test_another_networks_checkpoint_is_refused(setup, saved):
    config = tiny_config()
    config.network.width = 16
    (other,) = make_setups(config)
    mesh = sharding.make_mesh(8)
    shapes, other_shapes = (state_shapes(run_of(each, mesh)) for each in (setup, other))
    # Orbax reads the arrays in no fixed order, so the message may name any of those that differ.
    misfits = {
        (stored.shape, wanted.shape)
        for stored, wanted in zip(jax.tree.leaves(shapes), jax.tree.leaves(other_shapes), strict=True)
        if stored.shape != wanted.shape
    }
    assert misfits
    found = "holds an array of shape {} where this network has {}; use the version of AlphaGAT"
    refusal = "|".join(re.escape(found.format(*misfit)) for misfit in misfits)
    checkpoints = SavedCheckpoints(saved[8])
    with pytest.raises(UserError, match=refusal):
        checkpoints.restore(placed_shapes(run_of(other, mesh)), STEP)
    with pytest.raises(UserError, match=refusal):
        checkpoints.restore_params(param_shapes(other.game, other.network), STEP)


def test_damage_in_one_step_hides_no_other_step(tmp_path):
    folder = save_tiny_run(tmp_path, 1, 2)
    (folder / "checkpoints" / "2" / "_CHECKPOINT_METADATA").write_text("[" * 100_000)
    assert list_steps(folder) == [1, 2]
    SavedCheckpoints(folder).restore(placed_shapes(tiny_run()), 1)
