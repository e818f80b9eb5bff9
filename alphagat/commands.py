"""Shared by all commands: flags, config files, one-line errors and exit statuses."""

import _thread
import argparse
import difflib
import errno
import os
import runpy
import sys
import textwrap
import threading
import traceback
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from absl import flags, logging
from ml_collections import config_flags

from alphagat import config_fields, config_validation
from alphagat.bounds import MAX_GAMES, MAX_PROCESSES, MAX_SEED, MAX_SIMULATIONS, Limits, Number, shown
from alphagat.config import Config
from alphagat.errors import (
    BROKEN,
    INTERRUPTED,
    REQUEUE,
    USER_ERROR,
    AuditError,
    DiskError,
    ServiceError,
    UserError,
    disk_failure,
)
from alphagat.runtime import distributed, xla
from alphagat.runtime.preemption import Preempted

# Errors that the user's choice of a path causes.
UNUSABLE = {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR}


class ArgumentParser(argparse.ArgumentParser):
    """Raises `UserError` instead of printing the usage, and accepts no abbreviated flags."""

    def __init__(self, **kwargs):
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def run(command: Callable[[Sequence[str]], None], argv: Sequence[str], *, interrupted: str) -> int:
    """Calls `command(argv)` and returns the exit status, one of those in `alphagat.errors`, or 0.

    Args:
      interrupted: the line to print after Ctrl-C.
    """
    logging.set_verbosity(logging.FATAL)  # Orbax's warnings fill the screen; errors are reported in one line
    _repeat_lost_interrupts()
    xla.use_cache()
    try:
        command(argv)
    except UserError as error:
        say(f"error: {' '.join(str(error).split())}")
        return USER_ERROR
    except AuditError as error:
        say(f"error: a self-play game breaks the rules, so the run stopped at its last checkpoint: {error}")
        return BROKEN
    except (DiskError, ServiceError) as error:
        say(f"error: {' '.join(str(error).split())}")
        return BROKEN
    except Preempted as stop:
        when, then = ("after saving", "resume") if stop.is_saved else ("before the first checkpoint", "start again")
        say(f"ended by SIGTERM {when}; run the same command to {then}")
        return REQUEUE
    except KeyboardInterrupt:
        say(interrupted)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of standard output has ended, as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return BROKEN
    except Exception as error:
        if isinstance(error, OSError) and error.errno in UNUSABLE:
            say(f"error: {shown(error.filename)}: {error.strerror}; use another path")
            return USER_ERROR
        if failure := disk_failure(error):
            say(f"error: {getattr(error, 'filename', None) or 'a file'}: {failure} and run the command again")
            return BROKEN
        if distributed.num_processes() == 1:
            raise
        traceback.print_exc()  # re-raising would deadlock: at exit Python waits for processes that wait for this one
        return BROKEN
    except SystemExit as end:  # argparse after --help
        return end.code if isinstance(end.code, int) else 0
    return 0


def end(status: int) -> NoReturn:
    """Exits. After an interrupt, or a failure of one of several processes, it skips Python's shutdown.

    The shutdown could crash in a JAX thread that still compiles, or wait for the other processes.
    """
    sys.stdout.flush()
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


def say(line: str) -> None:
    """Writes a line to standard error."""
    sys.stderr.write(line + "\n")


def add_games(parser: ArgumentParser, *, default: int | None, help: str) -> None:
    """Adds `--games`, the number of games of a match."""
    limits = Limits(at_least=2, at_most=MAX_GAMES)
    parser.add_argument("--games", action=Number, kind=int, limits=limits, default=default, help=help)


def add_seed(parser: ArgumentParser, *, help: str) -> None:
    """Adds `--seed`."""
    limits = Limits(at_least=0, at_most=MAX_SEED)
    help = f"{help} (default: %(default)s)"
    parser.add_argument("--seed", action=Number, kind=int, limits=limits, default=0, help=help)


def add_simulations(parser: ArgumentParser, *, help: str) -> None:
    """Adds `--simulations`, None if not given."""
    limits = Limits(at_least=1, at_most=MAX_SIMULATIONS)
    parser.add_argument("--simulations", action=Number, kind=int, limits=limits, help=help)


def check_even(flag: str, games: int | None) -> None:
    """Checks a number of games, None if not given. Raises UserError."""
    if games is not None and games % 2:
        raise UserError(f"{flag} {games}: it must be an even number, with one game per colour and opening")


def load_config(path: str, overrides: Sequence[str] = ()) -> Config:
    """Reads a config file and applies overrides such as `--config.search.num_simulations=64`.

    Raises:
      UserError: the file is missing or broken, or an override names an unknown field or has a value of the wrong type.
    """
    config = _get_config(_find(path))
    arguments = ["", *_normalized(overrides)]
    flag_values = flags.FlagValues()
    try:
        holder = config_flags.DEFINE_config_dataclass("config", config, flag_values=flag_values, sys_argv=arguments)
        flag_values(arguments)
        return holder.value
    except flags.Error as error:
        raise UserError(f"{error}; see --help for the type of each field") from error
    except ValueError:  # Python makes no text of integers with thousands of digits
        raise UserError(f"--config {path}: a number is too long; see --help for the type of each field") from None


def _find(path: str) -> Path:
    """Returns the config file; `path` may omit `.py`."""
    file = Path(path)
    for candidate in (file, file.with_name(file.name + ".py")) if file.name else ():
        try:
            if candidate.is_file():
                return candidate
        except (OSError, ValueError) as error:  # a name too long, or with a null byte
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"--config {shown(path)}: {reason}; use another path") from error
    folder = file if file.is_dir() else file.parent
    neighbours = sorted(each.name for each in folder.glob("*.py") if each.name != "__init__.py")
    have = f"{folder}/ has {', '.join(neighbours) or 'no Python file'}"
    raise UserError(f"--config {path}: there is no such file; {have}")


def _get_config(file: Path) -> Config:
    try:
        get_config = runpy.run_path(str(file)).get("get_config")
        config = get_config() if callable(get_config) else None
    except BaseException as error:  # also SystemExit, which would end the command as if it had succeeded
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        where = f"{file}, line {lines[-1]}" if lines else str(file)
        raise UserError(f"--config {where}: {type(error).__name__}: {error}") from error
    if not callable(get_config):
        raise UserError(
            f"--config {file}: it has no function get_config(); add one that returns alphagat.config.Config"
        )
    if not isinstance(config, Config):
        raise UserError(f"--config {file}: get_config() returned {type(config).__name__}, not alphagat.config.Config")
    for field in config_fields.fields(config):  # a deep value would exhaust the recursion of libraries
        if isinstance(field.value, tuple) and any(isinstance(item, tuple | list | dict) for item in field.value):
            raise UserError(f"--config {file}: config.{field.path} contains a tuple, a list or a dict")
    return config


def _normalized(overrides: Sequence[str]) -> list[str]:
    """Returns each override as `--config.path=value`. Raises UserError for an unknown field."""
    types = {field.path: field.type for field in config_fields.fields(Config())}
    normalized: list[str] = []
    queue = list(overrides)
    while queue:
        name, equals, value = queue.pop(0).partition("=")
        path = name.removeprefix("--config.")
        if path == name:
            raise UserError(f"{name} is not a flag; use --config, --workdir or --config.FIELD=VALUE, or see --help")
        if path not in types:
            raise UserError(_unknown_field(path, list(types)))
        if not equals:
            has_value = bool(queue) and not queue[0].startswith("--")
            if not has_value and types[path] is not bool:
                raise UserError(f"--config.{path} has no value; write --config.{path}=VALUE")
            value = queue.pop(0) if has_value else "true"
        is_bare_list = typing.get_origin(types[path]) is tuple and "," in value and not value.startswith(("(", "["))
        normalized += [f"--config.{path}={each}" for each in (value.split(",") if is_bare_list else [value])]
    return normalized


def _unknown_field(path: str, known: list[str]) -> str:
    inside = [each for each in known if each.startswith(f"{path}.")]
    if inside:
        return f"--config.{path} is a section; set one of its fields, such as --config.{inside[0]}"
    same_name = [each for each in known if each.rpartition(".")[2] == path.rpartition(".")[2]]
    near = same_name[:1] or difflib.get_close_matches(path, known, n=1, cutoff=0.0)
    return f"--config.{path}: there is no such field; the nearest is --config.{near[0]}"


def config_help() -> str:
    """Lists every config field with its default, help and choices, section by section."""
    lines = ["fields and their defaults, each set by --config.FIELD=VALUE (a config file may set other values):"]
    section = ""
    for field in config_fields.fields(Config()):
        if field.path.rpartition(".")[0] != section:
            section = field.path.rpartition(".")[0]
            lines.append("")
        default = ",".join(map(str, field.value)) if isinstance(field.value, tuple) else field.value
        text = f"{field.help}; {field.limits}" if field.limits.choices else field.help
        label = f"  {f'{field.path}={default}':42}  "
        lines += textwrap.wrap(text, 120, initial_indent=label, subsequent_indent=" " * 46)
    return "\n".join(lines)


class TrainingArguments(NamedTuple):
    """Holds the parsed command line of a run; the last three fields are None for a single process."""

    workdir: Path
    config: Config
    profile: str | None
    xla: str
    nodes: int | None
    node_rank: int | None
    coordinator: str | None


def training_parser(name: str, *, description: str, examples: str) -> ArgumentParser:
    """Returns the parser for `python -m alphagat.NAME --config FILE --workdir FOLDER [--config.FIELD=VALUE ...]`."""
    parser = ArgumentParser(
        prog=f"python -m alphagat.{name}", description=description, epilog=f"{examples}\n\n{config_help()}"
    )
    parser.usage = "%(prog)s --config FILE --workdir FOLDER [--init_from FOLDER] [--config.FIELD=VALUE ...]"
    parser.add_argument("--config", metavar="FILE", help="a Python file with get_config(); .py is optional")
    parser.add_argument("--workdir", metavar="FOLDER", help="folder of the run; resumes if it holds this run already")
    parser.add_argument("--init_from", metavar="FOLDER", help="start from the latest weights of another run")
    inside = parser.add_argument_group("profiling (SIGUSR1 writes a profile of the device memory)")
    inside.add_argument("--profile", metavar="START:STOP", help="trace these iterations into the run's profiles/")
    inside.add_argument("--xla", metavar="NAME", default="default", help=f"compiler flags: {', '.join(xla.FLAGS)}")
    processes, ranks = Limits(at_least=1, at_most=MAX_PROCESSES), Limits(at_least=0, below=MAX_PROCESSES)
    several = parser.add_argument_group("several processes (Slurm, Open MPI and Kubernetes are detected)")
    several.add_argument(
        "--nodes", metavar="N", action=Number, kind=int, limits=processes, help="number of processes in the run"
    )
    several.add_argument(
        "--node_rank", metavar="K", action=Number, kind=int, limits=ranks, help="rank of this process, from 0"
    )
    several.add_argument("--coordinator", metavar="HOST:PORT", help="address of the process with --node_rank 0")
    return parser


def training_arguments(argv: Sequence[str], *, description: str, examples: str) -> TrainingArguments:
    """Parses the arguments of `python -m alphagat.main` and validates the config."""
    parser = training_parser("main", description=description, examples=examples)
    return checked_arguments(*parser.parse_known_args(list(argv)))


def checked_arguments(known: argparse.Namespace, overrides: list[str]) -> TrainingArguments:
    """Checks arguments parsed by a `training_parser`, and loads and validates the config."""
    for flag, value, example in (
        ("--config", known.config, "configs/quickstart"),
        ("--workdir", known.workdir, "runs/1"),
    ):
        if not value:
            raise UserError(f"{flag} is missing; name one, such as {flag} {example}")
    if known.init_from:
        overrides = [*overrides, f"--config.init_from={known.init_from}"]
    config = load_config(known.config, overrides)
    config_validation.validate(config)
    several_processes = known.nodes, known.node_rank, known.coordinator
    return TrainingArguments(Path(known.workdir), config, known.profile, known.xla, *several_processes)
