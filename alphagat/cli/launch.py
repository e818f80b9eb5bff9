"""Trains in several processes on one machine: `alphagat launch --processes 2 --config … --workdir …`."""

from collections.abc import Sequence

from alphagat.bounds import MAX_PROCESSES, Limits
from alphagat.cli import commands, training_arguments
from alphagat.wording import counted

DETAILS = (
    "When a process dies or the run hangs, all restart from the last checkpoint. All other flags are those of "
    "alphagat train."
)
EXAMPLES = """\
examples:
  alphagat launch --processes 2 quickstart
  alphagat launch connect_four --workdir runs/c4      # a process per GPU"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("launch", DETAILS, EXAMPLES)
    parser.usage = "%(prog)s [--processes N] CONFIG [--workdir FOLDER] [--config.FIELD=VALUE ...]"
    _add_flags(parser)
    return parser


def _add_flags(parser: commands.ArgumentParser) -> None:
    processes, restarts = Limits(at_least=1, at_most=MAX_PROCESSES), Limits(at_least=0, at_most=1_000_000)
    minutes, seconds = Limits(above=0, at_most=525_600), Limits(above=0, at_most=86_400)
    commands.add_number(parser, "--processes", int, processes, metavar="N", help="default: one per GPU")
    help = "restarts without progress before giving up"
    commands.add_number(parser, "--restarts", int, restarts, default=5, metavar="N", help=help)
    help = "minutes without progress before a restart"
    commands.add_number(parser, "--hang_minutes", float, minutes, default=30.0, metavar="M", help=help)
    help = "seconds after SIGTERM in which the run saves, before it is killed"
    commands.add_number(parser, "--grace_seconds", float, seconds, default=300.0, metavar="S", help=help)


def launch(argv: Sequence[str]) -> int:
    from alphagat.errors import UserError
    from alphagat.runs.metrics import METRICS_FILE
    from alphagat.runtime import supervisor, terminal

    options, rest = make_parser().parse_known_args(list(argv))
    others = training_arguments.make_parser("launch")
    _add_flags(others)  # which have been read; for the error of a mistyped one
    arguments = training_arguments.read(others, rest)
    gpus = supervisor.count_gpus()
    processes = options.processes or gpus
    if not processes:
        raise UserError("--processes is missing, and this machine has no GPU; name a number, such as --processes 2")
    if gpus and processes > gpus:
        raise UserError(f"--processes {processes}: this machine has {counted(gpus, 'GPU')}; use at most {gpus}")
    if arguments.nodes is not None or arguments.node_rank is not None or arguments.coordinator is not None:
        raise UserError("--nodes, --node_rank and --coordinator are for alphagat train; this command sets them itself")
    patience = supervisor.Patience(
        restarts=options.restarts, hang_seconds=60 * options.hang_minutes, grace_seconds=options.grace_seconds
    )
    command = ["alphagat.main", *rest]
    return supervisor.supervise(command, processes, gpus, arguments.workdir / METRICS_FILE, patience, terminal.say)


def run(argv: Sequence[str]) -> int:
    """Trains with the arguments `argv` (without the program's name) and returns the exit status."""
    status = commands.run(launch, argv, interrupted="interrupted; run the same command to resume")
    return status if status >= 0 else 128 - status  # 128 + signal, the convention of shells
