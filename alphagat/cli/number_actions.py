"""The actions of flags with numbers."""

import argparse
from collections.abc import Sequence
from typing import Any

from alphagat.bounds import Limits, read_number, shown
from alphagat.errors import UserError


class Number(argparse.Action):
    """The action of a flag with one number: `add_argument("--games", action=Number, kind=int, limits=Limits(...))`.

    Raises UserError for other values.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, *, kind: type, limits: Limits, **kwargs: Any):
        super().__init__(option_strings, dest, type=str, **kwargs)  # `read` also refuses an empty text
        self.kind, self.limits = kind, limits

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        del parser, option_string
        setattr(namespace, self.dest, self.read(values))

    def read(self, text: str) -> Any:
        """Returns the value of the flag."""
        try:
            return read_number(text, self.kind, self.limits)
        except UserError as error:
            raise UserError(f"{self.option_strings[0]} {shown(text)}: it must be {error}") from None


class Numbers(Number):
    """The action of a flag with several numbers, separated by commas; its value is a tuple.

    `counts` holds the accepted lengths, such as `(1, 2)`; None accepts any.
    """

    def __init__(self, *args: Any, counts: tuple[int, ...] | None = None, example: str, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.counts, self.example = counts, example

    def read(self, text: str) -> tuple[Any, ...]:
        words = text.split(",")
        example = f"such as {self.option_strings[0]} {self.example}"
        if self.counts is not None and len(words) not in self.counts:
            lengths = " or ".join(map(str, self.counts))
            raise UserError(
                f"{self.option_strings[0]} {shown(text)}: it must be {lengths} numbers, each {self.limits}, {example}"
            )
        try:
            return tuple(read_number(word, self.kind, self.limits) for word in words)
        except UserError as error:
            raise UserError(f"{self.option_strings[0]} {shown(text)}: each item must be {error}, {example}") from None
