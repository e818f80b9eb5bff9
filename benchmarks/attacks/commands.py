"""Commands under attack, and their answers."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


SECONDS = 300  # limit per command


RUN = [
    "--config.num_iterations=6",
    "--config.evaluation.every=0",
    "--config.checkpoint.every=2",
    "--config.mesh.data=1",
]


MORE = [*RUN[1:], "--config.num_iterations=8"]


class Answer(NamedTuple):
    """The end of a command: its status, or None if it had to be killed, and what it printed."""

    status: int | None
    said: str

    @property
    def line(self) -> str:
        lines = self.said.strip().splitlines() or [""]
        told = [line for line in lines if line.startswith("error") or "damaged" in line or "wrong type" in line]
        return (told or lines)[-1]


def answer_of(words: list[str], data: bytes | None = None, **variables: str) -> Answer:
    """Runs `python -m` with `words` and `data` as its input."""
    command, env = [sys.executable, "-m", *words], os.environ | {"JAX_PLATFORMS": "cpu"} | variables
    try:
        run = subprocess.run(command, cwd=ROOT, env=env, input=data, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Answer(None, f"no end after {SECONDS} s")
    return Answer(run.returncode, (run.stdout + run.stderr).decode(errors="replace"))


def training(folder: Path, flags: list[str]) -> list[str]:
    """Returns the words of the command that starts or resumes the run in `folder`."""
    return ["alphagat", "train", "--config", "configs/smoke.py", "--workdir", str(folder), *flags]


def train(folder: Path, flags: list[str], **variables: str) -> Answer:
    return answer_of(training(folder, flags), None, **variables)


Attack = Callable[[Path], Answer]  # attacks a copy of a run


def with_words(*words: str) -> Attack:
    """Returns an attack by one command."""
    return lambda folder: answer_of(list(words))
