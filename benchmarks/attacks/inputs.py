"""Attacks on input: engines, weights, numbers, JSON, configs, game files."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from commands import MORE, ROOT, RUN, SECONDS, Answer, Attack, answer_of, train, with_words
from safetensors import safe_open
from safetensors.numpy import save_file


def gtp_with_invalid_bytes(folder: Path) -> Answer:
    words = ["alphagat", "gtp", "--board", "hex:5"]
    return answer_of(words, b"1 name\n2 \xff\n3 quit\n", PYTHONIOENCODING="utf-8")


def gtp_in_the_c_locale(folder: Path) -> Answer:
    return answer_of(
        ["alphagat", "gtp", "--board", "hex:5"], b"1 \xc3\xbc\n2 \xff\n3 quit\n", LC_ALL="C", PYTHONUTF8="0"
    )


def json_with_invalid_bytes(folder: Path) -> Answer:
    return answer_of(["alphagat", "analyze", "--board", "hex:5"], b'{"id": "\xff"}\n', PYTHONIOENCODING="utf-8")


def closed_output(folder: Path) -> Answer:
    command = f"{sys.executable} -m alphagat gtp --board hex:5 | true"
    run = subprocess.run(command, shell=True, cwd=ROOT, input=b"name\n" * 1000, stderr=subprocess.PIPE, timeout=SECONDS)
    return Answer(run.returncode, run.stderr.decode() or "nothing")


def weights_with_nan(folder: Path) -> Answer:
    file = ROOT / "alphagat" / "weights" / "hex.safetensors"
    with safe_open(file, framework="numpy") as opened:
        arrays, metadata = {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()  # noqa: SIM118
    name = min(arrays)
    arrays[name] = np.full_like(arrays[name], np.nan)
    save_file(arrays, folder / "nan.safetensors", metadata)
    return answer_of(
        ["alphagat", "match", str(folder / "nan.safetensors"), "random", "--board", "hex:3", "--games", "2"]
    )


def uci_with_a_superscript(folder: Path) -> Answer:
    """Sends a value that Python counts as a digit, but not as a number."""
    lines = "setoption name Simulations value ²\nisready\nquit\n".encode()
    return answer_of(["alphagat", "uci", "--max_simulations", "8"], lines, PYTHONIOENCODING="utf-8")


def deep_query(folder: Path) -> Answer:
    return answer_of(["alphagat", "analyze", "--board", "hex:5"], b"[" * 200_000 + b"\n")


def deep_metadata(folder: Path) -> Answer:
    save_file({"x": np.zeros(1)}, folder / "x.safetensors", {"config": "[" * 200_000, "iteration": "0"})
    return answer_of(["alphagat", "match", str(folder / "x.safetensors"), "random", "--board", "hex:3", "--games", "2"])


def variable_of_a_launcher(folder: Path) -> Answer:
    return train(folder, MORE, OMPI_COMM_WORLD_SIZE="[" * 100_000)


def config_that(lines: str) -> Callable[[Path], Answer]:
    """Returns an attack with a config file of these lines."""

    def attack(folder: Path) -> Answer:
        file = folder / "attack.py"
        file.write_text(lines)
        return answer_of(["alphagat", "train", "--config", str(file), "--workdir", str(folder / "new")])

    return attack


def pretrain(folder: Path, name: str, data: bytes) -> Answer:
    (folder / name).write_bytes(data)
    board = "chess" if name.endswith(".pgn") else "hex:5"
    words = ["alphagat", "pretrain", "--config", "configs/smoke.py", "--workdir", str(folder / "new"), *RUN]
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


def with_field(field: str) -> Callable[[Path], Answer]:
    return lambda folder: train(folder.with_name("new"), [f"--config.{field}"])


DIGITS = "9" * 20


INPUTS: dict[str, Attack] = {
    "7 engines: invalid bytes, GTP": gtp_with_invalid_bytes,
    "7 engines: the C locale, GTP": gtp_in_the_c_locale,
    "7 engines: invalid bytes, JSON": json_with_invalid_bytes,
    "7 engines: a closed output": closed_output,
    "8 UCI: ² simulations": uci_with_a_superscript,
    "9 weights: NaN": weights_with_nan,
    "10 bounds: width=1000000000": with_field("network.width=1000000000"),
    "10 bounds: num_blocks=1000000": with_field("network.num_blocks=1000000"),
    "10 bounds: capacity=10**15": with_field(f"replay.capacity={10**15}"),
    "10 bounds: capacity=10**9": with_field(f"replay.capacity={10**9}"),
    "10 bounds: learning_rate=1e39": with_field("learner.learning_rate=1e39"),
    "10 bounds: weight_decay=1e300": with_field("learner.weight_decay=1e300"),
    "10 bounds: opening_plies=1000": with_field("selfplay.opening_plies=1000"),
    "10 bounds: opening_plies, 20 digits": with_field(f"selfplay.opening_plies={DIGITS}"),
    "10 bounds: num_simulations, 20 digits": with_field(f"search.num_simulations={DIGITS}"),
    "10 bounds: mcts, 20 digits": with_words("alphagat", "match", "random", f"mcts:{DIGITS}", "--board", "hex:5"),
    "10 bounds: --simulations, 20 digits": with_words("alphagat", "gtp", "--board", "hex:5", "--simulations", DIGITS),
    "10 bounds: --max_simulations, 20 digits": with_words(
        "alphagat", "gtp", "--board", "hex:5", "--max_simulations", DIGITS
    ),
    "10 bounds: --leaves, 20 digits": with_words("alphagat", "gtp", "--board", "hex:5", "--leaves", DIGITS),
    "11 JSON: nested 200,000 deep, weights": deep_metadata,
    "11 JSON: nested 200,000 deep, query": deep_query,
    "11 variable: no number of processes": variable_of_a_launcher,
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
