"""Injects the failures of a cluster into runs and checks their recovery.

    python benchmarks/survive.py damage --times 500     # bit flips, truncations and deletions in files of checkpoints
    python benchmarks/survive.py sigterm --times 20     # of one process, and of two
    python benchmarks/survive.py deaths --times 6       # SIGKILL of one of two processes under alphagat.launch

`damage` damages one file of a run's newest checkpoint and resumes the run. It must resume from the previous checkpoint
or end with a one-line error. The loaded state is compared leaf by leaf with the saved state of that step, so no damaged
data may be loaded.

`sigterm` sends SIGTERM at a random moment of startup or training. The command must end with status 75 and save a
checkpoint of the current iteration, unless the run folder does not exist yet. The result is the time from the signal to
the end.

`deaths` measures the time from the death of a process to the next checkpoint, five iterations later. --seed sets
the random moments.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from alphagat.errors import UserError
from alphagat.runs.checkpoints import Checkpoints
from alphagat.runs.folder import read_config
from alphagat.runs.metrics import read_metrics
from alphagat.runtime import sharding
from alphagat.training.resume import find_start
from alphagat.training.setup import make_run
from alphagat.training.state import placed_shapes

ROOT = Path(__file__).parents[1]
CONSOLE = Console()


def command(module: str, workdir: Path, *flags: str) -> list[str]:
    return [sys.executable, "-m", module, "--config", "configs/smoke.py", "--workdir", str(workdir), *flags]


def environment(cache: Path) -> dict[str, str]:
    """Returns an environment with the compilation cache `cache`."""
    return os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}


def damage_one(step: Path, moments: random.Random) -> str:
    """Damages one file of a checkpoint; returns a description."""
    files = sorted(path for path in step.rglob("*") if path.is_file())
    file, how = moments.choice(files), moments.choice(("flip", "flip", "cut", "delete"))
    data = bytearray(file.read_bytes())
    if how == "delete" or not data:
        file.unlink()
    elif how == "cut":
        file.write_bytes(data[: moments.randrange(len(data))])
    else:
        data[moments.randrange(len(data))] ^= 1 << moments.randrange(8)
        file.write_bytes(data)
    return f"{how} {file.name}"


def damage(times: int, moments: random.Random, folder: Path) -> bool:
    source = folder / "source"
    flags = ("--config.num_iterations=12", "--config.checkpoint.every=4", "--config.evaluation.every=0")
    subprocess.run(command("alphagat.main", source, *flags), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    config = read_config(source)
    run = make_run(config, sharding.make_mesh(config.mesh.data))
    with Checkpoints(source, read_only=True) as checkpoints:
        steps = checkpoints.steps()
        whole = {step: jax.device_get(checkpoints.restore(placed_shapes(run), step)) for step in steps}
    counts = {"whole file, nothing lost": 0, "went back to the checkpoint before": 0, "one line": 0, "wrong": 0}
    copy = folder / "copy"
    for _ in track(range(times), "damaging", console=CONSOLE):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        what = damage_one(copy / "checkpoints" / str(steps[-1]), moments)
        try:
            start = find_start(run, copy)
        except UserError:
            counts["one line"] += 1
            continue
        leaves = zip(jax.tree.leaves(start.state), jax.tree.leaves(whole[start.iteration]), strict=True)
        if any(np.asarray(one).tobytes() != other.tobytes() for one, other in leaves):
            counts["wrong"] += 1
            CONSOLE.print(f"{what}: iteration {start.iteration} was loaded, and it differs")
        else:
            kept = start.iteration == steps[-1]
            counts["whole file, nothing lost" if kept else "went back to the checkpoint before"] += 1
    table = Table("what became of it", "times", title=f"{times} damaged checkpoints")
    for name, count in counts.items():
        table.add_row(name, str(count))
    CONSOLE.print(table)
    return counts["wrong"] == 0


def start_processes(number: int, workdir: Path, cache: Path, port: int) -> list[subprocess.Popen]:
    flags = ["--config.num_iterations=100000", "--config.checkpoint.every=50000", "--config.evaluation.every=20"]
    processes = []
    for rank in range(number):
        where = ["--nodes", str(number), "--node_rank", str(rank), "--coordinator", f"127.0.0.1:{port}"]
        words = command("alphagat.main", workdir, *flags, *(where if number > 1 else []))
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes.append(subprocess.Popen(words, cwd=ROOT, env=environment(cache), **silent))
    return processes


def sigterm(times: int, moments: random.Random, folder: Path) -> bool:
    table = Table(
        "processes",
        "times",
        "while it trained",
        "saved or nothing to save",
        "seconds: median",
        "longest",
        title="SIGTERM",
    )
    good = True
    for number in (1, 2):
        seconds, saved, trained = [], 0, 0
        first = start_processes(
            number, folder / f"first_{number}", folder / "compiled", 20000 + moments.randrange(20000)
        )
        wait_for_iteration(folder / f"first_{number}", 1)  # fills the compilation cache
        first[0].send_signal(signal.SIGTERM)
        for process in first:
            process.wait(120)
        for round_ in range(times):
            workdir = folder / f"sigterm_{number}_{round_}"
            processes = start_processes(number, workdir, folder / "compiled", 20000 + moments.randrange(20000))
            time.sleep(moments.uniform(3, 30))
            start = time.perf_counter()
            moments.choice(processes).send_signal(signal.SIGTERM)
            try:
                statuses = [process.wait(120) for process in processes]
            except subprocess.TimeoutExpired:
                statuses = []
                for process in processes:
                    process.kill()
            seconds.append(time.perf_counter() - start)
            lines = read_metrics(workdir)
            step = newest_step(workdir) if (workdir / "checkpoints").exists() else 0
            is_saved = bool(statuses) and (step >= lines[-1]["iteration"] if lines else True)
            saved += is_saved
            trained += bool(lines)
            CONSOLE.print(f"{number} process(es): status {statuses}, iteration {step} saved, {seconds[-1]:.1f} s")
        table.add_row(
            str(number), str(times), str(trained), str(saved), f"{np.median(seconds):.1f}", f"{max(seconds):.1f}"
        )
        good &= saved == times and max(seconds) <= 30
    CONSOLE.print(table)
    return good


def deaths(times: int, moments: random.Random, folder: Path) -> bool:
    """Kills processes of one run repeatedly, and waits for new metrics each time."""
    workdir, seconds = folder / "deaths", []
    flags = ("--config.num_iterations=100000", "--config.checkpoint.every=5", "--config.evaluation.every=0")
    words = command("alphagat.launch", workdir, "--processes", "2", *flags)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
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
    return max(seconds) <= 60 and status == 75


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
    names = [path.name for path in (workdir / "checkpoints").iterdir()]
    return max((int(name) for name in names if name.isdecimal()), default=0)


def wait_for_iteration(workdir: Path, iteration: int) -> None:
    deadline = time.monotonic() + 300
    while not (lines := read_metrics(workdir)) or lines[-1]["iteration"] < iteration:
        if time.monotonic() > deadline:
            raise SystemExit(f"{workdir} did not reach iteration {iteration} in 300 s")
        time.sleep(0.1)


PARTS = {"damage": damage, "sigterm": sigterm, "deaths": deaths}


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
