"""Writes a trained network to one file: `python -m alphagat.export --workdir runs/hex --out hex.safetensors`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from alphagat import commands

EXAMPLES = """\
The file holds the parameters (safetensors, float32), and the config of the run. It is read by alphagat.load, by
--init_from, and as a player by alphagat.match.

examples:
  python -m alphagat.export --workdir runs/hex --out hex.safetensors
  python -m alphagat.match hex.safetensors mcts:1000 --board hex:9"""


def export(argv: Sequence[str]) -> None:
    """Writes the file that `argv` describes and says so."""
    parser = commands.ArgumentParser(
        prog="python -m alphagat.export",
        description="Writes the network of a run to one file, without what training needs.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--workdir", required=True, metavar="FOLDER", help="the folder of the run")
    parser.add_argument("--out", required=True, metavar="FILE", help="a new file, ending in .safetensors")
    parser.add_argument("--iteration", type=int, help="which checkpoint (default: the latest)")
    options = parser.parse_args(list(argv))
    from alphagat.training import weights  # JAX is imported only after the flags were found right
    from alphagat.training.agent import load

    agent, file = load(options.workdir, options.iteration), Path(options.out)
    weights.write(file, agent.params, agent.config, agent.iteration)
    sys.stdout.write(f"{file}: iteration {agent.iteration} of {options.workdir}, {file.stat().st_size / 1e6:.1f} MB\n")


def run(argv: Sequence[str]) -> int:
    """Exports as `argv` (without the program's name) says and returns the exit status."""
    return commands.run(export, argv, interrupted="interrupted")


if __name__ == "__main__":
    commands.end(run(sys.argv[1:]))
