"""Two processes with four devices each train the same network as one with eight, even after a kill."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from alphagat.runs.lock import FolderLock
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints
from alphagat.training.loop import train
from tests.training.tiny import tiny_config, write_config

ROOT = Path(__file__).parents[2]
NUM_ITERATIONS = 7


def config_for_two():
    config = tiny_config()
    config.num_iterations, config.checkpoint.every, config.evaluation.every = NUM_ITERATIONS, 3, 0
    return config


@pytest.fixture
def launch(tmp_path, process_environment):
    config_file = write_config(config_for_two(), tmp_path / "config.py")
    words = ["--processes", "2", "--config", str(config_file), "--workdir", str(tmp_path / "run")]
    command = [sys.executable, "-m", "alphagat", "launch", *words]
    return lambda *flags, **variables: subprocess.Popen(
        [*command, *flags], cwd=ROOT, env=process_environment | variables, stderr=subprocess.PIPE, text=True
    )


def wait_for_step(folder: Path, step: int, process: subprocess.Popen) -> None:
    while not (folder / "checkpoints" / str(step)).exists():
        assert process.poll() is None
        time.sleep(0.02)


def child_of(parent: int, rank: int) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            ancestor = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if ancestor == parent and "--node_rank" in words and words[words.index("--node_rank") + 1] == str(rank):
            return int(entry.name)
    raise AssertionError(f"no process of rank {rank}")


def test_two_killed_processes_match_one_process(launch, tmp_path):
    folder = tmp_path / "run"
    with launch() as launcher:
        wait_for_step(folder, 3, launcher)
        os.kill(child_of(launcher.pid, 1), signal.SIGKILL)
        _, said = launcher.communicate(timeout=400)
    assert launcher.returncode == 0, said
    assert re.search("process [01] ended with status", said)  # the other process, disconnected, may end first
    assert "restarting all processes from the last checkpoint" in said
    train(config_for_two(), tmp_path / "alone")
    lines = [read_metrics(each) for each in (folder, tmp_path / "alone")]
    assert [line["iteration"] for line in lines[0]] == list(range(1, NUM_ITERATIONS + 1))
    for name in ("train/policy_loss", "train/value_loss", "selfplay/game_length", "selfplay/target_entropy"):
        curves = [np.array([line[name] for line in each], float) for each in lines]  # NaN without an update
        # Across processes, gradients are summed in another order.
        np.testing.assert_allclose(*curves, rtol=1e-4, err_msg=name)
    with launch(f"--config.evaluation.every={NUM_ITERATIONS}") as launcher:  # owed now, so the checkpoint is replaced
        _, said = launcher.communicate(timeout=400)
    assert launcher.returncode == 0, said
    assert "ended with status" not in said
    assert "results" in read_metrics(folder)[-1]
    assert SavedCheckpoints(folder).find_damage(NUM_ITERATIONS) is None


@pytest.mark.parametrize(
    ("board", "error"),
    [
        ("hex:99", "error: board hex:99: "),  # found by both processes
        ("hex:2", "error: --workdir .* is in use by"),  # found by the first process
    ],
)
def test_a_mistake_is_reported_once(launch, tmp_path, board, error):
    with FolderLock(tmp_path / "run") as lock:
        lock.take()
        with launch(f"--config.boards={board}") as launcher:
            _, said = launcher.communicate(timeout=400)
    assert launcher.returncode == 2
    lines = [line for line in said.splitlines() if not line.startswith("waiting at")]
    assert len(lines) == 1, said
    assert re.match(error, lines[0])


def test_a_platform_that_is_missing_is_named_by_each_process(launch):
    with launch(JAX_PLATFORMS="rocm") as launcher:
        _, said = launcher.communicate(timeout=400)
    assert launcher.returncode == 2
    assert "Traceback" not in said
    assert "error: JAX_PLATFORMS=rocm: JAX finds no such devices here" in said


EXHAUST = """
import sys

import jax

from alphagat.cli import commands, train
from alphagat.training import compilation, iterations

run_iteration, exhausted = iterations.run_iteration, []
compilation.PATIENCE_SECONDS = 3.0


def exhaust(program, state, board):
    if int(state.iteration) == 2 and str(jax.process_index()) in sys.argv[1] and not exhausted:
        exhausted.append(True)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB.")
    return run_iteration(program, state, board)


iterations.run_iteration = exhaust
commands.end(train.run(sys.argv[2:]))
"""


@pytest.fixture
def start(tmp_path, process_environment):
    """Returns a function that starts Python with each list of words, as the processes of one run."""
    started = []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"

    def start_all(*commands: list[str]) -> list[subprocess.Popen]:
        for rank, words in enumerate(commands):
            where = ["--nodes", str(len(commands)), "--node_rank", str(rank), "--coordinator", address]
            command, pipe = [sys.executable, *words, *where], subprocess.PIPE
            started.append(subprocess.Popen(command, cwd=ROOT, env=process_environment, stderr=pipe, text=True))
        return started

    yield start_all
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def exhaust(start, tmp_path):
    """Returns a function that starts two processes, of which those of some ranks run out of memory."""
    config = config_for_two()
    config.learner.num_micro_batches, config.checkpoint.every, config.num_iterations = 0, 1, 3
    file = str(write_config(config, tmp_path / "config.py"))
    return lambda ranks: start(*[["-c", EXHAUST, ranks, file, "--workdir", str(tmp_path / "run")]] * 2)


def test_processes_that_would_train_different_networks_are_refused(start, tmp_path):
    file = str(write_config(config_for_two(), tmp_path / "config.py"))
    words = ["-m", "alphagat", "train", file, "--workdir", str(tmp_path / "run")]
    processes = start(words, [*words, "--config.seed=1"])
    ended = [(process.communicate(timeout=400)[1].splitlines(), process.returncode) for process in processes]
    said = "error: config.seed differs between the processes; start all of them with the same command"
    assert [(lines[1:], status) for lines, status in ended][:1] == [([said], 2)]  # after `waiting at`
    assert ended[1] == ([], 2)
    assert not (tmp_path / "run").exists()


def test_processes_that_all_run_out_of_memory_go_on_together(exhaust, tmp_path):
    ended = [(process.communicate(timeout=400)[1], process.returncode) for process in exhaust("01")]
    assert [status for _, status in ended] == [0, 0], ended
    assert all("at least 2 micro-batches from now on" in said for said, _ in ended)
    assert [line["iteration"] for line in read_metrics(tmp_path / "run")] == [1, 2, 3]


def test_a_process_that_alone_runs_out_of_memory_ends_with_one_line(exhaust):
    """The others wait for it in a program of all devices."""
    _, process = exhaust("1")
    said = process.communicate(timeout=400)[1]
    assert process.returncode == 2, said
    assert "but not in every process; set it to 2" in said.splitlines()[-1]
