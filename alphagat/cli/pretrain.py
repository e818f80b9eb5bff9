"""Trains on recorded games: `alphagat pretrain chess --games pgn/ --workdir runs/p`."""

from collections.abc import Sequence

import alphagat
from alphagat import config_validation
from alphagat.cli import commands, training_arguments
from alphagat.cli.training_arguments import TrainingArguments
from alphagat.errors import UserError
from alphagat.runtime import distributed, preemption, xla

DETAILS = "The weights can start a run of alphagat train (--init_from) or play matches."
EXAMPLES = """\
examples:
  alphagat pretrain connect_four --games games.sgf --workdir runs/p
  alphagat pretrain chess --games pgn/ --games more.pgn --workdir runs/p --holdout 0.02
  alphagat pretrain quickstart --games runs/hex --workdir runs/small --config.network.width=32
  alphagat train connect_four --workdir runs/c4 --init_from runs/p"""


def make_parser() -> commands.ArgumentParser:
    parser = training_arguments.make_parser("pretrain", DETAILS, EXAMPLES, folder="runs/{config}_pretrained")
    parser.usage = "%(prog)s CONFIG --games PATH [--workdir FOLDER] [--config.FIELD=VALUE ...]"
    parser.add_argument(
        "--games",
        metavar="PATH",
        action="append",
        help="an SGF or PGN file, a folder of such files, or a run or checkpoint, whose replay buffer is read; may be "
        "repeated (config.pretrain.games)",
    )
    parser.add_argument(
        "--holdout",
        metavar="SHARE",
        help="share held out for validation (default: 0.05; config.pretrain.holdout)",
    )
    return parser


def read_arguments(argv: Sequence[str]) -> TrainingArguments:
    known, overrides = training_arguments.parse(make_parser(), argv)
    if known.holdout is not None:
        training_arguments.refuse_both("--holdout", "pretrain.holdout", overrides)
        overrides.append(f"--config.pretrain.holdout={known.holdout}")
    if known.games:
        training_arguments.refuse_both("--games", "pretrain.games", overrides)
    arguments = training_arguments.checked(known, overrides)
    if known.games:
        arguments.config.pretrain.games = tuple(known.games)  # not as an override, which would split at commas
        config_validation.validate(arguments.config)
    if not arguments.config.pretrain.games:
        raise UserError("--games is missing; name a file, a folder or a run, such as --games games.sgf")
    return arguments


def pretrain(argv: Sequence[str]) -> None:
    arguments = read_arguments(argv)
    xla.use_flags(arguments.xla)
    distributed.connect(arguments.nodes, arguments.node_rank, arguments.coordinator)
    alphagat.train(arguments.config, arguments.workdir, profile=arguments.profile)


def run(argv: Sequence[str]) -> int:
    """Trains with the arguments `argv` (without the program's name) and returns the exit status."""
    with preemption.listening():
        return commands.run(pretrain, argv, interrupted=training_arguments.INTERRUPTED)
