"""A status leaves no trace where standard error is no terminal, and nothing fails because nobody reads it."""

import os
import sys

import pytest

from alphagat.runtime import terminal


@pytest.mark.parametrize("colour", ["", "1"])
def test_a_pipe_gets_no_status(capsys, monkeypatch, colour):
    if colour:
        monkeypatch.setenv("FORCE_COLOR", colour)  # makes rich take every file for a terminal
    with terminal.status("loading"):
        pass
    assert tuple(capsys.readouterr()) == ("", "")


def test_a_line_that_nobody_reads_is_lost(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        terminal.say("one")
        terminal.say("two")
