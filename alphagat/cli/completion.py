"""Prints a script that completes commands and flags: `alphagat completion bash`."""

import argparse
import importlib
import sys
from collections.abc import Sequence

import shtab

from alphagat import config_fields, config_files
from alphagat.cli import COMMANDS, commands, training_arguments
from alphagat.config import Config

SHELLS = "bash", "zsh", "fish"
EXAMPLES = """\
examples:
  alphagat completion bash > ~/.local/share/bash-completion/completions/alphagat
  alphagat completion zsh > ~/.zfunc/_alphagat                 # with fpath+=~/.zfunc before compinit in ~/.zshrc
  alphagat completion fish > ~/.config/fish/completions/alphagat.fish"""
# The destinations of the arguments that take paths, or names of runs.
PATHS = {"out", "card", "workdir", "init_from", "source", "sources", "a", "b"}


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("completion", epilog=EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    return parser


def complete(argv: Sequence[str]) -> None:
    """Prints the script for the shell that `argv` names."""
    shell = make_parser().parse_args(list(argv)).shell
    sys.stdout.write(shtab.complete(whole_parser(), shell) + "\n")


def whole_parser() -> argparse.ArgumentParser:
    """Returns a parser of all commands with their flags, and with a flag for each field of a config."""
    whole = argparse.ArgumentParser("alphagat")
    subparsers = whole.add_subparsers()
    for name, summary in COMMANDS.items():
        parser = importlib.import_module(f"alphagat.cli.{name}").make_parser()
        if name == "launch":  # it passes these flags on
            training = training_arguments.make_parser(name)
            parser = argparse.ArgumentParser(parents=[parser, training], add_help=False, conflict_handler="resolve")
        if "named_config" in {action.dest for action in parser._actions}:
            _add_fields(parser)
        for action in parser._actions:
            if action.dest == "named_config" or (name == "configs" and action.dest == "name"):
                action.choices = config_files.names()
            elif action.dest in PATHS or (name == "pretrain" and action.dest == "games"):
                action.complete = shtab.FILE  # pyright: ignore[reportAttributeAccessIssue]
        subparsers.add_parser(name, help=summary, parents=[parser], add_help=False)
    return whole


def _add_fields(parser: argparse.ArgumentParser) -> None:
    for field in config_fields.fields(Config()):
        parser.add_argument(f"--config.{field.path}", choices=field.limits.choices or None, help=field.help)


def run(argv: Sequence[str]) -> int:
    """Runs the command with `argv`, without the program's name, and returns the exit status."""
    return commands.run(complete, argv)
