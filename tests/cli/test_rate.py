"""The rate command: its table, its files in the run folder, and one line per error."""

import collections
import json
import types
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from alphagat.agents.agent import Agent
from alphagat.cli import rate
from alphagat.contests import rate_run
from alphagat.errors import UserError
from alphagat.runs import folder as run_folder
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import open_run_folder
from alphagat.runs.metrics import MetricsWriter
from alphagat.training.state import init_state
from tests.training.tiny import tiny_config, tiny_run

FLAGS = ["--games", "8", "--simulations", "2", "--anchors", "random,mcts:2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = open_run_folder(tmp_path_factory.mktemp("rate") / "run", tiny_config())
    state = init_state(tiny_run())
    with CheckpointWriter(folder) as writer, MetricsWriter(folder) as metrics:
        for step in (4, 8, 12):
            params = jax.tree.map(lambda x, scale=step: x * scale, state.train.params)
            writer.save(state.replace(train=state.train.replace(params=params)), step)
            metrics.write(step, {"frames": 64 * step, "hours": step / 10})
    return folder


def read(run: Path) -> dict:
    return json.loads((run / rate_run.RATINGS_FILE).read_text())


def drawing(run: Path) -> Path:
    return run / rate_run.CURVE_FILE


@pytest.fixture
def played(monkeypatch) -> Iterator[list[tuple[str, str]]]:
    """Records the pairs and returns fixed results, because compiling a match takes seconds."""
    found, keys = [], collections.defaultdict(set)

    def play(game, a, b, openings, key, mesh):
        found.append((a.name, b.name))
        keys[a.name, b.name].add(jax.random.key_data(key).tobytes())
        scores = np.random.default_rng(len(found)).integers(0, 5, len(openings.actions)) / 2
        return types.SimpleNamespace(pair_scores=scores)

    monkeypatch.setattr(rate_run, "play_match", play)
    yield found
    assert {len(each) for each in keys.values()} <= {1}
    assert len(set().union(*keys.values())) == len(keys)  # each pair has its own key, equal in every call


def test_rates_every_checkpoint_and_anchor(run, capsys):
    assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = read(run)
    networks = ["iteration 4", "iteration 8", "iteration 12"]
    assert [each["name"] for each in found["players"]][2:] == networks
    assert {each["name"] for each in found["players"][:2]} == {"random", "mcts:2"}
    assert [each["frames"] for each in found["players"]] == [None, None, 256, 512, 768]
    assert [each["hours"] for each in found["players"]][2:] == pytest.approx([0.4, 0.8, 1.2])
    rows = {line.split("│")[1].strip(): line for line in printed.out.splitlines() if "│" in line}
    for each in found["players"]:
        assert each["low"] <= each["elo"] <= each["high"]
        assert f" {each['elo']:,.0f} " in rows[each["name"]]
        assert f" {each['low']:,.0f} to {each['high']:,.0f} " in rows[each["name"]]
    assert [(each["low"], each["high"]) for each in found["players"] if each["name"] == "random"] == [(0, 0)]
    pairs = {(each["player"], each["opponent"]) for each in found["matches"]}
    against_anchors = {(network, anchor) for network in networks for anchor in ("random", "mcts:2")}
    assert pairs == against_anchors | {("random", "mcts:2"), (networks[1], networks[0]), (networks[2], networks[1])}
    assert all(len(each["pair_scores"]) == 4 for each in found["matches"])
    assert all(each["score"] == np.mean(each["pair_scores"]) / 2 for each in found["matches"])


def test_a_repeated_call_plays_only_missing_matches(run, capsys, played):
    (run / rate_run.RATINGS_FILE).unlink(missing_ok=True)
    assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    before, drawn = read(run), drawing(run).read_bytes()
    first = capsys.readouterr().out
    assert len(played) == 9
    assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    printed = capsys.readouterr()
    assert (len(played), printed.out, read(run)) == (9, first, before)
    assert "9 of 9 matches were played before" in printed.err
    assert drawing(run).read_bytes() == drawn
    some = ["--workdir", str(run), *FLAGS, "--iterations", "12,4", "--anchors", "mcts:2"]
    assert rate.run(some) == 0
    assert played[9:] == [("iteration 12", "iteration 4")]
    assert read(run)["anchor"] == "mcts:2"
    assert rate.run([*some, "--games", "4"]) == 0
    assert len(played) == 10 + 3


def set_value_scale(config):
    config.evaluation.value_scale /= 2


def set_seed(config):
    config.seed += 1


@pytest.mark.parametrize("change", [set_value_scale, set_seed])
def test_matches_of_another_value_scale_or_run_are_not_reused(run, monkeypatch, played, change):
    (run / rate_run.RATINGS_FILE).unlink(missing_ok=True)
    assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    number, config = len(played), run_folder.read_config(run)
    change(config)
    with monkeypatch.context() as context:
        context.setattr(run_folder, "read_config", lambda _: config)
        assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    assert len(played) == 2 * number > 0
    assert rate.run(["--workdir", str(run), *FLAGS]) == 0  # the first matches are kept
    assert len(played) == 2 * number


def test_the_seed_draws_the_openings_and_the_choices_of_players(run, monkeypatch):
    (run / rate_run.RATINGS_FILE).unlink(missing_ok=True)
    drawn = []

    def play(game, a, b, openings, key, mesh):
        drawn.append((openings.actions.tolist(), jax.random.key_data(key).tolist()))
        raise UserError("enough")

    monkeypatch.setattr(rate_run, "play_match", play)
    for seed in ("1", "1", "2"):
        assert rate.run(["--workdir", str(run), *FLAGS, "--seed", seed]) == 2
    first, again, other = drawn
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]


def test_an_interrupted_call_keeps_its_matches(run, capsys, monkeypatch, played):
    (run / rate_run.RATINGS_FILE).unlink(missing_ok=True)
    play_match = rate_run.play_match

    def play(*arguments):
        if len(played) == 2:
            raise KeyboardInterrupt
        return play_match(*arguments)

    with monkeypatch.context() as context:
        context.setattr(rate_run, "play_match", play)
        assert rate.run(["--workdir", str(run), *FLAGS]) == 130
    assert "interrupted; the same command continues" in capsys.readouterr().err
    assert len(read(run)["matches"]) == 2
    assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    assert "2 of 9 matches were played before" in capsys.readouterr().err
    assert len(set(played)) == len(played) == 9


def test_two_calls_at_once_keep_the_matches_of_both(run, monkeypatch, played):
    """The second call begins and ends while the first one plays its third match."""
    (run / rate_run.RATINGS_FILE).unlink(missing_ok=True)
    play_match, other = rate_run.play_match, [*FLAGS, "--games", "4"]

    def play(*arguments):
        if len(played) == 2:
            with monkeypatch.context() as inner:
                inner.setattr(rate_run, "play_match", play_match)
                assert rate.run(["--workdir", str(run), *other]) == 0
        return play_match(*arguments)

    with monkeypatch.context() as context:
        context.setattr(rate_run, "play_match", play)
        assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    assert len(played) == 2 * 9
    for flags in (FLAGS, other):
        assert rate.run(["--workdir", str(run), *flags]) == 0
    assert len(played) == 2 * 9


def test_networks_share_one_program(run):
    settings = rate_run.RatingSettings("hex:2", 8, 2, 1.0, 0, "")
    players = rate_run._networks(run, [4, 8, 12], settings)
    assert len({player.act for player in players.values()}) == 1
    sums = {float(sum(abs(leaf).sum() for leaf in jax.tree.leaves(each.params))) for each in players.values()}
    assert len(sums) == 3


def test_networks_play_with_the_simulations_of_the_settings(run, monkeypatch):
    asked, player = [], Agent.player
    monkeypatch.setattr(Agent, "player", lambda agent, number=None: asked.append(number) or player(agent, number))
    rate_run._networks(run, [4, 8], rate_run.RatingSettings("hex:2", 8, 5, 1.0, 0, ""))
    assert set(asked) == {5}


def test_the_curve_is_an_svg_of_three_panels(run, capsys, played):
    assert rate.run(["--workdir", str(run), *FLAGS]) == 0
    assert "ratings.json, ratings.svg" in capsys.readouterr().out
    text = "".join(ElementTree.parse(drawing(run)).getroot().itertext())
    for words in ("iterations", "frames", "hours of training", "Elo", "random", "mcts:2", "hex:2, 2 simulations"):
        assert words in text


MISTAKES = {
    "no run": ([], "RUN is missing; name a run"),
    "odd games": (["--games", "7"], "--games 7: it must be an even number"),
    "too many games": (["--games", "600"], "play at most"),
    "no simulations": (["--simulations", "0"], "--simulations 0: it must be at least 1"),
    "a checkpoint that is not there": (["--iterations", "4,5"], "no checkpoint of iteration 5, only of 4, 8, 12"),
    "words for iterations": (
        ["--iterations", "4,last"],
        "4,last: each item must be an integer, at least 0 and at most 1000000, such as --iterations 20,40",
    ),
    "no iterations": (["--iterations", ""], "--iterations : each item must be an integer, at least 0"),
    "unknown anchor": (
        ["--anchors", "random,mcst:3"],
        "opponent 'mcst:3': there is no such player; use one of random",
    ),
    "nobody to play": (["--anchors", "", "--iterations", "8"], "one player alone has no rating"),
    "another family": (["--board", "connect_four"], "plays only boards of that family"),
    "one player": (["--board", "2048"], "board 2048: ratings need a game for two players"),
    "negative seed": (["--seed", "-1"], "--seed -1: it must"),
    "unknown flag": (["--opponent=random"], "--opponent is not a flag of this command; "),
}


@pytest.mark.parametrize(("flags", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_errors_give_one_line_and_exit_2(run, capsys, flags: list[str], message: str):
    (run / rate_run.RATINGS_FILE).unlink(missing_ok=True)
    assert rate.run([*flags, *(["--workdir", str(run)] if flags else [])]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert not (run / rate_run.RATINGS_FILE).exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"matches": []}'])
def test_a_broken_ratings_file_is_not_overwritten(run, capsys, content):
    file = run / rate_run.RATINGS_FILE
    file.write_text(content)
    assert rate.run(["--workdir", str(run), *FLAGS]) == 2
    assert "ratings.json cannot be read" in capsys.readouterr().err
    assert file.read_text() == content
    file.unlink()


@pytest.mark.parametrize(
    "scores",
    [5, [], [1.0] * 3, [float("nan")] * 4, [-7, 1, 1, 1], [1e308] * 4, [[1.0, 2.0]] * 2, [[1], 2, 3, 4], [10**400] * 4],
    ids=lambda scores: str(scores)[:20],
)
def test_damaged_pair_scores_are_refused(tmp_path, scores):
    file, settings = tmp_path / rate_run.RATINGS_FILE, rate_run.RatingSettings("hex:2", 8, 2, 1.0, 0, "")
    rate_run._write(file, settings, "random", [], {("a", "b"): np.ones(4)})
    content = json.loads(file.read_text())
    content["matches"][0]["pair_scores"] = scores
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"ratings\.json cannot be read \(.*\): move it away$"):
        rate_run._read_matches(file, settings)


def test_a_folder_without_checkpoints_is_refused(tmp_path, capsys):
    folder = open_run_folder(tmp_path / "run", tiny_config())
    assert rate.run(["--workdir", str(folder)]) == 2
    assert "has no complete checkpoint yet" in capsys.readouterr().err
    assert rate.run(["--workdir", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_help(capsys):
    assert rate.run(["--help"]) == 0
    assert "--iterations 20,40,80 --anchors random,mcts:100,mcts:1000" in capsys.readouterr().out
