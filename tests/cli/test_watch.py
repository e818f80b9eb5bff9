"""The watch command: flags, one-line errors, and the wait for the first checkpoint."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

from alphagat.cli import watch
from alphagat.runs.folder import open_run_folder
from tests.training.tiny import save_tiny_run, tiny_config


def test_waits_for_the_first_checkpoint_and_serves_until_interrupted(tmp_path):
    folder = open_run_folder(tmp_path / "run", tiny_config())
    command = [sys.executable, "-m", "alphagat", "watch", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout.readline() == f"{folder} has no checkpoint yet; waiting for the first\n"
            save_tiny_run(folder, 1)
            line = run.stdout.readline()
            assert line.startswith("Open http://127.0.0.1:")
            address = line.split()[1]
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"watch.js" in answer.read()
            with urllib.request.urlopen(address.replace("watch.html", "api/run"), timeout=60) as answer:
                assert json.load(answer)["network"] == 1
            run.send_signal(signal.SIGINT)
            assert run.communicate(timeout=60) == ("", "stopped\n")
            assert run.returncode == 130
        finally:
            run.kill()


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ([], "RUN is missing; name a run, such as runs/quickstart"),
        (["nowhere"], "holds no run; name the folder of a run"),
        (["nowhere", "--port", "x"], "--port x: it must be an integer"),
        (["nowhere", "--board", ""], "argument --board: it is empty; give it a value"),
    ],
)
def test_errors_give_one_line(flags, error, capsys):
    assert watch.run(flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert error in line
