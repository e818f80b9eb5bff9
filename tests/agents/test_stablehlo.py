"""Networks as StableHLO: a loaded export is bit-identical to the network."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import alphagat
from alphagat.agents import model_card, stablehlo
from alphagat.agents.agent import Agent
from alphagat.agents.build import make_configured_network, make_params
from alphagat.cli import export
from alphagat.config import Config
from alphagat.evaluation.openings import random_positions
from alphagat.games import make_game
from alphagat.search import make_network_evaluator


def untrained(board: str, **fields) -> Agent:
    config = Config(boards=(board,))
    config.network.width, config.network.num_blocks, config.network.num_heads = 8, 2, 2
    for name, value in fields.items():
        setattr(config.network, name, value)
    game = make_game(board)
    network = make_configured_network(config, game)
    params = make_params(game, network, jax.random.key(0))
    return Agent(game, config, 0, params, make_network_evaluator(game, network))


AGENTS = {
    "gat": ("hex:3", {}),
    "jraph": ("hex:3", {"backend": "jraph"}),
    "half precision": ("hex:3", {"precision": "bfloat16"}),
    "resnet": ("connect_four", {"name": "resnet"}),
    "categorical value": ("2048:3", {}),
    "edges of positions": ("tsp:5", {}),
}


@pytest.mark.parametrize(("board", "fields"), AGENTS.values(), ids=AGENTS.keys())
def test_an_export_is_bit_identical_to_the_network(tmp_path, board, fields):
    agent = untrained(board, **fields)
    stablehlo.write(tmp_path / "net.stablehlo", agent)
    read = jax.export.deserialize(bytearray((tmp_path / "net.stablehlo").read_bytes()))
    assert read.platforms == ("cpu", "cuda")
    assert not isinstance(read.in_avals[0].shape[0], int)  # any number of positions
    states = random_positions(agent.game, 5, 0, 3, seed=0)
    functions = [agent.game.observe] + [agent.game.edges] * agent.game.topology.edges_vary
    prior_logits, values = read.call(*(jax.jit(jax.vmap(function))(states) for function in functions))
    expected = jax.jit(agent.evaluator)(agent.params, states)
    assert values.shape == (5,)
    np.testing.assert_array_equal(prior_logits, expected.prior_logits)
    np.testing.assert_array_equal(values, expected.value)


READER = """
import sys
import jax, numpy as np
read = jax.export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
prior_logits, values = read.call(np.load(sys.argv[2]))
assert not any(name.startswith("alphagat") for name in sys.modules)
np.savez(sys.argv[3], prior_logits=prior_logits, values=values)
"""


def test_a_shipped_network_of_another_board_runs_without_alphagat(tmp_path, capsys):
    file, card = tmp_path / "hex.stablehlo", tmp_path / "card.md"
    arguments = ["--workdir", "hex", "--out", str(file), "--board", "hex:4", "--batch", "3", "--card", str(card)]
    assert export.run(arguments) == 0, capsys.readouterr().err
    assert "network.call(features)  # features [B, 20, 9]" in card.read_text()

    nodes = np.random.default_rng(0).random((3, 20, 9), np.float32)
    np.save(tmp_path / "nodes.npy", nodes)
    names = [str(file), str(tmp_path / "nodes.npy"), str(tmp_path / "out.npz")]
    subprocess.run([sys.executable, "-c", READER, *names], check=True, cwd=tmp_path, timeout=120)
    found = np.load(tmp_path / "out.npz")
    agent = alphagat.load("hex", board="hex:4")
    network = make_configured_network(agent.config, agent.game)
    prior_logits, values = jax.jit(network.apply)(agent.params, nodes)
    np.testing.assert_array_equal(found["prior_logits"], prior_logits)
    np.testing.assert_array_equal(found["values"], values)


def test_the_card_names_the_edges_among_the_inputs(tmp_path):
    card = tmp_path / "card.md"
    model_card.write(card, untrained("tsp:5"), "net.stablehlo", [], None)
    line = (
        "    prior_logits, values = network.call(features, edges)  # features [B, 5, 14], edges [B, 5, 5, 5], float32,"
    )
    assert f"{line} of the board tsp:5\n" in card.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "net.onnx"], "end the name with .safetensors or .stablehlo"),
        (["--out", "net.stablehlo", "--batch", "0"], "--batch 0: it must be at least 1"),
        (["--out", "net.safetensors", "--batch", "4"], "works for all boards and batch sizes"),
        (["--out", "net.safetensors", "--board", "hex:5"], "works for all boards and batch sizes"),
        (["--out", "net.stablehlo", "--card", "card.txt"], "card.txt: end the name with .md"),
        (["--out", "net.stablehlo", "--board", "connect_four"], "plays only boards of that family"),
    ],
)
def test_errors_give_one_line_and_exit_2(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    assert export.run(["--workdir", "hex", *options]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message in printed.err
    assert not list(tmp_path.iterdir())
