"""Injects the failures of a cluster into runs and checks their recovery.

    python benchmarks/survive.py damage --times 1000    # any file or folder of a run
    python benchmarks/survive.py starts --times 20      # two processes in one run folder
    python benchmarks/survive.py sigterm --times 20     # of one process and of two, in new and in resumed runs
    python benchmarks/survive.py deaths --times 6       # SIGKILL of one of two processes under alphagat launch

`damage` changes, cuts, deletes or replaces one file or folder of a run, and resumes the run to the end. The command
must end with one line and leave the folder as it was, or reach the state of the undamaged run, bit for bit. Lines of
metrics may only be missing if the command says so.

`starts` starts two processes at a random distance, 0 to 20 s. One must train to the end, the other must be refused by
one line, and the metrics must have every iteration once.

`sigterm` sends SIGTERM at a random moment of startup or training. The command must end with status 75 and save a
checkpoint of the current iteration, unless the run folder does not exist yet. The result is the time from the signal to
the end.

`deaths` measures the time from the death of a process to the next checkpoint, five iterations later. --seed sets
the random moments.
"""

import argparse
import collections
import contextlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from alphagat.cli import train as main_command
from alphagat.errors import REQUEUE
from alphagat.runs.folder import is_run, read_config
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints, list_steps
from alphagat.runtime import sharding
from alphagat.training import loop
from alphagat.training.setup import make_run
from alphagat.training.state import placed_shapes
from alphagat.wording import counted

ROOT = Path(__file__).parents[1]
CONSOLE = Console()


def command(name: str, workdir: Path, *flags: str, config: str = "configs/smoke.py") -> list[str]:
    return [sys.executable, "-m", "alphagat", name, "--config", config, "--workdir", str(workdir), *flags]


def environment(cache: Path) -> dict[str, str]:
    """Returns an environment with the compilation cache `cache`, so that a restart is fast."""
    return os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}


SMALL = [
    "--config.num_iterations=14",
    "--config.evaluation.every=4",
    "--config.evaluation.num_games=2",
    "--config.evaluation.opponents=('random',)",
    "--config.checkpoint.every=3",
    "--config.selfplay.num_games=8",
    "--config.search.num_simulations=2",
    "--config.network.width=8",
    "--config.network.num_heads=2",
    "--config.mesh.data=1",
]
CHANGES = ("flip", "flip", "cut", "delete", "empty", "noise", "append", "nest", "folder", "link")


def damage_one(folder: Path, moments: random.Random) -> str:
    """Damages one file or folder below `folder`; returns a description."""
    path, how = moments.choice(sorted(folder.rglob("*"))), moments.choice(CHANGES)
    data = bytearray(path.read_bytes()) if path.is_file() else bytearray()
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to(folder / "nowhere")
    elif how in ("flip", "noise") and data:
        for _ in range(1 if how == "flip" else 100):
            data[moments.randrange(len(data))] ^= 1 << moments.randrange(8)
        path.write_bytes(data)
    elif how != "delete":
        texts = {"cut": data[: len(data) // 2], "append": data + moments.randbytes(50), "nest": b"[" * 100_000}
        path.write_bytes(texts.get(how, b""))
    return f"{how} {path.relative_to(folder)}"


def damage(times: int, moments: random.Random, folder: Path) -> bool:
    source, whole, copy = folder / "source", folder / "whole", folder / "copy"
    share_programs()
    status, printed = resume(whole)
    if status:
        raise SystemExit(f"the undamaged run has failed: {printed}")
    shutil.copytree(whole, source)
    shutil.rmtree(source / "checkpoints" / "14")  # as if the run had been killed
    answers: collections.Counter[str] = collections.Counter()
    for _ in track(range(times), "damaging", console=CONSOLE):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        what = damage_one(copy, moments)
        before = contents_of(copy)
        status, printed = resume(copy)
        answer = judge(copy, before, whole, status, printed)
        answers[answer] += 1
        if answer.startswith("WRONG"):
            CONSOLE.print(f"{what}: {answer}: {printed[-300:]}", markup=False)
    table = Table("what became of it", "times", title=f"{times} damaged runs")
    for name, number in answers.most_common():
        table.add_row(name, str(number))
    CONSOLE.print(table)
    return not any(name.startswith("WRONG") for name in answers)


def share_programs() -> None:
    """Makes the runs of this process share their compiled programs."""
    programs: dict[str, Any] = {}

    def once(name: str, make: Callable) -> Callable:
        def get(*arguments: Any) -> Any:
            if name not in programs:
                programs[name] = make(*arguments)
            return programs[name]

        return get

    loop.make_iterations = once("iterations", loop.make_iterations)
    loop.RunEvaluator = once("evaluator", loop.RunEvaluator)


def resume(folder: Path) -> tuple[int, str]:
    """Runs the command in this process; returns its status and what it printed, or status -1 after a traceback."""
    words = ["--config", "configs/smoke.py", "--workdir", str(folder), *SMALL]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            status = main_command.run(words)
        except Exception as error:  # the answer under test
            return -1, f"{type(error).__name__}: {error}"
    return status, out.getvalue()


def judge(folder: Path, before: dict, whole: Path, status: int, printed: str) -> str:
    """Names what became of a damaged run."""
    if status == -1:
        return "WRONG: traceback"
    if status:
        refused_well = printed.count("error:") == 1 and contents_of(folder) == before
        return "refused by one line, nothing changed" if refused_well else "WRONG: a refusal that changed the folder"
    if state_of(folder) != state_of(whole):
        return "WRONG: another state"
    ours, theirs = ([plain(line) for line in read_metrics(each)] for each in (folder, whole))
    if ours == theirs:
        return "resumed, nothing lost"
    if "metrics.jsonl" in printed:
        return "resumed, lines of metrics lost, and said so"
    return "WRONG: lines of metrics lost or changed in silence"


def plain(line: Mapping) -> dict:
    """Returns a line of metrics without times, which differ between any two runs."""
    return {name: value for name, value in line.items() if name != "hours" and not name.endswith("_per_s")}


def state_of(folder: Path) -> dict[str, bytes]:
    """Returns the leaves of the last checkpoint by name."""
    config = read_config(folder)
    run = make_run(config, sharding.make_mesh(config.mesh.data))
    state = SavedCheckpoints(folder).restore(placed_shapes(run), list_steps(folder)[-1])
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): np.asarray(leaf).tobytes() for path, leaf in leaves}


def contents_of(folder: Path) -> dict[str, bytes | None]:
    return {str(each.relative_to(folder)): each.read_bytes() if each.is_file() else None for each in folder.rglob("*")}


def starts(times: int, moments: random.Random, folder: Path) -> bool:
    """Starts pairs of processes in one folder."""
    good = 0
    for number in range(times):
        workdir, seconds = folder / f"starts_{number}", moments.uniform(0, 20)
        words = command("train", workdir, *SMALL, "--config.num_iterations=300")
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        first = subprocess.Popen(words, cwd=ROOT, env=environment(folder / "compiled"), **pipes)
        time.sleep(seconds)
        second = subprocess.Popen(words, cwd=ROOT, env=environment(folder / "compiled"), **pipes)
        printed = [process.communicate(timeout=600)[0] for process in (first, second)]
        statuses = [process.returncode for process in (first, second)]
        refusal = printed[statuses.index(2)].strip().splitlines()[-1] if 2 in statuses else "no refusal"
        iterations = [line["iteration"] for line in read_metrics(workdir)]
        is_good = sorted(statuses) == [0, 2] and iterations == [*range(1, 301)] and "Traceback" not in "".join(printed)
        good += is_good
        CONSOLE.print(f"{seconds:.1f} s apart: statuses {statuses}, {len(iterations)} lines; {refusal}", markup=False)
    CONSOLE.print(f"{good} of {times} pairs: one trained to the end, the other was refused, nothing was lost")
    return good == times


def start_processes(number: int, workdir: Path, cache: Path, moments: random.Random) -> list[subprocess.Popen]:
    """Starts a run of `number` processes; `moments` draws its port. The output goes to the `output_of` each rank."""
    port = 20000 + moments.randrange(20000)
    flags = ["--config.num_iterations=100000", "--config.checkpoint.every=50000", "--config.evaluation.every=20"]
    processes = []
    for rank in range(number):
        where = ["--nodes", str(number), "--node_rank", str(rank), "--coordinator", f"127.0.0.1:{port}"]
        words = command("train", workdir, *flags, *(where if number > 1 else []))
        with output_of(workdir, rank).open("wb") as output:
            pipes: Any = {"stdout": output, "stderr": subprocess.STDOUT}
            processes.append(subprocess.Popen(words, cwd=ROOT, env=environment(cache), **pipes))
    return processes


def output_of(workdir: Path, rank: int) -> Path:
    return workdir.with_name(f"{workdir.name}_process_{rank}.log")


def sigterm(times: int, moments: random.Random, folder: Path) -> bool:
    columns = "run", "processes", "times", "while it trained", "saved or nothing to save", "seconds: median", "longest"
    table = Table(*columns, title="SIGTERM")
    good, cache = True, folder / "compiled"
    for number in (1, 2):
        first = folder / f"first_{number}"
        fill_cache(number, first, cache, moments)
        for kind in ("new", "resumed"):
            ends = []
            for each in range(times):
                workdir = folder / f"{kind}_{number}_{each}"
                if kind == "resumed":
                    shutil.copytree(first, workdir)
                ends.append(terminate(number, workdir, cache, moments))
            trained, saved, seconds = zip(*ends)
            cells = kind, number, times, sum(trained), sum(saved), f"{np.median(seconds):.1f}", f"{max(seconds):.1f}"
            table.add_row(*map(str, cells))
            good &= all(saved) and max(seconds) <= 30
    CONSOLE.print(table)
    return good


def fill_cache(number: int, workdir: Path, cache: Path, moments: random.Random) -> None:
    """Trains one iteration with `number` processes, and ends them."""
    processes = start_processes(number, workdir, cache, moments)
    try:
        wait_for_iteration(workdir, 1)
        processes[0].send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(120)
    finally:
        for process in processes:
            process.kill()


class End(NamedTuple):
    """The end of a run after SIGTERM."""

    has_trained: bool
    is_saved: bool  # or there was nothing to save
    seconds: float  # since the signal


def terminate(number: int, workdir: Path, cache: Path, moments: random.Random) -> End:
    """Sends SIGTERM to one of `number` processes of a run at a random moment after its start."""
    before = len(read_metrics(workdir))
    processes = start_processes(number, workdir, cache, moments)
    time.sleep(moments.uniform(3, 30))
    start = time.perf_counter()
    moments.choice(processes).send_signal(signal.SIGTERM)
    try:
        statuses = [process.wait(120) for process in processes]
    except subprocess.TimeoutExpired:
        statuses = []
        for process in processes:
            process.kill()
    seconds = time.perf_counter() - start
    lines, step = read_metrics(workdir), newest_step(workdir)
    is_saved = bool(statuses) and (step >= lines[-1]["iteration"] if lines else True)
    if is_run(workdir):  # before, the signal ends the process as usual
        is_saved &= all(status == REQUEUE for status in statuses)
    CONSOLE.print(f"{counted(number, 'process')}: status {statuses}, iteration {step} saved, {seconds:.1f} s")
    if not is_saved:
        for rank in range(number):
            last_lines = output_of(workdir, rank).read_text(errors="replace").splitlines()[-20:]
            CONSOLE.print(f"process {rank} printed last:", *last_lines, sep="\n", markup=False)
    return End(len(lines) > before, is_saved, seconds)


def deaths(times: int, moments: random.Random, folder: Path) -> bool:
    """Kills processes of one run repeatedly, and waits for new metrics each time."""
    workdir, seconds = folder / "deaths", []
    flags = ("--config.num_iterations=100000", "--config.checkpoint.every=5", "--config.evaluation.every=0")
    words = command("launch", workdir, "--processes", "2", *flags)
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=ROOT, env=environment(folder / "compiled"), **quiet) as launcher:
        wait_for_iteration(workdir, 6)
        for number in range(times):
            rank = number % 2
            start = time.perf_counter()
            os.kill(process_of(launcher.pid, rank), signal.SIGKILL)
            time.sleep(1)  # lets the other process end as well
            before = newest_step(workdir)
            while newest_step(workdir) == before:
                if time.perf_counter() - start > 300:
                    raise SystemExit(f"{workdir} makes no progress after iteration {before}")
                time.sleep(0.1)
            seconds.append(time.perf_counter() - start)
            CONSOLE.print(
                f"process {rank} killed after iteration {before}: the next is saved {seconds[-1]:.1f} s later"
            )
            time.sleep(moments.uniform(0, 5))
        launcher.terminate()
        status = launcher.wait(120)
    CONSOLE.print(f"{times} deaths: median {np.median(seconds):.1f} s, longest {max(seconds):.1f} s; status {status}")
    return max(seconds) <= 60 and status == REQUEUE


def process_of(launcher: int, rank: int) -> int:
    """Returns the process of a rank under the launcher."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == launcher and "--node_rank" in words and words[words.index("--node_rank") + 1] == str(rank):
            return int(entry.name)
    raise SystemExit(f"the launcher has no process {rank}")


def newest_step(workdir: Path) -> int:
    """Returns the iteration of the last checkpoint; 0 without one."""
    return max(list_steps(workdir), default=0)


def wait_for_iteration(workdir: Path, iteration: int) -> None:
    deadline = time.monotonic() + 300
    while not (lines := read_metrics(workdir)) or lines[-1]["iteration"] < iteration:
        if time.monotonic() > deadline:
            raise SystemExit(f"{workdir} did not reach iteration {iteration} in 300 s")
        time.sleep(0.1)


PARTS = {"damage": damage, "starts": starts, "sigterm": sigterm, "deaths": deaths}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--times", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    options = parser.parse_args()
    sharding.configure_cpu_devices(0)
    with tempfile.TemporaryDirectory() as name:
        good = PARTS[options.part](options.times, random.Random(options.seed), Path(name))
    sys.exit(not good)


if __name__ == "__main__":
    main()
