"""The training loop: resuming is bit-identical, and failures lose no data."""

import dataclasses
import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import multihost_utils

from alphagat.config import Config
from alphagat.errors import DiskError, UserError
from alphagat.games import make_game
from alphagat.runs import compile_times, trackers
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import read_config
from alphagat.runs.lock import FolderLock
from alphagat.runs.metrics import MetricsWriter, read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints, list_steps
from alphagat.runtime import preemption, sharding
from alphagat.runtime.preemption import Interrupted, Preempted
from alphagat.runtime.xla import CACHE_VARIABLE
from alphagat.training import iteration, iterations, loop, resume
from alphagat.training.announcements import closing_lines
from alphagat.training.evaluation import RunEvaluator
from alphagat.training.iterations import make_iterations
from alphagat.training.loop import is_due, train
from alphagat.training.pretraining.dataset import Recorded
from alphagat.training.reporter import Diverged
from alphagat.training.resume import with_another_key
from alphagat.training.setup import make_run
from alphagat.training.state import RunState, init_state, placed_shapes
from tests.processes import as_processes
from tests.runs.event_files import events
from tests.training.tiny import NUM_ITERATIONS, tiny_config, tiny_run, write_config

pytestmark = pytest.mark.usefixtures("programs_once")
TIMES = ("hours", "selfplay/games_per_s", "selfplay/simulations_per_s")  # differs between any two runs
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def finished(programs_once, tmp_path_factory) -> Path:
    """Returns the folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(tiny_config(), folder)
    return folder


def last_state(folder: Path) -> RunState:
    config, step = read_config(folder), list_steps(folder)[-1]
    return SavedCheckpoints(folder).restore(placed_shapes(make_run(config, sharding.make_mesh(config.mesh.data))), step)


def contents_of(folder: Path) -> dict[str, bytes | None]:
    return {str(each.relative_to(folder)): each.read_bytes() if each.is_file() else None for each in folder.rglob("*")}


def assert_same_run(folder: Path, other: Path) -> None:
    """Compares the last state bitwise and all metrics except times; each iteration must have one line."""
    one, two = last_state(folder), last_state(other)
    for (path, left), right in zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two), strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes(), jax.tree_util.keystr(path)
    lines = [read_metrics(each) for each in (folder, other)]
    assert [line["iteration"] for line in lines[0]] == list(range(1, NUM_ITERATIONS + 1))
    without_times = [[{k: v for k, v in line.items() if k not in TIMES} for line in each] for each in lines]
    assert without_times[0] == without_times[1]


def test_hours_exclude_compilation(tmp_path, monkeypatch):
    compiling, now, whole_day = loop._compile, time.perf_counter, [0.0]

    def compile_for_a_day(*arguments):
        programs = compiling(*arguments)
        whole_day[0] = 86_400.0
        return programs

    monkeypatch.setattr(loop, "_compile", compile_for_a_day)
    monkeypatch.setattr(time, "perf_counter", lambda: now() + whole_day[0])
    train(tiny_config(), tmp_path)
    assert read_metrics(tmp_path)[0]["hours"] < 1


def test_hours_continue_from_the_checkpoint(finished, tmp_path):
    """The hours of lost iterations do not count."""
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    for step in list_steps(folder):
        if step > 11:
            shutil.rmtree(folder / "checkpoints" / str(step))
    file = folder / "metrics.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        del line["crc32"]
        line["hours"] = float(line["iteration"])
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    train(tiny_config(), folder)
    *_, before, last = [line["hours"] for line in read_metrics(folder)]
    assert before == 11
    assert 11 < last < 11.5


def test_a_compilation_is_announced_with_the_duration_of_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(loop, "make_iterations", lambda *_: None)
    run, stages = tiny_run(), []
    report: Any = SimpleNamespace(stage=stages.append, say=lambda *lines: None)
    loop._compile(run, None, report, None)  # type: ignore[arg-type]
    loop._compile(run, None, report, None)  # type: ignore[arg-type]
    assert stages == ["compiling 1 program", "compiling 1 program, cached"]
    other = tiny_config()
    other.network.width = 12
    compile_times.remember(other, 21, 0)
    run.config.network.width = 16
    loop._compile(run, None, report, None)  # type: ignore[arg-type]
    assert stages[-1] == "compiling 1 program, about 21 s"


def test_processes_wait_for_each_other_before_they_compute_together(tmp_path, monkeypatch):
    done: list[str] = []
    for module, name in ((loop, "make_run"), (sharding, "agree"), (loop, "make_iterations")):
        call = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, name=name, call=call: done.append(name) or call(*a))
    monkeypatch.setattr(loop._Steps, "iterate", lambda *_: done.append("iterate"))
    monkeypatch.setattr(sharding, "wait_for_all", done.append)
    train(tiny_config(), tmp_path)
    assert done[:3] == ["starting", "agree", "make_run"]
    assert done[-3:] == ["agree", "make_iterations", "iterate"]


@pytest.mark.parametrize("agreed", [1, NUM_ITERATIONS + 1])
def test_a_resumed_run_of_several_processes_ends_at_the_agreed_iteration(finished, tmp_path, monkeypatch, agreed: int):
    """JAX agrees on the number after the last call of any process: on 1 if SIGTERM arrives before the first call."""
    folder, config = shutil.copytree(finished, tmp_path / "run"), tiny_config()
    config.num_iterations = NUM_ITERATIONS + 2
    monkeypatch.setattr(multihost_utils, "reached_preemption_sync_point", lambda step: step == agreed)
    is_preempted = loop._is_preempted

    def ask_as_one_of_two(*arguments: Any, **flags: Any) -> bool:
        with monkeypatch.context() as patched:
            patched.setattr(jax, "process_count", lambda: 2)
            return is_preempted(*arguments, **flags)

    monkeypatch.setattr(loop, "_is_preempted", ask_as_one_of_two)
    with pytest.raises(Preempted):
        train(config, folder)
    assert list_steps(folder)[-1] == NUM_ITERATIONS + 1


def test_a_trace_outside_the_run_is_refused(tmp_path):
    with pytest.raises(UserError, match=f"--profile 2:{NUM_ITERATIONS + 1}: "):
        train(tiny_config(), tmp_path / "run", profile=f"2:{NUM_ITERATIONS + 1}")
    assert not (tmp_path / "run").exists()


def test_is_due():
    assert [step for step in range(1, 8) if is_due(step, 3, last=7)] == [3, 6, 7]
    assert not any(is_due(step, 0, last=7) for step in range(1, 8))


def test_metrics_have_the_documented_names(finished):
    lines = read_metrics(finished)
    every_line = {"iteration", "board", "frames", "hours", "train/policy_loss", "train/value_loss", "train/grad_norm"}
    every_line |= {"train/policy_entropy", "train/learning_rate", "selfplay/game_length", "selfplay/games_per_s"}
    every_line |= {"selfplay/simulations_per_s"}
    for line in lines:
        assert every_line <= line.keys()
        assert ("num_games" in line) == ("results" in line) == (line["iteration"] % 4 == 0)
    results = [(each.name, each.opponent) for each in lines[-1]["results"]]
    assert results == [("win_rate", "random"), ("win_rate", "previous"), ("elo", None)]
    assert [line["frames"] for line in lines] == [64 * n for n in range(1, NUM_ITERATIONS + 1)]
    assert [line["train/policy_loss"] is None for line in lines] == [True] + [False] * (NUM_ITERATIONS - 1)
    hours = [line["hours"] for line in lines]
    assert hours == sorted(hours)
    assert all(line["selfplay/simulations_per_s"] > 0 for line in lines)
    assert all(2 < line["selfplay/game_length"] <= 4 for line in lines)


def test_every_evaluation_draws_a_game(finished):
    pictures = [
        (event.step, value.tag) for event in events(finished) for value in event.summary.value if value.image.width
    ]
    assert pictures == [(iteration, "games/hex:2") for iteration in range(4, NUM_ITERATIONS + 1, 4)]


def test_run_folder_contents(finished):
    assert {path.name for path in finished.iterdir()} == {
        "config.json",
        "env.json",
        "metrics.jsonl",
        "checkpoints",
        "tensorboard",
        "elo.svg",
    }
    assert {int(path.name) for path in (finished / "checkpoints").iterdir()} == {10, 11, 12}
    assert int(last_state(finished).iteration) == NUM_ITERATIONS


class Stopped(BaseException):
    """Simulates an abrupt end of the process."""


def test_resume_is_bit_identical(finished, tmp_path, monkeypatch, capsys):
    """Stops before saving iterations 2 and 4, after their metrics are written; 4 has an evaluation. The last start has
    a tracker, which gets the metrics of its iterations and disturbs nothing.
    """
    tracked: dict[int, dict] = {}
    monkeypatch.setitem(
        trackers.OPENERS,
        "mlflow",
        lambda *_: trackers.Tracker("id", lambda values, iteration: tracked.update({iteration: values}), lambda: None),
    )
    save, stops = CheckpointWriter.save, [2, 4]

    def stop(self, state, step):
        if stops and step == stops[0]:
            stops.pop(0)
            raise Stopped
        save(self, state, step)

    monkeypatch.setattr(CheckpointWriter, "save", stop)
    folder, starts = tmp_path / "run", 1
    while stops:
        lost = stops[0]
        with pytest.raises(Stopped):
            train(tiny_config(), folder)
        assert read_metrics(folder)[-1]["iteration"] == lost
        starts += 1
    capsys.readouterr()
    train(changed(tiny_config(), "trackers", ("mlflow",)), folder)
    assert f"resumed after iteration {lost - 1}" in capsys.readouterr().out
    assert_same_run(folder, finished)
    lines = read_metrics(folder)[lost - 1 :]
    assert sorted(tracked) == [line["iteration"] for line in lines]
    assert [tracked[line["iteration"]]["train/policy_loss"] for line in lines] == [
        line["train/policy_loss"] for line in lines
    ]
    assert "eval/vs_random/win_rate" in tracked[NUM_ITERATIONS]
    assert len(json.loads((folder / "env.json").read_text())) == starts


def test_resume_after_a_kill_and_sigterm_is_bit_identical(finished, tmp_path, process_environment):
    """SIGKILL ends the first command at a random moment during or after a save; SIGTERM ends the second."""
    folder, file = tmp_path / "run", write_config(tiny_config(), tmp_path / "tiny.py")
    command = [
        sys.executable,
        "-m",
        "alphagat",
        "train",
        f"--config={file}",
        f"--workdir={folder}",
        "--config.mesh.data=8",
    ]

    def stop_after(step: int, stop: signal.Signals) -> tuple[int, str]:
        with subprocess.Popen(command, cwd=ROOT, env=process_environment, stderr=subprocess.PIPE, text=True) as run:
            while run.poll() is None and not (folder / "checkpoints" / str(step)).exists():
                time.sleep(0.005)
            time.sleep(random.Random(0).uniform(0, 0.15))
            run.send_signal(stop)
            _, said = run.communicate(timeout=120)
        return run.returncode, said

    assert stop_after(1, signal.SIGKILL)[0] == -signal.SIGKILL
    status, said = stop_after(4, signal.SIGTERM)
    assert status == 75
    assert said.splitlines()[-1] == "ended by a signal after saving; run the same command to resume"
    assert 4 <= last_state(folder).iteration < NUM_ITERATIONS
    ended = subprocess.run(command, cwd=ROOT, env=process_environment, capture_output=True, text=True, check=True)
    assert "resumed after iteration" in ended.stdout
    assert f"checkpoint: {folder / 'checkpoints' / str(NUM_ITERATIONS)}" in ended.stdout
    assert ended.stderr == ""
    assert_same_run(folder, finished)


@pytest.mark.parametrize(
    ("number", "ending"),
    [(signal.SIGTERM, Preempted), (signal.SIGHUP, Preempted), (signal.SIGINT, Interrupted)],
    ids=("SIGTERM", "SIGHUP", "Ctrl-C"),
)
def test_resume_after_a_request_to_stop_is_bit_identical(finished, tmp_path, monkeypatch, number, ending):
    run_iteration, moments = iterations.run_iteration, [1, 6, 7]

    def run_and_terminate(program, state, board):
        if moments and int(state.iteration) + 1 == moments[0]:
            moments.pop(0)
            signal.raise_signal(number)
        return run_iteration(program, state, board)

    monkeypatch.setattr(iterations, "run_iteration", run_and_terminate)
    folder = tmp_path / "run"
    while moments:
        moment = moments[0]
        with pytest.raises(ending) as ended:
            train(changed(tiny_config(), "checkpoint.every", 100), folder)
        assert ended.value.is_saved
        assert list_steps(folder)[-1] == moment
    train(tiny_config(), folder)
    assert_same_run(folder, finished)


def test_a_request_to_stop_while_games_are_read_saves_nothing(tmp_path, monkeypatch):
    config = tiny_config()
    config.pretrain.games = ("games.sgf",)

    def read_for_an_hour(run, folder):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(3600)

    monkeypatch.setattr(loop, "read_recorded", read_for_an_hour)
    with pytest.raises(Preempted) as ended:
        train(config, tmp_path / "run")
    assert not ended.value.is_saved
    assert not (tmp_path / "run").exists()


def test_an_ignored_interrupt_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with preemption.listening():
            signal.raise_signal(signal.SIGINT)
            assert not preemption.is_requested()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_interrupt_ends_at_once(tmp_path, monkeypatch, capfd):
    run_iteration = iterations.run_iteration

    def run_and_interrupt(program, state, board):
        if int(state.iteration) == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return run_iteration(program, state, board)

    monkeypatch.setattr(iterations, "run_iteration", run_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(changed(tiny_config(), "checkpoint.every", 100), tmp_path / "run")
    assert capfd.readouterr().err.count("Ctrl-C again ends at once") == 1
    assert list_steps(tmp_path / "run") == [1]


def test_an_evaluation_without_enough_memory_is_named_and_repeated(finished, tmp_path, monkeypatch):
    play, moments = RunEvaluator.evaluate, [4]

    def exhaust(self, state, iteration, stage):
        if moments and iteration == moments[0]:
            moments.pop()
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB.")
        return play(self, state, iteration, stage)

    monkeypatch.setattr(RunEvaluator, "evaluate", exhaust)
    folder = tmp_path / "run"
    with pytest.raises(
        UserError, match=r"^config\.evaluation\.num_games=.* out of memory in the evaluation of iteration 4"
    ):
        train(tiny_config(), folder)
    state = last_state(folder)
    assert (int(state.iteration), int(state.evaluated)) == (4, 0)
    train(tiny_config(), folder)
    assert_same_run(folder, finished)


def test_sigterm_in_a_match_saves_at_once_and_replays_the_match(finished, tmp_path, monkeypatch):
    """In the matches of iterations 4 and 12, the last one; uninterrupted, they would take an hour."""
    play, moments = RunEvaluator.evaluate, [4, 12]

    def play_for_an_hour(self, state, iteration, stage):
        if moments and iteration == moments[0]:
            moments.pop(0)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(3600)
        return play(self, state, iteration, stage)

    monkeypatch.setattr(RunEvaluator, "evaluate", play_for_an_hour)
    folder = tmp_path / "run"
    while moments:
        moment = moments[0]
        with pytest.raises(Preempted):
            train(tiny_config(), folder)
        state = last_state(folder)
        assert (int(state.iteration), int(state.evaluated)) == (moment, moment - 4 if moment == 4 else 8)
        line = read_metrics(folder)[-1]
        assert line["iteration"] == moment
        assert "results" not in line
    train(tiny_config(), folder)
    assert_same_run(folder, finished)


def break_gradients(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Makes the gradients of iteration 7 and later NaN in the programs of the first `times` starts."""
    make, starts = iteration.make_find_gradients, []

    def make_broken(setup, mesh):
        find, number = make(setup, mesh), len(starts)
        starts.append(number)

        def find_gradients(params, scale, board, keys):
            gradients, parts = find(params, scale, board, keys)
            factor = jnp.where((board.iteration >= 6) & (number < times), jnp.nan, 1.0)
            return jax.tree.map(lambda x: x * factor, gradients), parts

        return find_gradients

    monkeypatch.setattr(iteration, "make_find_gradients", make_broken)
    monkeypatch.setattr(loop, "make_iterations", make_iterations)


def unstable_config() -> Config:
    """Returns a config that tolerates five non-finite updates in a row; an iteration has two."""
    config = changed(tiny_config(), "learner.max_skipped", 5)
    config.mesh.data, config.evaluation.every = 1, 0
    return config


def test_nonfinite_updates_roll_the_run_back(tmp_path, monkeypatch, capsys):
    break_gradients(monkeypatch, times=1)
    config = unstable_config()
    config.checkpoint.every = 4
    folder = tmp_path / "run"
    train(config, folder)
    said = " ".join(capsys.readouterr().out.split())
    assert "updates were not finite: retry 1 from the last checkpoint" in said
    assert "resumed after iteration 8" in said
    state = last_state(folder)
    assert (int(state.iteration), int(state.rollbacks), int(state.train.health.skipped_in_a_row)) == (12, 1, 0)
    assert [line["iteration"] for line in read_metrics(folder)] == list(range(1, 13))
    assert read_metrics(folder)[7]["train/skipped"] == 4
    assert read_metrics(folder)[7]["train/grad_norm"] is None


def break_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the network's outputs NaN in self-play of iteration 7 and later, in the programs of the first start."""
    play, starts = iteration.play_iteration, []

    def make_broken(*arguments):
        starts.append(None)
        return make_iterations(*arguments)

    def play_broken(setup, params, games, number, *others):
        factor = jnp.where((number >= 6) & (len(starts) == 1), jnp.nan, 1.0)
        return play(setup, jax.tree.map(lambda x: x * factor, params), games, number, *others)

    monkeypatch.setattr(iteration, "play_iteration", play_broken)
    monkeypatch.setattr(loop, "make_iterations", make_broken)


@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])  # PUCT's policy target is finite although its values are not
def test_nonfinite_searches_roll_the_run_back(tmp_path, monkeypatch, capsys, algorithm: str):
    break_searches(monkeypatch)
    config = changed(unstable_config(), "search.algorithm", algorithm)
    train(config, tmp_path / "run")
    said = " ".join(capsys.readouterr().out.split())
    assert "searches of iteration 7 were not finite: retry 1 from the last checkpoint" in said
    assert "resumed after iteration 6" in said
    assert [line["iteration"] for line in read_metrics(tmp_path / "run")] == list(range(1, 13))


def test_nonfinite_parameters_roll_the_run_back(tmp_path, monkeypatch, capsys):
    save, pending = CheckpointWriter.save, [6]

    def fail_once(self, state, step):
        if step in pending:
            pending.remove(step)
            raise FloatingPointError
        save(self, state, step)

    monkeypatch.setattr(CheckpointWriter, "save", fail_once)
    train(tiny_config(), tmp_path / "run")
    said = " ".join(capsys.readouterr().out.split())
    assert "the parameters after iteration 6 were not finite: retry 1 from the last checkpoint" in said
    assert "resumed after iteration 5" in said
    assert [line["iteration"] for line in read_metrics(tmp_path / "run")] == list(range(1, 13))


def test_only_returns_to_one_checkpoint_are_counted(monkeypatch):
    monkeypatch.setattr(loop, "MAX_ROLLBACKS", 2)
    run, attempts = tiny_run(), loop._Attempts()
    counts = []
    for fails, step in ((False, 0), (True, 0), (False, 0), (True, 0), (True, 20), (True, 20)):
        attempts.error = Diverged("updates were not finite") if fails else None
        counts.append(attempts.count(run, step))
    assert counts == [0, 1, 1, 2, 1, 2]
    attempts.error = Diverged("updates were not finite")
    with pytest.raises(UserError, match="even after 2 returns"):
        attempts.count(run, 20)


def test_a_retry_starts_without_the_old_state(monkeypatch):
    """Two states may not fit into memory."""
    alive, states = [], []

    class State:
        pass

    def fail(run, folder, claim, profiler, attempts, recorded):
        alive.append([each() for each in states if each() is not None])
        if len(states) < 2:
            state = State()
            states.append(weakref.ref(state))
            raise Diverged("updates were not finite")

    monkeypatch.setattr(loop, "_train", fail)
    nothing: Any = None
    loop._retry(nothing, nothing, nothing, nothing, nothing)
    assert alive == [[], [], []]


def test_each_return_has_another_key_and_count():
    state = init_state(tiny_run())
    retries = [with_another_key(state, number) for number in (1, 2)]
    assert [int(each.rollbacks) for each in retries] == [1, 2]
    later = state.replace(rollbacks=jnp.full_like(state.rollbacks, 3))
    assert [int(with_another_key(later, number).rollbacks) for number in (1, 2)] == [4, 5]
    assert len({each.key.tobytes() for each in jax.device_get((state, *retries))}) == 3
    folded = [jax.random.fold_in(jax.random.wrap_key_data(state.key), number) for number in (1, 2)]
    of_iterations = [jax.device_get(jax.random.key_data(key)).tobytes() for key in folded]
    assert not {each.key.tobytes() for each in jax.device_get(retries)} & {*of_iterations}


def test_persistent_nonfinite_updates_end_the_run(tmp_path, monkeypatch):
    break_gradients(monkeypatch, times=10)
    monkeypatch.setattr(loop, "MAX_ROLLBACKS", 1)
    config = unstable_config()
    with pytest.raises(UserError, match=r"config\.learner\.learning_rate=.* were not finite, even after"):
        train(config, tmp_path / "run")
    params = last_state(tmp_path / "run").train.params
    chex.assert_tree_all_finite(params)


def test_metrics_are_on_disk_before_their_checkpoint():
    """A power loss may take what is only flushed."""
    done: list[str] = []
    nothing: Any = None
    report: Any = SimpleNamespace(sync=lambda: done.append("metrics"))
    checkpoints: Any = SimpleNamespace(save=lambda *_: done.append("checkpoint"))
    loop._Steps(nothing, nothing, nothing, checkpoints, report, nothing)._save(nothing, 4)
    assert done == ["metrics", "checkpoint"]


def test_restarting_a_finished_run_changes_nothing(finished, capsys):
    before = contents_of(finished)
    train(tiny_config(), finished)
    printed = capsys.readouterr().out
    assert f"nothing to do: {NUM_ITERATIONS} iterations done" in printed
    assert "config.num_iterations=12; raise it" in printed
    assert f"alphagat play {finished}" in " ".join(printed.split())
    assert contents_of(finished) == before


@pytest.mark.parametrize("rank", [0, 1])
def test_only_the_first_process_says_that_a_run_is_finished(monkeypatch, capsys, rank: int):
    nothing: Any = None
    state: Any = SimpleNamespace(evaluated=NUM_ITERATIONS)
    monkeypatch.setattr(loop, "find_start", lambda *_: resume.Start(state, NUM_ITERATIONS, {}))
    run = tiny_run()
    monkeypatch.setattr(jax, "process_index", lambda: rank)
    loop._train(run, Path("runs/1"), nothing, nothing, nothing, nothing)
    assert ("nothing to do: 12 iterations done" in capsys.readouterr().out) == (rank == 0)


@pytest.mark.parametrize(
    ("board", "num_players", "opponent"), [("hex:3", 2, "mcts:100"), ("2048", 1, "random"), ("2048", 2, "random")]
)
def test_the_last_lines_name_an_opponent_of_the_board(monkeypatch, board: str, num_players: int, opponent: str):
    game = make_game(board)
    monkeypatch.setattr(type(game), "num_players", num_players)
    assert f"alphagat evaluate runs/1 --opponent {opponent} " in closing_lines(game, Path("runs/1"), 8)[-1]
    assert sum(line.endswith("alphagat play 'my runs/1'") for line in closing_lines(game, Path("my runs/1"), 8)) == 1


def test_a_config_is_named_by_its_file(finished, tmp_path, capsys):
    file = write_config(tiny_config(), tmp_path / "tiny.py")
    for name in (str(file), file):
        train(name, finished)
        assert "nothing to do" in capsys.readouterr().out
    with pytest.raises(UserError, match="config tinny: there is no such file or config"):
        train("tinny", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("workdir", [None, 7, b"run"])
def test_a_folder_of_another_type_is_refused(workdir: Any):
    with pytest.raises(UserError, match=r"^workdir=.*: it must be a path; name a folder, such as runs/hex$"):
        train(tiny_config(), workdir)


@pytest.mark.parametrize("config", [None, {"num_iterations": 3}, 7])
def test_a_config_of_another_type_is_refused(tmp_path, config: Any):
    with pytest.raises(
        UserError, match=r"^config=.*: it must be an alphagat\.config\.Config, the name of a config, or a"
    ):
        train(config, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def refuse_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_):
        raise AssertionError("training began")

    monkeypatch.setattr(loop._Steps, "iterate", begin)


def changed(config: Config, path: str, value: object) -> Config:
    section, _, name = path.rpartition(".")
    setattr(getattr(config, section) if section else config, name, value)
    return config


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("boards", ("hex:3",), "config.boards=hex:3, but the run in .* has hex:2: set --config.boards=hex:2 to"),
        ("network.width", 16, "config.network.width=16, but the run in"),
        ("network.name", "resnet", "config.network.name=resnet, but the run in"),
        ("mesh.data", 9, r"config.mesh.data=9: |config.selfplay.num_groups=8: it must be a multiple"),
        ("boards", ("hexx:3",), "board hexx:3: there is no such game"),
        ("learner.batch_size", 12, "config.learner.batch_size=12: it must be a multiple of"),
        ("search.num_simulations", 0, "config.search.num_simulations=0: it must be at least 1"),
        ("num_iterations", 1, "config.num_iterations=1 ends before the first update"),
    ],
)
def test_a_config_that_differs_from_the_run_is_refused(finished, monkeypatch, path: str, value: object, message: str):
    refuse_iterations(monkeypatch)
    before = contents_of(finished)
    with pytest.raises(UserError, match=message) as refusal:
        train(changed(tiny_config(), path, value), finished)
    assert "\n" not in str(refusal.value)
    assert contents_of(finished) == before


def test_devices_must_exist_and_divide_the_groups(tmp_path, monkeypatch):
    refuse_iterations(monkeypatch)
    config = tiny_config()
    config.selfplay.num_groups, config.mesh.data, config.selfplay.num_games = 16, 16, 16
    with pytest.raises(UserError, match=r"config\.mesh\.data=16, but JAX has 8 cpu"):
        train(config, tmp_path / "run")
    config.selfplay.num_groups, config.mesh.data = 4, 0
    with pytest.raises(
        UserError, match=r"config\.selfplay\.num_groups=4 is not a multiple of 8, the number of devices"
    ):
        train(config, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_checkpoint_falls_back_to_the_previous_one(finished, tmp_path, capsys):
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    (folder / "checkpoints" / "12" / "run" / "manifest.ocdbt").write_bytes(b"")
    (folder / "checkpoints" / "11" / "manifest.json").unlink()
    damaged = contents_of(folder / "checkpoints" / "12")
    train(tiny_config(), folder)
    assert_same_run(folder, finished)
    said = " ".join(capsys.readouterr().out.split())
    assert "checkpoint 12 is damaged (run/manifest.ocdbt has changed since it was written)" in said
    assert "checkpoint 11 is damaged (manifest.json is missing)" in said
    assert "resumed after iteration 10" in said
    assert contents_of(folder / "checkpoints" / "damaged" / "12") == damaged


def test_no_intact_checkpoint_refuses_to_start(finished, tmp_path, monkeypatch):
    """A run without an intact checkpoint does not silently restart."""
    refuse_iterations(monkeypatch)
    monkeypatch.setattr(resume, "init_state", lambda *_: pytest.fail("started from scratch"))
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    for step in (10, 11, 12):
        (folder / "checkpoints" / str(step) / "run" / "manifest.ocdbt").write_bytes(b"")
    before = contents_of(folder)
    with pytest.raises(UserError, match=r"none of the checkpoints \[10, 11, 12\] .* nothing was changed"):
        train(changed(tiny_config(), "num_iterations", 20), folder)
    assert contents_of(folder) == before


def test_removing_a_checkpoint_resumes_from_the_previous_one(finished, tmp_path):
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    (folder / "checkpoints" / "12").rename(tmp_path / "12")
    train(tiny_config(), folder)
    assert_same_run(folder, finished)


def test_lost_checkpoints_are_not_a_new_run(finished, tmp_path, monkeypatch):
    refuse_iterations(monkeypatch)
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    (folder / "checkpoints").rename(tmp_path / "checkpoints")
    before = contents_of(folder)
    with pytest.raises(
        UserError, match=r"metrics\.jsonl has iterations, but .* has no checkpoint; nothing was changed"
    ):
        train(tiny_config(), folder)
    assert contents_of(folder) == before


def test_a_replacement_that_was_cut_short_is_undone(finished, tmp_path):
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    for step in ("10", "11"):
        shutil.rmtree(folder / "checkpoints" / step)
    (folder / "checkpoints" / "12").rename(folder / "checkpoints" / "12.replaced")
    train(tiny_config(), folder)
    assert_same_run(folder, finished)
    assert not list((folder / "checkpoints").glob("*.replaced"))


def test_a_renamed_checkpoint_is_damaged(finished, tmp_path, capsys):
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    shutil.rmtree(folder / "checkpoints" / "12")
    (folder / "checkpoints" / "10").rename(folder / "checkpoints" / "12")
    train(tiny_config(), folder)
    assert_same_run(folder, finished)
    said = " ".join(capsys.readouterr().out.split())
    assert "checkpoint 12 is damaged (it is the checkpoint of step 10)" in said
    assert "resumed after iteration 11" in said


def test_lost_metrics_are_reported(finished, tmp_path, capsys):
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    shutil.rmtree(folder / "checkpoints" / "12")
    (folder / "metrics.jsonl").write_text("[" * 100_000)  # without an end of line, as if a crash had cut it
    train(tiny_config(), folder)
    said = " ".join(capsys.readouterr().out.split())
    assert "11 of 11 iterations missing; metrics.jsonl.damaged keeps the old file" in said
    assert (folder / "metrics.jsonl.damaged").stat().st_size == 100_000
    assert [line["iteration"] for line in read_metrics(folder)] == [12]


def test_steps_that_orbax_cannot_open_are_set_aside(finished, tmp_path, capsys):
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    shutil.rmtree(folder / "checkpoints" / "12")
    (folder / "checkpoints" / "12").symlink_to("nowhere")
    (folder / "checkpoints" / "10" / "_CHECKPOINT_METADATA").write_text("[" * 100_000)
    train(tiny_config(), folder)
    said = " ".join(capsys.readouterr().out.split())
    assert "checkpoint 12 is damaged (manifest.json is missing)" in said
    assert "checkpoint 10 is damaged (_CHECKPOINT_METADATA cannot be read" in said
    assert "resumed after iteration 11" in said
    assert_same_run(folder, finished)


def one_after_another(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> list[Any]:
    """Calls a function as the first of two processes, then as the second, which receives what the first sent; returns
    the results, or the messages of the errors.
    """
    sent, results = [], []

    def broadcast(value):
        if jax.process_index() > 0:
            return sent.pop(0)
        sent.append(value)
        return value

    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(multihost_utils, "broadcast_one_to_all", broadcast)
    monkeypatch.setattr(
        multihost_utils, "process_allgather", lambda value: broadcast(np.stack([value, np.zeros_like(value)]))
    )
    for rank in range(2):
        monkeypatch.setattr(jax, "process_index", lambda rank=rank: rank)
        try:
            results.append(function())
        except UserError as error:
            results.append(str(error))
    return results


@pytest.mark.parametrize(
    ("steps", "damaged", "found"),
    [((), (), (None, {})), ((0, 4), (), (4, {})), ((4, 8, 9), (8, 9), (4, {8: "cut", 9: "cut"}))],
)
def test_all_processes_take_the_checkpoint_of_the_first(tmp_path, monkeypatch, steps, damaged, found):
    for step in steps:
        (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
    monkeypatch.setattr(SavedCheckpoints, "find_damage", lambda self, step: "cut" if step in damaged else None)
    monkeypatch.setattr(SavedCheckpoints, "find_metadata_damage", lambda self, step: None)
    both = one_after_another(monkeypatch, lambda: resume._agree_on_step(tmp_path))
    assert both == [found, (found[0], {})]


def test_only_the_first_process_names_the_damaged_checkpoints(tmp_path, monkeypatch):
    for step in (20, 40):
        (tmp_path / "checkpoints" / str(step)).mkdir(parents=True)
    run = tiny_run()
    first, second = one_after_another(monkeypatch, lambda: resume.find_start(run, tmp_path))
    assert first.startswith("none of the checkpoints [20, 40] in ")
    assert second == first


def test_processes_with_other_versions_or_configs_are_refused(monkeypatch):
    configs = [changed(tiny_config(), "learner.learning_rate", rate) for rate in (0.1, 0.2)]
    works = [lambda config=config: loop._check_same_start(config) for config in configs]
    said = "config.learner.learning_rate differs between the processes; start all of them with the same command"
    assert as_processes(monkeypatch, works) == [(said, True), (said, False)]
    monkeypatch.setattr(loop, "package_versions", lambda: {"jax": jax.process_index()})
    said = "the version of jax differs between the processes; install the same one on all machines"
    assert as_processes(monkeypatch, works) == [(said, True), (said, False)]


def test_processes_with_other_games_are_refused(tmp_path, monkeypatch):
    digests = iter("ab")
    monkeypatch.setattr(loop, "read_recorded", lambda *_: Recorded([], [], {"hex:2": next(digests)}))
    said = "--games: the set of positions of hex:2 differs between the processes; give all of them the same files"
    run = tiny_run()
    assert as_processes(monkeypatch, [lambda: loop._read_games(run, tmp_path)] * 2) == [(said, True), (said, False)]


def test_processes_that_cut_the_network_elsewhere_are_refused(monkeypatch):
    run = tiny_run()
    (setup,) = run.boards

    def check(*cut: int) -> None:
        network: Any = SimpleNamespace(blocks_per_stage=cut)
        loop._check_same_cut(dataclasses.replace(run, boards=(dataclasses.replace(setup, network=network),)))

    said = (
        "config.mesh.stage=1: the cut of the network for hex:2 differs between the processes; set config.mesh.memory_gb"
    )
    assert as_processes(monkeypatch, [lambda: check(2, 1), lambda: check(1, 2)]) == [(said, True), (said, False)]


def test_a_run_whose_folder_is_moved_stops_and_continues_once_it_is_back(finished, tmp_path, monkeypatch):
    folder, moved, run_iteration = tmp_path / "run", tmp_path / "moved", iterations.run_iteration

    def run_and_move(program, state, board):
        if int(state.iteration) == 2:
            folder.rename(moved)
        return run_iteration(program, state, board)

    with monkeypatch.context() as patch:
        patch.setattr(iterations, "run_iteration", run_and_move)
        with pytest.raises(UserError, match="was moved or removed during the run; move it back"):
            train(changed(tiny_config(), "checkpoint.every", 100), folder)
    moved.rename(folder)
    train(tiny_config(), folder)
    assert_same_run(folder, finished)


def test_a_folder_in_use_is_refused_and_unchanged(finished, monkeypatch):
    refuse_iterations(monkeypatch)
    with FolderLock(finished) as lock:
        lock.take()
        before = contents_of(finished)
        with pytest.raises(UserError, match=f"is in use by process {os.getpid()} on host"):
            train(changed(tiny_config(), "num_iterations", 20), finished)
        assert contents_of(finished) == before


def test_a_run_that_starts_meanwhile_is_not_overwritten(finished, tmp_path, monkeypatch):
    """Another process starts a run in a new folder while this one prepares its own."""
    refuse_iterations(monkeypatch)
    folder, find_start = tmp_path / "run", loop.find_start

    def find_start_meanwhile(*arguments):
        start = find_start(*arguments)
        copy_tree(finished, folder)
        return start

    monkeypatch.setattr(loop, "find_start", find_start_meanwhile)
    with pytest.raises(UserError, match="another run has started there; repeat the command to resume it"):
        train(tiny_config(), folder)
    assert contents_of(folder) == contents_of(finished)


def test_damaged_outputs_do_not_stop_a_run(finished, tmp_path, capsys):
    folder = tmp_path / "run"
    copy_tree(finished, folder)
    shutil.rmtree(folder / "checkpoints" / "12")
    lines = (folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_bytes(b"".join(lines[:3]) + b"\xff\n" + b"".join(lines[4:]))
    (folder / "tensorboard").rename(tmp_path / "tensorboard")
    (folder / "tensorboard").write_text("words")
    (folder / "elo.svg").unlink()
    (folder / "elo.svg").mkdir()
    train(tiny_config(), folder)
    said = " ".join(capsys.readouterr().out.split())
    assert "1 damaged line dropped; 1 of 11 iterations missing; metrics.jsonl.damaged keeps the old file" in said
    for name in ("tensorboard", "elo.svg"):
        assert f"{name} was of the wrong type, and was moved to {name}.damaged" in said
    assert (folder / "elo.svg").is_file()
    assert [line["iteration"] for line in read_metrics(folder)] == [1, 2, 3, *range(5, 13)]


def copy_tree(source: Path, target: Path) -> None:
    for name, data in contents_of(source).items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True) if data is None else path.write_bytes(data)


def test_a_folder_below_a_file_is_refused(tmp_path, monkeypatch):
    refuse_iterations(monkeypatch)
    (tmp_path / "file").write_text("words")
    with pytest.raises(UserError, match="file is a file; name another folder"):
        train(tiny_config(), tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text() == "words"


def test_invalid_matches_are_refused_before_any_write(finished, tmp_path, monkeypatch):
    refuse_iterations(monkeypatch)
    config = tiny_config()
    config.num_iterations, config.evaluation.num_games = 20, 600
    before = contents_of(finished)
    for folder in (tmp_path / "run", finished):
        with pytest.raises(UserError, match="play at most"):
            train(config, folder)
    assert contents_of(finished) == before
    assert not (tmp_path / "run").exists()


def test_rounded_fields_are_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loop._Steps, "iterate", lambda *_: None)
    monkeypatch.setattr(loop, "make_iterations", lambda *_: SimpleNamespace(num_micro_batches=1))
    monkeypatch.setattr(loop, "closing_lines", lambda *_: [])
    config = changed(tiny_config(), "selfplay.num_games", 23)
    train(changed(config, "learner.replay_ratio", 0.01), tmp_path / "run")
    printed = " ".join(capsys.readouterr().out.split())
    assert "config.selfplay.num_games=23 was changed to 16, a multiple of config.selfplay.num_groups=8" in printed
    assert re.search(r"config\.learner\.replay_ratio=0\.01 was changed to [0-9.]+: an iteration has", printed)


def failing(function: Callable, step_of: Callable, step: int, number: int = errno.ENOSPC) -> Callable:
    """Returns a method that raises an `OSError` at that step, before it calls `function`."""

    def call(self, *arguments):
        if step_of(self, *arguments) == step:
            raise OSError(number, os.strerror(number))
        return function(self, *arguments)

    return call


def break_metrics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MetricsWriter, "write", failing(MetricsWriter.write, lambda _, step, __: step, 6))


def break_checkpoints(patch: pytest.MonkeyPatch) -> None:
    """Fails in the thread of Orbax, which raises it at the next save."""
    patch.setattr(CheckpointWriter, "_seal", failing(CheckpointWriter._seal, lambda self: self._saving, 6))


@pytest.mark.parametrize("break_disk", [break_metrics, break_checkpoints])
def test_a_full_disk_loses_nothing(break_disk, finished, tmp_path):
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        break_disk(patch)
        with pytest.raises(DiskError) as error:
            train(tiny_config(), folder)
    text = "no space left on device; free some and run the command again to continue from iteration 5"
    assert str(error.value) == f"{folder}: {text}"
    train(tiny_config(), folder)
    assert_same_run(folder, finished)


def test_a_full_disk_before_the_first_checkpoint_starts_again(tmp_path, monkeypatch):
    monkeypatch.setattr(
        CheckpointWriter, "_seal", failing(CheckpointWriter._seal, lambda self: self._saving, 1, errno.EDQUOT)
    )
    with pytest.raises(DiskError, match=r"isk quota exceeded; free some and run the command again to start again"):
        train(tiny_config(), tmp_path / "run")
