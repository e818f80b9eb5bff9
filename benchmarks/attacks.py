"""Repeats attacks on runs, engines and the web server, and prints the answer to each: an exit status and one line.

    python benchmarks/attacks.py                 # all
    python benchmarks/attacks.py --only lock     # those whose name contains the word

No answer may contain a traceback, and no attack may lose data. Each attack works on a fresh copy of a short run.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

ROOT = Path(__file__).parents[1]
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


def train(folder: Path, flags: list[str], **variables: str) -> Answer:
    return answer_of(["alphagat.main", "--config", "configs/smoke.py", "--workdir", str(folder), *flags], **variables)


def second_start(folder: Path) -> Answer:
    """Starts the run again while it trains."""
    flags = [*RUN[1:], "--config.num_iterations=2000"]
    command = [sys.executable, "-m", "alphagat.main", "--config", "configs/smoke.py", "--workdir", str(folder), *flags]
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


def nested_manifest(folder: Path) -> Answer:
    (folder / "checkpoints" / "6" / "manifest.json").write_text("[" * 200_000)
    return train(folder, MORE)


def gtp_with_invalid_bytes(folder: Path) -> Answer:
    words = ["alphagat.gtp", "--board", "hex:5"]
    return answer_of(words, b"1 name\n2 \xff\n3 quit\n", PYTHONIOENCODING="utf-8")


def gtp_in_the_c_locale(folder: Path) -> Answer:
    return answer_of(["alphagat.gtp", "--board", "hex:5"], b"1 \xc3\xbc\n2 \xff\n3 quit\n", LC_ALL="C", PYTHONUTF8="0")


def json_with_invalid_bytes(folder: Path) -> Answer:
    return answer_of(["alphagat.analyze", "--board", "hex:5"], b'{"id": "\xff"}\n', PYTHONIOENCODING="utf-8")


def weights_with_nan(folder: Path) -> Answer:
    file = ROOT / "alphagat" / "weights" / "hex.safetensors"
    with safe_open(file, framework="numpy") as opened:
        arrays, metadata = {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()  # noqa: SIM118
    name = min(arrays)
    arrays[name] = np.full_like(arrays[name], np.nan)
    save_file(arrays, folder / "nan.safetensors", metadata)
    return answer_of(["alphagat.match", str(folder / "nan.safetensors"), "random", "--board", "hex:3", "--games", "2"])


def endless_wait(folder: Path) -> Answer:
    return answer_of(["alphagat.serve", "--port", "0", "--max_wait_ms", "inf"])


def empty_host(folder: Path) -> Answer:
    return answer_of(["alphagat.serve", "--port", "0", "--host", ""])


def served(question: bytes, crowd: int = 0) -> Answer:
    """Serves, opens `crowd` connections that stay silent, and returns the HTTP status and body of the answer."""
    command = [sys.executable, "-m", "alphagat.serve", "--port", "0", "--board", "hex:3", "--simulations", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server, ExitStack() as clients:
        clients.callback(server.terminate)
        assert server.stdout is not None
        address = "127.0.0.1", int(server.stdout.readline().split()[3].rpartition(":")[2])
        for _ in range(crowd):
            clients.enter_context(socket.create_connection(address))
        client = clients.enter_context(socket.create_connection(address, 40))
        client.sendall(question)
        try:
            head, _, body = client.makefile("rb").read().decode().partition("\r\n\r\n")
        except OSError as error:
            return Answer(None, str(error))
    return Answer(int(head.split()[1]), body)


def headers_without_an_end(folder: Path) -> Answer:
    return served(b"GET / HTTP/1.1\r\nHost: localhost\r\n")


def body_without_an_end(folder: Path) -> Answer:
    return served(b"POST /api/position HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")


def many_connections(folder: Path) -> Answer:
    return served(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", crowd=900)


def other_host(folder: Path) -> Answer:
    return served(b"GET /api/info HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")


def other_origin(folder: Path) -> Answer:
    headers = b"Host: localhost\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n"
    return served(b"GET /api/info HTTP/1.1\r\n" + headers)


def uci_with_a_superscript(folder: Path) -> Answer:
    """Sends a value that Python counts as a digit, but not as a number."""
    file = folder / "chess.safetensors"
    code = (
        "import jax, pathlib; from alphagat.agents import build, weight_files; from alphagat.config import Config; "
        "from alphagat.games import make_game; game, config = make_game('chess'), Config(boards=('chess',)); "
        "params = build.make_params(game, build.make_configured_network(config, game), jax.random.key(0)); "
        f"weight_files.write(pathlib.Path({str(file)!r}), params, config, 0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"JAX_PLATFORMS": "cpu"}, check=True)
    lines = "setoption name Simulations value ²\nisready\nquit\n".encode()
    return answer_of(["alphagat.uci", str(file), "--max_simulations", "8"], lines, PYTHONIOENCODING="utf-8")


def deep_json(name: str) -> Callable[[Path], Answer]:
    """Returns an attack that nests a JSON file of the run 200,000 deep."""

    def attack(folder: Path) -> Answer:
        (folder / name).write_text("[" * 200_000)
        return train(folder, MORE)

    return attack


def deep_query(folder: Path) -> Answer:
    return answer_of(["alphagat.analyze", "--board", "hex:5"], b"[" * 200_000 + b"\n")


def deep_metadata(folder: Path) -> Answer:
    save_file({"x": np.zeros(1)}, folder / "x.safetensors", {"config": "[" * 200_000, "iteration": "0"})
    return answer_of(["alphagat.match", str(folder / "x.safetensors"), "random", "--board", "hex:3", "--games", "2"])


def variable_of_a_launcher(folder: Path) -> Answer:
    return train(folder, MORE, OMPI_COMM_WORLD_SIZE="[" * 100_000)


def long_workdir(folder: Path) -> Answer:
    return train(folder / ("x" * 300), RUN)


def workdir_below_a_file(folder: Path) -> Answer:
    return train(folder / "config.json" / "run", RUN)


def config_that(lines: str) -> Callable[[Path], Answer]:
    """Returns an attack with a config file of these lines."""

    def attack(folder: Path) -> Answer:
        file = folder / "attack.py"
        file.write_text(lines)
        return answer_of(["alphagat.main", "--config", str(file), "--workdir", str(folder / "new")])

    return attack


def pretrain(folder: Path, name: str, data: bytes) -> Answer:
    (folder / name).write_bytes(data)
    board = "chess" if name.endswith(".pgn") else "hex:5"
    words = ["alphagat.pretrain", "--config", "configs/smoke.py", "--workdir", str(folder / "new"), *RUN]
    return answer_of([*words, "--games", str(folder / name), f"--config.boards={board}"])


def variant_of_chess(folder: Path) -> Answer:
    return pretrain(folder, "x.pgn", b'[Variant "Atomic"]\n\n1. e4 *\n')


def huge_number_in_pgn(folder: Path) -> Answer:
    return pretrain(folder, "x.pgn", b'[White "A"]\n\n1. e4 $' + b"9" * 5000 + b" e5 *\n")


def moves_without_end(folder: Path) -> Answer:
    return pretrain(folder, "x.sgf", b"(;GN[hex:5]" + b";B[a1];W[b2]" * 850_000 + b")")


def variations_without_end(folder: Path) -> Answer:
    return pretrain(folder, "x.sgf", b"(;GN[hex:5]" * 850_000 + b")" * 850_000)


def games_without_end(folder: Path) -> Answer:
    return pretrain(folder, "x.sgf", b"(;GN[hex:5];B[c3])" * 560_000)


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


def with_field(field: str) -> Callable[[Path], Answer]:
    return lambda folder: train(folder.with_name("new"), [f"--config.{field}"])


def with_words(*words: str) -> Callable[[Path], Answer]:
    return lambda folder: answer_of(list(words))


DIGITS = "9" * 20
OVERSIZED: dict[str, Callable[[Path], Answer]] = {
    "5 disk: full in mid-run": full_disk,
    "10 bounds: width=1000000000": with_field("network.width=1000000000"),
    "10 bounds: num_blocks=1000000": with_field("network.num_blocks=1000000"),
    "10 bounds: capacity=10**15": with_field(f"replay.capacity={10**15}"),
    "10 bounds: capacity=10**9": with_field(f"replay.capacity={10**9}"),
    "10 bounds: learning_rate=1e39": with_field("learner.learning_rate=1e39"),
    "10 bounds: weight_decay=1e300": with_field("learner.weight_decay=1e300"),
    "10 bounds: opening_plies=1000": with_field("selfplay.opening_plies=1000"),
    "10 bounds: opening_plies, 20 digits": with_field(f"selfplay.opening_plies={DIGITS}"),
    "10 bounds: num_simulations, 20 digits": with_field(f"search.num_simulations={DIGITS}"),
    "10 bounds: mcts, 20 digits": with_words("alphagat.match", "random", f"mcts:{DIGITS}", "--board", "hex:5"),
    "10 bounds: --simulations, 20 digits": with_words("alphagat.gtp", "--board", "hex:5", "--simulations", DIGITS),
    "10 bounds: --max_simulations, 20 digits": with_words(
        "alphagat.gtp", "--board", "hex:5", "--max_simulations", DIGITS
    ),
    "10 bounds: --leaves, 20 digits": with_words("alphagat.gtp", "--board", "hex:5", "--leaves", DIGITS),
    "10 bounds: --max_wait_ms inf": with_words("alphagat.serve", "--port", "0", "--max_wait_ms", "inf"),
}


ATTACKS: dict[str, Callable[[Path], Answer]] = {
    **OVERSIZED,
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
    "7 engines: invalid bytes, GTP": gtp_with_invalid_bytes,
    "7 engines: the C locale, GTP": gtp_in_the_c_locale,
    "7 engines: invalid bytes, JSON": json_with_invalid_bytes,
    "9 weights: NaN": weights_with_nan,
    "11 JSON: nested 200,000 deep, manifest": nested_manifest,
    "11 checkpoints: a dangling link": dangling_checkpoints,
    "13 server: an endless wait": endless_wait,
    "14 server: an empty host": empty_host,
    "14 server: headers without an end": headers_without_an_end,
    "14 server: a body without an end": body_without_an_end,
    "14 server: 900 silent connections": many_connections,
    "15 server: another host": other_host,
    "15 server: another origin": other_origin,
    "8 UCI: ² simulations": uci_with_a_superscript,
    "11 JSON: nested 200,000 deep, config": deep_json("config.json"),
    "11 JSON: nested 200,000 deep, environment": deep_json("env.json"),
    "11 JSON: nested 200,000 deep, metrics": deep_json("metrics.jsonl"),
    "11 JSON: nested 200,000 deep, weights": deep_metadata,
    "11 JSON: nested 200,000 deep, query": deep_query,
    "11 variable: no number of processes": variable_of_a_launcher,
    "11 workdir: a name of 300 characters": long_workdir,
    "11 workdir: below a file": workdir_below_a_file,
    "11 config: SystemExit(0)": config_that("raise SystemExit(0)\n"),
    "11 config: KeyboardInterrupt": config_that("raise KeyboardInterrupt\n"),
    "11 config: an exception": config_that("1 / 0\n"),
    "11 config: no end of recursion": config_that("def get_config():\n    return get_config()\n"),
    "11 config: no get_config": config_that("x = 1\n"),
    "12 PGN: another variant": variant_of_chess,
    "12 PGN: a number of 5,000 digits": huge_number_in_pgn,
    "12 SGF: 10 MB of moves in one game": moves_without_end,
    "12 SGF: 10 MB of nested variations": variations_without_end,
    "12 SGF: 10 MB of games": games_without_end,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="part of the names of the attacks")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(folder) / "compiled")
        base = Path(folder) / "run"
        answer = train(base, RUN)
        if answer.status != 0:
            sys.exit(f"the run under attack has failed: {answer.said}")
        for number, (name, attack) in enumerate(ATTACKS.items()):
            if options.only not in name:
                continue
            copy = Path(folder) / str(number) / "run"
            shutil.copytree(base, copy)
            answer = attack(copy)
            failures += answer.status is None or "Traceback" in answer.said
            print(f"{name}\n    {answer.status}: {answer.line.replace(str(copy), 'RUN')[:300]}", flush=True)
    sys.exit(f"{failures} attacks ended in a traceback or not at all" if failures else 0)


if __name__ == "__main__":
    main()
