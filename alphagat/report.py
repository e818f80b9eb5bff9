"""Writes a page about a run: `python -m alphagat.report --workdir runs/hex`."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from alphagat import commands
from alphagat.bounds import Limits, Number
from alphagat.errors import UserError

REPORT_FILE = "report.html"
EXAMPLES = """\
The page is a self-contained file. For a run in progress, --follow rewrites it every SECONDS until the run ends, and an
open browser tab reloads it.

examples:
  python -m alphagat.report --workdir runs/hex
  python -m alphagat.report --workdir runs/hex --out hex.html --follow 60"""


def report(argv: Sequence[str]) -> None:
    """Writes the page, and prints its path and size."""
    parser = commands.ArgumentParser(
        prog="python -m alphagat.report",
        description="Writes a page about a run: results, curves, sample games, attention, config and machines.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--workdir", required=True, metavar="FOLDER", help="the folder of the run")
    parser.add_argument("--out", metavar="FILE", help=f"must end in .html (default: {REPORT_FILE} in the run's folder)")
    parser.add_argument(
        "--follow",
        action=Number,
        kind=float,
        limits=Limits(at_least=1, at_most=86_400),
        metavar="SECONDS",
        help="rewrite the page until the run ends",
    )
    options = parser.parse_args(list(argv))
    file = Path(options.out or Path(options.workdir) / REPORT_FILE)
    if file.suffix != ".html":
        raise UserError(f"--out {file}: end the name with .html")
    if options.out and not file.parent.is_dir():
        raise UserError(f"--out {file}: there is no folder {file.parent}; make it first")
    _write(options, file)


def _write(options, file: Path) -> None:
    import jax  # only after the flags are checked

    jax.config.update("jax_platforms", "cpu")  # leaves the accelerator to the run
    from alphagat.reporting.writer import PageWriter

    writer = PageWriter(Path(options.workdir), file)
    ended = writer.write(options.follow)
    sys.stdout.write(f"{file}: {file.stat().st_size / 1e6:.1f} MB\n")
    while options.follow and not ended:
        time.sleep(options.follow)
        ended = writer.write(options.follow)


def run(argv: Sequence[str]) -> int:
    """Writes a report with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(report, argv, interrupted="interrupted; the last page remains")


if __name__ == "__main__":
    commands.end(run(sys.argv[1:]))
