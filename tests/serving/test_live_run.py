"""Tests what the live view reads of a run."""

import os
import shutil
import time
from pathlib import Path

import pytest

from alphagat.errors import ServiceError, UserError
from alphagat.games import make_game
from alphagat.games.batches import batch_of_one
from alphagat.games.states import first_state
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import open_run_folder
from alphagat.runs.metrics import METRICS_FILE, MetricsWriter
from alphagat.runtime import sharding
from alphagat.serving.live_run import LiveRun
from alphagat.serving.roster import Roster
from alphagat.training.setup import make_run
from alphagat.training.state import init_state
from tests.training.tiny import change_config, save_tiny_run, tiny_config, tiny_run


@pytest.fixture
def live(tmp_path):
    folder = save_tiny_run(tmp_path / "mine", 1)
    return folder, LiveRun(folder, Roster([str(folder)]))


def test_a_run_before_its_first_iteration(live):
    described = live[1].describe()
    assert (described["name"], described["iteration"], described["network"]) == ("mine", 0, 1)
    assert (described["end"], described["boards"]) == (tiny_config().num_iterations, ["hex:2"])
    assert (described["tiles"], described["charts"]) == ([], [])


def test_a_longer_run_is_shown_before_its_next_iteration(live):
    folder, run = live
    change_config(folder, num_iterations=400)
    assert run.describe()["end"] == 400


def test_a_named_board_replaces_those_of_the_run(live):
    folder = str(live[0])
    assert LiveRun(live[0], Roster([folder], "hex:4"), "hex:4").describe()["boards"] == ["hex:4"]


def test_new_iterations_are_read(live):
    folder, run = live
    with MetricsWriter(folder) as writer:
        for iteration in (1, 2, 3):
            writer.write(iteration, {"board": "hex:2", "frames": 10, "hours": 1.0, "train/value_loss": 0.5 / iteration})
            assert run.describe()["iteration"] == iteration
    described = run.describe()
    assert run.describe()["charts"] is described["charts"]  # not read again
    (chart,) = described["charts"]
    assert (chart["title"], chart["legend"][0]["value"]) == ("Value loss", "0.1667")
    assert set(chart["drawings"]) == {"iterations", "frames", "hours"}
    assert [tile["label"] for tile in described["tiles"]] == ["frames", "training"]


def test_the_age_of_the_newest_metrics(live):
    folder, run = live
    assert run.describe()["silent_s"] is None
    with MetricsWriter(folder) as writer:
        writer.write(1, {"board": "hex:2", "frames": 10, "hours": 1.0})
    assert 0 <= run.describe()["silent_s"] < 60
    now = time.time()
    os.utime(folder / METRICS_FILE, (now - 300, now - 300))
    assert 300 <= run.describe()["silent_s"] < 360


def test_a_new_checkpoint_is_loaded_and_a_deleted_one_does_no_harm(live):
    folder, run = live
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(tiny_run()), 2)
    assert run.describe()["network"] == 2
    shutil.rmtree(folder / "checkpoints" / "2")
    assert run.describe()["network"] == 2
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(tiny_run()), 3)
    file = next(each for each in (folder / "checkpoints" / "3").rglob("*") if each.is_file() and "d" in each.parts)
    file.write_bytes(b"damaged")
    assert run.describe()["network"] == 2


def test_a_run_that_was_started_anew_is_followed(live):
    folder, run = live
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(tiny_run()), 5)
    assert run.describe()["network"] == 5
    shutil.rmtree(folder)
    assert run.describe()["network"] == 5
    save_tiny_run(folder, 2)
    assert run.describe()["network"] == 2


@pytest.mark.parametrize(
    ("boards", "factor", "new"), [(("hex:2",), 2, "a different network"), (("mnk:4x4x3",), 1, "different boards")]
)
def test_a_run_that_was_started_anew_with_another_network_or_family_is_not_played(live, boards, factor, new):
    folder, run = live
    evaluate = run._roster.prepare(run._roster.program("hex:2", "", 4))
    shutil.rmtree(folder)
    config = tiny_config()
    config.boards = boards
    config.network.width *= factor
    open_run_folder(folder, config)
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(make_run(config, sharding.make_mesh(1))), 2)
    for _ in range(2):
        with pytest.raises(ServiceError, match=f"mine now has {new}; restart the command"):
            run.describe()
    evaluate(batch_of_one(first_state(make_game("hex:2"))))


def test_a_checkpoint_written_while_the_server_starts_is_loaded(tmp_path):
    folder = save_tiny_run(tmp_path / "mine", 1)
    roster = Roster([str(folder)])
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(tiny_run()), 2)
    run = LiveRun(folder, roster)
    assert run.describe()["network"] == roster.agent("hex:2", str(folder)).iteration == 2


def test_a_folder_without_a_run_raises(live, tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        LiveRun(tmp_path / "none", live[1]._roster)


def test_a_checkpoint_that_was_loaded_is_not_loaded_again(live, monkeypatch):
    folder, run = live
    with CheckpointWriter(folder) as writer:
        writer.save(init_state(tiny_run()), 2)
    assert run.describe()["network"] == 2
    monkeypatch.setattr(run._roster, "refresh", lambda: pytest.fail("loaded again"))
    assert run.describe()["network"] == 2


def test_metrics_of_the_future_are_new(live):
    """As with a clock of a file server that is ahead."""
    folder, run = live
    with MetricsWriter(folder) as writer:
        writer.write(1, {"board": "hex:2", "frames": 10, "hours": 1.0})
    os.utime(folder / METRICS_FILE, (time.time() + 300,) * 2)
    assert run.describe()["silent_s"] == 0


def test_the_iteration_is_that_of_the_last_line(live):
    folder, run = live
    with MetricsWriter(folder) as writer:
        writer.write(7, {"board": "hex:2", "frames": 10, "hours": 1.0})
    assert run.describe()["iteration"] == 7


def test_a_run_is_named_by_its_folder_from_inside(live, monkeypatch):
    monkeypatch.chdir(live[0])
    assert LiveRun(Path(), live[1]._roster).describe()["name"] == "mine"
