"""A status leaves no trace where standard error is no terminal."""

import pytest

from alphagat.runtime import terminal


@pytest.mark.parametrize("colour", ["", "1"])
def test_a_pipe_gets_no_status(capsys, monkeypatch, colour):
    if colour:
        monkeypatch.setenv("FORCE_COLOR", colour)  # makes rich take every file for a terminal
    with terminal.status("loading"):
        pass
    assert tuple(capsys.readouterr()) == ("", "")
