"""New files are checked before long work, without leaving a trace."""

import os
import subprocess
import sys
import tempfile

import pytest

from alphagat.errors import UserError
from alphagat.runs.atomic_files import check_new


def test_a_new_file_is_accepted_and_nothing_is_made(tmp_path):
    check_new(tmp_path / "games.sgf", ".sgf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("old.sgf", "exists, and nothing is overwritten"),
        ("new.txt", "end the name with .sgf or .pgn"),
        ("no/new.sgf", "there is no folder"),
    ],
)
def test_an_unusable_name_is_refused(tmp_path, name, message):
    (tmp_path / "old.sgf").touch()
    with pytest.raises(UserError, match=message):
        check_new(tmp_path / name, ".sgf", ".pgn")


def test_text_is_utf8_in_every_locale(tmp_path):
    code = f"from alphagat.runs.atomic_files import *; write_atomically(Path({str(tmp_path / 'x')!r}), 'G\\u00f6del')"
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert (tmp_path / "x").read_bytes().decode() == "G\u00f6del"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    with pytest.raises(UserError, match=r"new.sgf: files cannot be made in .* \(Permission denied\)"):
        check_new(tmp_path / "new.sgf", ".sgf")
