"""The command `alphagat`, also `python -m alphagat`: `alphagat NAME ...` runs the module NAME of `alphagat.cli`."""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

import alphagat
from alphagat.bounds import shown
from alphagat.cli import COMMANDS, commands
from alphagat.errors import INTERRUPTED, USER_ERROR
from alphagat.runtime import terminal


def run(argv: Sequence[str]) -> int:
    """Runs the command that `argv[0]` names with the other arguments, and returns the exit status."""
    name, *words = argv or ["--help"]
    if name in ("-h", "--help"):
        return commands.run(_write, [overview()])
    if name == "--version":
        return commands.run(_write, [f"alphagat {alphagat.__version__}\n"])
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"the nearest is {near[0]}" if near else "alphagat --help lists them"
        terminal.say(f"error: {shown(name)}: there is no such command; {hint}")
        return USER_ERROR
    try:
        return importlib.import_module(f"alphagat.cli.{name}").run(words)
    except KeyboardInterrupt:  # while the module was imported
        terminal.say("interrupted")
        return INTERRUPTED


def overview() -> str:
    """Returns the list of commands."""
    width = max(map(len, COMMANDS)) + 2
    rows = "".join(f"  {name:{width}}{summary}\n" for name, summary in COMMANDS.items())
    return f"usage: alphagat COMMAND ...\n\ncommands:\n{rows}\nRun alphagat COMMAND --help for details.\n"


def _write(texts: Sequence[str]) -> None:
    sys.stdout.writelines(texts)


def _occupy_closed_streams() -> None:
    """Opens the descriptors 0 to 2 where they are closed, as by `2>&-`: libraries would write into the files there."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def main() -> None:
    _occupy_closed_streams()
    # A stream is None if it is closed, as by `>&-`.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    commands.end(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
