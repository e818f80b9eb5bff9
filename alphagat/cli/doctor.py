"""Checks this machine for training: `alphagat doctor`."""

from collections.abc import Sequence

from alphagat.bounds import Limits
from alphagat.cli import commands, training_arguments
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.wording import counted

EXAMPLES = """\
examples:
  alphagat doctor
  alphagat doctor connect_four --config.learner.batch_size=4096"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("doctor", "With a config, also the memory that the run needs.", EXAMPLES)
    parser.usage = "%(prog)s [--megabytes M] [CONFIG [--config.FIELD=VALUE ...]]"
    training_arguments.add_config(parser)
    sizes = Limits(above=0, at_most=4096)
    commands.add_number(parser, "--megabytes", float, sizes, default=16.0, metavar="M", help="size of the all-reduce")
    return parser


def examine(argv: Sequence[str]) -> None:
    options, overrides = training_arguments.parse(make_parser(), argv)
    path = training_arguments.named_config(options)
    if overrides and not path:
        raise UserError(f"{overrides[0]} needs a config, such as quickstart")
    config = training_arguments.load_config(path, overrides) if path else None

    from rich.console import Console

    from alphagat.runtime import sharding
    from alphagat.training import diagnosis
    from alphagat.training.setup import num_cpu_devices

    console = Console(highlight=False, markup=False, emoji=False)
    sharding.configure_cpu_devices(num_cpu_devices((config or Config()).mesh))
    rows = [*diagnosis.versions(), *diagnosis.devices()]
    for name, text in rows:
        console.print(f"{name:18} {text}", soft_wrap=True)
    for line in diagnosis.links():
        console.print(line, soft_wrap=True)
    mesh = sharding.make_mesh()
    seconds, speed = diagnosis.measure_all_reduce(mesh, options.megabytes)
    console.print(
        f"mean of {options.megabytes:g} MB over {counted(mesh.size, 'device')}: {1e3 * seconds:.2f} ms, "
        f"{speed / 1e9:.2f} GB/s per device"
    )
    for line in diagnosis.examine(config) if config else ():
        console.print(line, soft_wrap=True)
    warnings = list(diagnosis.warnings())
    for line in warnings or ["no problems found"]:
        console.print(f"{'warning: ' if warnings else ''}{line}", soft_wrap=True)


def run(argv: Sequence[str]) -> int:
    """Checks with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(examine, argv)
