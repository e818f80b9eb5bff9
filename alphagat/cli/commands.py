"""Shared by all commands: flags, one-line errors and exit statuses."""

import _thread
import argparse
import difflib
import errno
import io
import os
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

from absl import logging

from alphagat.bounds import MAX_GAMES, MAX_SEED, MAX_SIMULATIONS, Limits, shown
from alphagat.cli import COMMANDS
from alphagat.cli.number_actions import Number
from alphagat.errors import (
    BROKEN,
    INTERRUPTED,
    REQUEUE,
    USER_ERROR,
    AuditError,
    DiskError,
    JointError,
    ServiceError,
    UserError,
    causes,
    disk_failure,
)
from alphagat.runtime import distributed, terminal, xla
from alphagat.runtime.preemption import Interrupted, Preempted

# Errors that the user's choice of a path causes.
UNUSABLE = {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR}
STARTING = "starting JAX"  # shown while a command imports it
LOADING = "loading the network"


class ArgumentParser(argparse.ArgumentParser):
    """Parses the arguments of `alphagat NAME`. A mistake raises `UserError`; flags cannot be abbreviated.

    An argument without a type of its own refuses an empty value.

    Args:
      name: one of `COMMANDS`, whose summary starts the description.
      details: the rest of the description.
      epilog: text after the flags, printed as it is.
    """

    def __init__(self, name: str, details: str = "", epilog: str = ""):
        description = textwrap.fill(f"{COMMANDS[name]} {details}".strip(), 120)
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(f"alphagat {name}", None, description, epilog, allow_abbrev=False, formatter_class=formatter)
        self.register("type", None, _not_empty)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        """Parses all arguments. Raises UserError."""
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            raise self.refusal_of(unknown[0])
        return known

    def refusal_of(self, word: str) -> UserError:
        """Returns the error of an argument that the command does not have."""
        name = word.partition("=")[0]
        near = difflib.get_close_matches(name, self._option_string_actions, n=1)
        hint = f"the nearest is {near[0]}" if near else "see --help"
        return UserError(f"{shown(name)} is not a flag of this command; {hint}")

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")

    def print_help(self, file: TextIO | None = None) -> None:
        """Writes the help to standard output, by default. Raises OSError, which argparse would ignore."""
        (file or sys.stdout).write(self.format_help())


def _not_empty(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it is empty; give it a value")
    return text


def run(
    command: Callable[[Sequence[str]], int | None], argv: Sequence[str], *, interrupted: str = "interrupted"
) -> int:
    """Calls `command(argv)` and returns the exit status: what it returns, one of those in `alphagat.errors`, or 0.

    Args:
      interrupted: the line to print after Ctrl-C.
    """
    logging.set_verbosity(logging.FATAL)  # Orbax's warnings fill the screen; errors are reported in one line
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # it may be ASCII
    _repeat_lost_interrupts()
    xla.keep_loops_on_gpu()
    xla.use_32_bits()
    xla.use_cache()
    try:
        status = _status_of(command, argv)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of standard output has ended, as in `... | head`
        return BROKEN
    except (Exception, KeyboardInterrupt) as error:
        if known := _explain(error, interrupted):
            status, line = known
            if line:
                terminal.say(line)
            if isinstance(error, JointError):  # after the line, since the end of any process ends the others
                distributed.disconnect()
            return status
        if distributed.num_processes() == 1:
            raise
        traceback.print_exc()  # re-raising would deadlock: at exit Python waits for processes that wait for this one
        return BROKEN
    return status


def _status_of(command: Callable[[Sequence[str]], int | None], argv: Sequence[str]) -> int:
    try:
        return command(argv) or 0
    except SystemExit as end:  # argparse after --help
        return end.code if isinstance(end.code, int) else 0


def _explain(error: BaseException, interrupted: str) -> tuple[int, str] | None:
    """Returns the exit status and the line that explain an error or a request to stop; None for an unknown error.

    The line is empty if another process explains it.
    """
    if isinstance(error, JointError) and not error.is_reported_here:
        return USER_ERROR, ""
    if isinstance(error, UserError):
        return USER_ERROR, f"error: {' '.join(str(error).split())}"
    if isinstance(error, AuditError):
        return BROKEN, f"error: a self-play game breaks the rules, so the run stopped at its last checkpoint: {error}"
    if isinstance(error, DiskError | ServiceError):
        return BROKEN, f"error: {' '.join(str(error).split())}"
    if isinstance(error, Preempted | Interrupted):
        status, ended = (INTERRUPTED, "interrupted") if error.by_keyboard else (REQUEUE, "ended by a signal")
        when, then = ("after saving", "resume") if error.is_saved else ("before the first checkpoint", "start again")
        return status, f"{ended} {when}; run the same command to {then}" if distributed.is_first() else ""
    if any(isinstance(each, KeyboardInterrupt) for each in causes(error)):  # Ctrl-C may end an import by ImportError
        return INTERRUPTED, interrupted
    file = shown(getattr(error, "filename", None) or "a file")
    if isinstance(error, OSError) and error.errno in UNUSABLE:
        return USER_ERROR, f"error: {file}: {error.strerror}; use another path"
    if failure := disk_failure(error):
        return BROKEN, f"error: {file}: {failure} and run the command again"
    if missing := xla.missing_platform():
        return USER_ERROR, f"error: {missing}"
    return None


def end(status: int) -> NoReturn:
    """Exits. After an interrupt, or a failure of one of several processes, it skips Python's shutdown.

    The shutdown could crash in a JAX thread that still compiles, or wait for the other processes.
    """
    try:
        sys.stdout.flush()
    except OSError:  # `run` has reported it
        terminal.silence(sys.stdout)  # for the flush at exit
    sys.stderr.flush()
    if status in (INTERRUPTED, REQUEUE) or (status and distributed.num_processes() > 1):
        os._exit(status)
    sys.exit(status)


def _repeat_lost_interrupts() -> None:
    """Repeats a Ctrl-C that Python drops: an exception in a garbage collector callback is only printed."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):  # exc_value may be None
            threading.Timer(0.05, _thread.interrupt_main).start()  # delayed, or it would be dropped again
        else:
            before(unraisable)

    sys.unraisablehook = hook


def add_run(parser: ArgumentParser, *, metavar: str = "RUN", help: str) -> None:
    """Adds the positional argument that names a trained player, and `--workdir`, which means the same."""
    parser.add_argument("source", nargs="?", metavar=metavar, help=help)
    parser.add_argument("--workdir", metavar="FOLDER", help=f"the same as {metavar}")


def named_run(options: argparse.Namespace) -> str | None:
    """Returns what the arguments of `add_run` name. Raises UserError if both are given."""
    if options.source and options.workdir:
        raise UserError(
            f"--workdir {options.workdir}: {options.source} already names a player; give only one of the two"
        )
    return options.source or options.workdir


def add_runs(parser: ArgumentParser, *, help: str) -> None:
    """Adds the positional arguments that name trained players or runs, and `--workdir`, which means the same as one."""
    parser.add_argument("sources", nargs="*", metavar="RUN", help=help)
    parser.add_argument("--workdir", metavar="FOLDER", help="the same as one RUN")


def named_runs(options: argparse.Namespace) -> list[str]:
    """Returns what the arguments of `add_runs` name. Raises UserError if both kinds are given."""
    if options.workdir is None:
        return options.sources
    if options.sources:
        raise UserError(f"--workdir {options.workdir}: {options.sources[0]} is already named; name all of them by RUN")
    return [options.workdir]


def required_run(options: argparse.Namespace) -> str:
    """Returns what the arguments of `add_run` name. Raises UserError unless exactly one is given."""
    if name := named_run(options):
        return name
    raise missing_run()


def missing_run() -> UserError:
    """Returns the error of a command that needs a run."""
    return UserError("RUN is missing; name a run, such as runs/quickstart")


def add_number(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    flag: str,
    kind: type,
    limits: Limits,
    *,
    help: str,
    default: float | None = None,
    metavar: str | None = None,
) -> None:
    """Adds a flag with one number. A default other than None is appended to the help."""
    if default is not None:
        help = f"{help} (default: %(default)s)"
    parser.add_argument(flag, action=Number, kind=kind, limits=limits, default=default, metavar=metavar, help=help)


def add_games(parser: ArgumentParser, *, default: int | None, help: str) -> None:
    """Adds `--games`, the number of games of a match."""
    add_number(parser, "--games", int, Limits(at_least=2, at_most=MAX_GAMES), default=default, help=help)


def add_seed(parser: ArgumentParser, *, help: str) -> None:
    """Adds `--seed`."""
    add_number(parser, "--seed", int, Limits(at_least=0, at_most=MAX_SEED), default=0, help=help)


def add_simulations(parser: ArgumentParser, *, help: str) -> None:
    """Adds `--simulations`, None if not given."""
    add_number(parser, "--simulations", int, Limits(at_least=1, at_most=MAX_SIMULATIONS), help=help)


def check_even(flag: str, games: int | None) -> None:
    """Checks a number of games, None if not given. Raises UserError."""
    if games is not None and games % 2:
        raise UserError(f"{flag} {games}: it must be an even number, with one game per colour and opening")
