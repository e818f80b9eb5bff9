"""The uci command."""

import io

import pytest

from alphagat.cli import uci
from alphagat.serving.protocols import line_reader


@pytest.fixture
def talk(monkeypatch):
    """Returns a function that runs the command with these lines as its input, and returns its status and output."""

    def run(argv: list[str], *lines: str) -> tuple[int, str]:
        out = io.StringIO()
        monkeypatch.setattr(line_reader, "standard_streams", lambda: (io.StringIO("\n".join(lines) + "\n"), out))
        return uci.run(argv), out.getvalue()

    return run


def test_without_arguments_the_shipped_network_plays_chess(talk):
    status, said = talk([], "position startpos moves e2e4", "isready", "quit")
    assert (status, said) == (0, "readyok\n")


@pytest.mark.parametrize(("argv", "most"), [([], 32), (["--simulations", "100"], 100)])
def test_a_move_may_take_as_many_simulations_as_it_does_by_default(talk, argv, most):
    status, said = talk(["--max_simulations", "10", *argv], "uci", "quit")
    assert status == 0
    assert f"option name Simulations type spin default {most} min 1 max {most}\n" in said


def test_the_help_says_that_a_clock_replaces_the_simulations(capsys):
    assert uci.run(["--help"]) == 0
    help_text = " ".join(capsys.readouterr().out.split())
    assert "simulations of a move without a clock (default: evaluation.num_simulations of its run)" in help_text
    assert (
        "maximum simulations of go nodes, and of a search with a clock or without a limit (default: 4096)" in help_text
    )


def test_another_board_is_refused_at_once(talk, capsys, monkeypatch):
    monkeypatch.setattr("alphagat.cli.engine_options.open_agent", lambda *_: pytest.fail("the network was loaded"))
    assert talk(["--board", "hex:5"], "quit") == (2, "")
    assert capsys.readouterr().err == "error: board hex:5: UCI is for chess only; see alphagat gtp\n"


def test_a_network_for_another_family_is_refused(talk, capsys):
    assert talk(["hex"], "quit") == (2, "")
    assert capsys.readouterr().err.startswith("error: board chess: ")
