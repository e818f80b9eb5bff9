"""Seeded damage to valid inputs, for tests that no parser raises anything but its own error."""

import random
import re
from collections.abc import Iterator, Sequence

NUMBERS = ("²".encode(), "٣".encode(), b"-1", b"0", b"NaN", b"1e999", b"9" * 20, b"9" * 5000)
DEEP = tuple(bracket * 2000 for bracket in (b"[", b"{", b"(", b'{"a":'))
HOSTILE = (
    *NUMBERS,
    *DEEP,
    b"\x00",
    b"\xff\xfe",
    b"\r\n\r\n",
    b"\\",
    b'"',
    b"]",
    b")",
    b"}",
    b"{}",
    b"null",
    b"$" + b"9" * 5000,
)


def mutants(valid: Sequence[bytes], number: int, seed: int = 0) -> Iterator[bytes]:
    """Yields `number` damaged copies of the valid inputs."""
    random_ = random.Random(seed)
    for _ in range(number):
        data = bytearray(random_.choice(valid))
        for _ in range(random_.choice((1, 1, 2, 4))):
            random_.choice(DAMAGES)(random_, data, valid)
        if random_.random() < 0.03:
            data[:] = random_.choice(HOSTILE)
        yield bytes(data)


def text_mutants(valid: Sequence[str], number: int, seed: int = 0) -> Iterator[str]:
    """Yields damaged copies as text; invalid UTF-8 becomes U+FFFD."""
    for data in mutants([text.encode() for text in valid], number, seed):
        yield data.decode(errors="replace")


def line_mutants(valid: Sequence[str], number: int, seed: int = 0) -> Iterator[str]:
    """Yields damaged lines, each followed by a valid one, but none that tells an engine to quit."""
    random_ = random.Random(seed)
    for text in text_mutants(valid, number, seed):
        yield from (line for line in text.splitlines() if "quit" not in line)
        yield random_.choice(valid)


def _flip(random_: random.Random, data: bytearray, valid: Sequence[bytes]) -> None:
    if data:
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)


def _delete(random_: random.Random, data: bytearray, valid: Sequence[bytes]) -> None:
    del data[_part(random_, data)]


def _duplicate(random_: random.Random, data: bytearray, valid: Sequence[bytes]) -> None:
    part = _part(random_, data)
    data[part.start : part.start] = data[part] * random_.choice((1, 1, 50))


def _truncate(random_: random.Random, data: bytearray, valid: Sequence[bytes]) -> None:
    del data[random_.randint(0, len(data)) :]


def _splice(random_: random.Random, data: bytearray, valid: Sequence[bytes]) -> None:
    other = random_.choice(valid)
    data[_part(random_, data)] = other[_part(random_, other)]


def _insert(random_: random.Random, data: bytearray, valid: Sequence[bytes]) -> None:
    at = random_.randint(0, len(data))
    data[at:at] = random_.choice(HOSTILE)


def _replace_number(random_: random.Random, data: bytearray, valid: Sequence[bytes]) -> None:
    if numbers := list(re.finditer(rb"[0-9]+", data)):
        start, end = random_.choice(numbers).span()
        data[start:end] = random_.choice(NUMBERS)


def _part(random_: random.Random, data: Sequence[int]) -> slice:
    """Returns a part of the data, most often a short one."""
    start = random_.randint(0, len(data))
    return slice(start, start + random_.randint(1, random_.choice((4, 40, 400))))


DAMAGES = (_flip, _delete, _duplicate, _truncate, _splice, _insert, _replace_number, _replace_number)
