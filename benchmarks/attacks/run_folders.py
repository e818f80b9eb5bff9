"""Attacks on run folders: two owners, lost and foreign checkpoints, damaged files, full disks."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from commands import MORE, ROOT, RUN, Answer, Attack, train, training


def second_start(folder: Path) -> Answer:
    """Starts the run again while it trains."""
    flags = [*RUN[1:], "--config.num_iterations=2000"]
    command = [sys.executable, "-m", *training(folder, flags)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        while not (folder / "lock").exists():
            time.sleep(0.05)
        answer = train(folder, flags)
        first.send_signal(signal.SIGTERM)
    return answer


def lost_checkpoints(folder: Path) -> Answer:
    shutil.rmtree(folder / "checkpoints")
    return train(folder, MORE)


def checkpoints_replaced_by_a_file(folder: Path) -> Answer:
    shutil.rmtree(folder / "checkpoints")
    (folder / "checkpoints").write_text("words")
    return train(folder, MORE)


def dangling_checkpoints(folder: Path) -> Answer:
    shutil.rmtree(folder / "checkpoints")
    (folder / "checkpoints").symlink_to(folder / "nowhere")
    return train(folder, MORE)


def replacement_cut_short(folder: Path) -> Answer:
    for step in ("2", "4"):
        shutil.rmtree(folder / "checkpoints" / step, ignore_errors=True)
    (folder / "checkpoints" / "6").rename(folder / "checkpoints" / "6.replaced")
    return train(folder, MORE)


def renamed_checkpoint(folder: Path) -> Answer:
    shutil.rmtree(folder / "checkpoints" / "6")
    (folder / "checkpoints" / "2").rename(folder / "checkpoints" / "6")
    return train(folder, MORE)


def checkpoint_of_another_seed(folder: Path) -> Answer:
    other = folder.with_name("other")
    train(other, [*RUN, "--config.seed=1"])
    shutil.rmtree(folder / "checkpoints" / "6")
    shutil.copytree(other / "checkpoints" / "6", folder / "checkpoints" / "6")
    return train(folder, MORE)


def invalid_byte_in_metrics(folder: Path) -> Answer:
    file = folder / "metrics.jsonl"
    file.write_bytes(file.read_bytes().replace(b"hours", b"h\xffurs", 1))
    return train(folder, MORE)


def huge_number_in_metrics(folder: Path) -> Answer:
    file = folder / "metrics.jsonl"
    file.write_bytes(file.read_bytes() + b'{"iteration": 6, "hours": 1' + b"0" * 4000 + b"}\n")
    return train(folder, MORE)


def metrics_of_the_wrong_type(folder: Path) -> Answer:
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").mkdir()
    return train(folder, MORE)


def tensorboard_of_the_wrong_type(folder: Path) -> Answer:
    shutil.rmtree(folder / "tensorboard")
    (folder / "tensorboard").write_text("words")
    return train(folder, MORE)


def full_disk(folder: Path) -> Answer:
    """Trains on a disk of 3 MB, then resumes on a larger one. Only root can mount it."""
    disk = folder.with_name("disk")
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o"]
    if subprocess.run([*mount, "size=3m", "tmpfs", str(disk)], capture_output=True).returncode:
        return Answer(0, "not tried: only root can mount a small disk")
    try:
        flags = [*RUN[1:], "--config.checkpoint.keep=1000"]
        answer = train(disk / "run", [*flags, "--config.num_iterations=3000"])
        subprocess.run([*mount, "remount,size=64m", "tmpfs", str(disk)], check=True)
        resumed = train(disk / "run", [*flags, "--config.num_iterations=40"])
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return resumed if resumed.status else answer


def nested_manifest(folder: Path) -> Answer:
    (folder / "checkpoints" / "6" / "manifest.json").write_text("[" * 200_000)
    return train(folder, MORE)


def deep_json(name: str) -> Callable[[Path], Answer]:
    """Returns an attack that nests a JSON file of the run 200,000 deep."""

    def attack(folder: Path) -> Answer:
        (folder / name).write_text("[" * 200_000)
        return train(folder, MORE)

    return attack


def long_workdir(folder: Path) -> Answer:
    return train(folder / ("x" * 300), RUN)


def workdir_below_a_file(folder: Path) -> Answer:
    return train(folder / "config.json" / "run", RUN)


def early_sigterm(folder: Path) -> Answer:
    """Ends a new run while it compiles."""
    command = [sys.executable, "-m", *training(folder.with_name("new"), RUN)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not (folder.with_name("new") / "lock").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said = process.communicate()[0]
    return Answer(process.returncode, said.decode())


def corrected_start(folder: Path) -> Answer:
    """Ends a new run while it compiles, and starts it with another config."""
    early_sigterm(folder)
    return train(folder.with_name("new"), [*RUN, "--config.seed=7"])


RUNS: dict[str, Attack] = {
    "1 lock: a second start": second_start,
    "2 checkpoints: removed": lost_checkpoints,
    "2 checkpoints: a file": checkpoints_replaced_by_a_file,
    "2 checkpoints: a replacement cut short": replacement_cut_short,
    "3 manifest: a renamed checkpoint": renamed_checkpoint,
    "3 manifest: a checkpoint of another seed": checkpoint_of_another_seed,
    "4 metrics: an invalid byte": invalid_byte_in_metrics,
    "4 metrics: a number of 4,000 digits": huge_number_in_metrics,
    "4 metrics: a folder": metrics_of_the_wrong_type,
    "4 tensorboard: a file": tensorboard_of_the_wrong_type,
    "5 disk: full in mid-run": full_disk,
    "6 SIGTERM before the first checkpoint": early_sigterm,
    "6 a corrected config after a failed start": corrected_start,
    "11 JSON: nested 200,000 deep, manifest": nested_manifest,
    "11 checkpoints: a dangling link": dangling_checkpoints,
    "11 JSON: nested 200,000 deep, config": deep_json("config.json"),
    "11 JSON: nested 200,000 deep, environment": deep_json("env.json"),
    "11 JSON: nested 200,000 deep, metrics": deep_json("metrics.jsonl"),
    "11 workdir: a name of 300 characters": long_workdir,
    "11 workdir: below a file": workdir_below_a_file,
}
