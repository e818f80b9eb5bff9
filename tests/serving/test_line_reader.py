"""Lines arrive in any encoding and in bounded memory, and the end of a broken stream is an end."""

import io
import sys
import time

import pytest

from alphagat.serving.protocols import line_reader
from alphagat.serving.protocols.line_reader import MAX_WAITING, Lines, standard_streams


def stream_of(data: bytes, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding)


def test_lines_lose_their_ends():
    assert list(Lines(io.StringIO("a\r\nb\n\nc"))) == ["a", "b", "", "c"]


def test_a_long_line_is_cut_so_that_it_can_be_refused(monkeypatch):
    monkeypatch.setattr(line_reader, "MAX_LINE", 4)
    text = "aaaa\r\nbbbb\ncccccc\nddddd\r\n" + "e" * 100 + "\nf\n" + "g" * 12
    lines = list(Lines(io.StringIO(text)))
    assert [line[:1] for line in lines] == list("abcdefg")
    assert [len(line) > 4 for line in lines] == [line[:1] in "cdeg" for line in lines]
    assert max(map(len, lines)) == 6
    assert lines[:2] == ["aaaa", "bbbb"]


def test_a_long_input_is_not_read_ahead():
    stream = io.StringIO("x\n" * 3 * MAX_WAITING)
    lines = Lines(stream)
    while not lines._queue.full():
        time.sleep(0.001)
    assert stream.tell() <= 2 * (MAX_WAITING + 1)  # one line may wait for a place
    assert list(lines) == ["x"] * 3 * MAX_WAITING


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
