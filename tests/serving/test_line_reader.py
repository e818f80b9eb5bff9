"""Lines arrive in any encoding, and the end of a broken stream is an end."""

import io
import sys

import pytest

from alphagat.serving.line_reader import Lines, standard_streams


def stream_of(data: bytes, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding)


def test_lines_lose_their_ends():
    assert list(Lines(io.StringIO("a\r\nb\n\nc"))) == ["a", "b", "", "c"]


def test_an_error_in_the_stream_ends_it():
    assert list(Lines(stream_of(b"1 name\n2 \xff\n3 quit\n", "utf-8"))) == []


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_standard_streams_take_any_bytes_in_any_locale(monkeypatch, encoding: str):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", stream_of("1 ü\n".encode() + b"2 \xff\n3 quit\n", encoding))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
    source, answers = standard_streams()
    assert list(Lines(source)) == ["1 ü", "2 \ufffd", "3 quit"]
    answers.write("ü \ufffd\n")
    answers.flush()
    assert out.getvalue().decode() == "ü \ufffd\n"
