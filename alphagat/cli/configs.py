"""Lists the configs of the package, or prints one: `alphagat configs quickstart > mine.py`."""

import sys
from collections.abc import Sequence

from alphagat import config_files
from alphagat.cli import commands
from alphagat.errors import UserError

EXAMPLES = """\
examples:
  alphagat configs
  alphagat configs quickstart > mine.py      # change a copy, then: alphagat train mine.py"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("configs", epilog=EXAMPLES)
    parser.add_argument("name", nargs="?", metavar="CONFIG", help="print this config (default: list all)")
    return parser


def show(argv: Sequence[str]) -> None:
    """Prints the list, or the config that `argv` names."""
    name, names = make_parser().parse_args(list(argv)).name, config_files.names()
    if name is None:
        width = max(map(len, names)) + 2
        sys.stdout.writelines(f"{each:{width}}{config_files.summary(each)}\n" for each in names)
    elif name in names:
        sys.stdout.write((config_files.FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    else:
        raise UserError(f"{name}: there is no such config; configs are {', '.join(names)}")


def run(argv: Sequence[str]) -> int:
    """Runs the command with `argv`, without the program's name, and returns the exit status."""
    return commands.run(show, argv)
