"""A standard error that is a terminal."""

import io
import re
import sys

import pytest

SPINNER = re.compile("[\u2800-\u28ff] ")  # a character of braille


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def texts(self) -> tuple[set[str], list[str]]:
        """Returns the texts beside a spinner, and all others."""
        plain = re.sub("\x1b\\[[0-9;]*m", "", self.getvalue())  # without colours
        texts = [text.strip() for text in re.split("\x1b\\[[0-9;?]*[A-Za-z]|[\r\n]", plain) if text.strip()]
        shown = {text for text in texts if SPINNER.match(text)}
        return {text[2:] for text in shown}, [text for text in texts if text not in shown]


def be_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replaces standard error; in the body of a test, because pytest replaces it after the fixtures."""
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal
