"""The arguments of the commands that train: a config, a folder, and values of single fields."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from alphagat import config_fields, config_files, config_validation
from alphagat.bounds import MAX_PROCESSES, Limits
from alphagat.cli import commands
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.runtime import xla

FIELD = "--config."
INTERRUPTED = "interrupted; run the same command to continue from the last checkpoint, if there is one"


class TrainingArguments(NamedTuple):
    """Holds the parsed command line of a run; `profile` is None without a trace, the last three fields for a single
    process.
    """

    workdir: Path
    config: Config
    profile: str | None
    xla: str
    nodes: int | None
    node_rank: int | None
    coordinator: str | None


def make_parser(
    name: str, details: str = "", examples: str = "", folder: str = "runs/{config}"
) -> commands.ArgumentParser:
    """Returns the parser of `alphagat NAME CONFIG [--workdir FOLDER] [--config.FIELD=VALUE ...]`.

    Args:
      folder: the default of `--workdir`.
    """
    parser = commands.ArgumentParser(name, details, f"{examples}\n\n{config_files.config_help()}")
    parser.usage = "%(prog)s CONFIG [--workdir FOLDER] [--init_from SOURCE] [--config.FIELD=VALUE ...]"
    add_config(parser)
    default = folder.format(config="CONFIG")
    parser.add_argument(
        "--workdir", metavar="FOLDER", help=f"folder of the run; resumes if it holds this run (default: {default})"
    )
    parser.set_defaults(folder=folder)
    parser.add_argument(
        "--init_from",
        metavar="SOURCE",
        help="network to start from: a run folder, a checkpoint, an exported file, or the name of a shipped network",
    )
    parser.add_argument(
        "--xla",
        metavar="NAME",
        default="default",
        help="compiler flags: " + ", ".join(f"{name} ({each.meaning})" for name, each in xla.FLAGS.items()),
    )
    inside = parser.add_argument_group("profiling (SIGUSR1 writes a profile of the device memory)")
    inside.add_argument("--profile", metavar="START:STOP", help="trace these iterations into the run's profiles/")
    processes, ranks = Limits(at_least=1, at_most=MAX_PROCESSES), Limits(at_least=0, below=MAX_PROCESSES)
    several = parser.add_argument_group("several processes (Slurm, Open MPI and Kubernetes are detected)")
    commands.add_number(several, "--nodes", int, processes, metavar="N", help="number of processes in the run")
    commands.add_number(several, "--node_rank", int, ranks, metavar="K", help="rank of this process, from 0")
    several.add_argument("--coordinator", metavar="HOST:PORT", help="address of the process with --node_rank 0")
    return parser


def add_config(parser: commands.ArgumentParser) -> None:
    """Adds the positional argument that names a config, and `--config`, which means the same."""
    parser.add_argument(
        "named_config",
        nargs="?",
        metavar="CONFIG",
        help="a name of alphagat configs, a Python file with get_config() (.py is optional), or the folder of a run",
    )
    parser.add_argument("--config", metavar="CONFIG", help="the same as CONFIG")


def named_config(options: argparse.Namespace) -> str | None:
    """Returns what the arguments of `add_config` name. Raises UserError if both are given."""
    if options.named_config and options.config:
        raise UserError(
            f"--config {options.config}: {options.named_config} already names a config; give only one of the two"
        )
    return options.named_config or options.config


def parse(parser: commands.ArgumentParser, argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Returns the parsed flags, and the words that set single fields, `--config.FIELD=VALUE`.

    Raises:
      UserError: another word is unknown.
    """
    fields: list[str] = []
    others: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith(FIELD):
            others.append(word)
            continue
        has_next = "=" not in word and words and not words[0].startswith("--")  # --config.FIELD VALUE
        fields.append(f"{word}={words.pop(0)}" if has_next else word)
    known, unknown = parser.parse_known_args(others)
    if unknown:
        raise _refusal_of(unknown[0], parser)
    return known, fields


def _refusal_of(word: str, parser: commands.ArgumentParser) -> UserError:
    flag = word.partition("=")[0]
    paths = [field.path for field in config_fields.fields(Config())]
    meant = [f"{FIELD}{path}=VALUE" for path in paths if flag in (f"--{path}", f"--{path.rpartition('.')[2]}")]
    if meant:
        return UserError(f"{flag} is not a flag of this command; set the field by {' or '.join(meant)}")
    return parser.refusal_of(word)


def read(parser: commands.ArgumentParser, argv: Sequence[str]) -> TrainingArguments:
    """Parses the arguments of a command that trains, and loads and validates the config."""
    return checked(*parse(parser, argv))


def checked(known: argparse.Namespace, overrides: list[str]) -> TrainingArguments:
    """Checks what `parse` returned, and loads and validates the config."""
    path = named_config(known)
    if not path:
        raise UserError("CONFIG is missing; name one, such as quickstart (alphagat configs lists them)")
    if known.init_from:
        refuse_both("--init_from", "init_from", overrides)
        overrides = [*overrides, f"{FIELD}init_from={known.init_from}"]
    config = load_config(path, overrides)
    xla.check_flags(known.xla)
    folder = path if _is_run(path) else known.folder.format(config=Path(path).name.removesuffix(".py"))
    workdir = Path(known.workdir or folder)
    return TrainingArguments(workdir, config, known.profile, known.xla, known.nodes, known.node_rank, known.coordinator)


def load_config(path: str, overrides: Sequence[str]) -> Config:
    """Loads and validates the config that CONFIG names: a file, or that of the run in a folder."""
    if _is_run(path):
        from alphagat.runs.folder import read_config

        config = config_files.override(read_config(path), overrides, path)
    else:
        config = config_files.load_config(path, overrides)
    config_validation.validate(config)
    return config


def _is_run(path: str) -> bool:
    if path in config_files.names() or not Path(path).is_dir():
        return False
    from alphagat.runs.folder import is_run  # which imports JAX

    return is_run(Path(path))


def refuse_both(flag: str, path: str, overrides: Sequence[str]) -> None:
    """Raises UserError if `overrides` set the field that `flag`, which was given, also sets."""
    field = f"{FIELD}{path}"
    if any(word.partition("=")[0] == field for word in overrides):
        raise UserError(f"{flag} and {field} set the same field; remove one of them")
