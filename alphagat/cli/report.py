"""Writes a page about a run, or a comparison of several: `alphagat report runs/hex`."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from alphagat.bounds import Limits
from alphagat.cli import commands
from alphagat.errors import UserError
from alphagat.runs.atomic_files import check_writable
from alphagat.runtime import terminal
from alphagat.wording import sized

REPORT_FILE = "report.html"
MARK, MARKED_BYTES = b'<meta name="generator" content="AlphaGAT">', 1000  # in the head of every report
EXAMPLES = """\
With several runs, the page compares them: one curve per run, and the fields in which they differ.

The page is a self-contained file. For a run in progress, --follow rewrites it every SECONDS until the run ends, and an
open browser tab reloads it.

examples:
  alphagat report runs/hex
  alphagat report runs/hex --out hex.html --follow 60
  alphagat report runs/seed_0 runs/seed_1 --out seeds.html"""


def report(argv: Sequence[str]) -> None:
    """Writes the page, and prints its path and size."""
    options = make_parser().parse_args(list(argv))
    folders = [Path(name) for name in commands.named_runs(options)]
    if not folders:
        raise commands.missing_run()
    resolved = [folder.resolve() for folder in folders]
    for number, folder in enumerate(folders):
        if resolved[number] in resolved[:number]:
            raise UserError(f"RUN {folder}: it is named twice; name it once")
    if len(folders) > 1 and not options.out:
        raise UserError("--out is missing; with several runs, name the page, such as comparison.html")
    file = Path(options.out or folders[0] / REPORT_FILE)
    if file.suffix != ".html":
        raise UserError(f"--out {file}: end the name with .html")
    if options.out and not file.parent.is_dir():
        raise UserError(f"--out {file}: there is no folder {file.parent}; make it first")
    if file.exists() and not _is_report(file):
        mistake = f"{file} exists and is not a report; name a new file"
        raise UserError(f"--out {mistake}" if options.out else f"{mistake} with --out")
    if file.parent.is_dir():
        check_writable(file)
    _write(folders, file, options.follow)


def _is_report(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return MARK in stream.read(MARKED_BYTES)


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("report", epilog=EXAMPLES)
    commands.add_runs(parser, help="folders of runs")
    parser.add_argument("--out", metavar="FILE", help=f"must end in .html (default: {REPORT_FILE} in the run's folder)")
    seconds = Limits(at_least=1, at_most=86_400)
    help = "rewrite the page until the run ends"
    commands.add_number(parser, "--follow", float, seconds, metavar="SECONDS", help=help)
    return parser


def _write(folders: Sequence[Path], file: Path, follow: float | None) -> None:
    import jax  # only after the flags are checked

    jax.config.update("jax_platforms", "cpu")  # leaves the accelerator to the run
    from alphagat.reporting.comparison import ComparisonWriter
    from alphagat.reporting.writer import PageWriter

    writer = ComparisonWriter(folders, file) if len(folders) > 1 else PageWriter(folders[0], file, terminal.say)
    ended = writer.write(follow)
    sys.stdout.write(f"{file}: {sized(file.stat().st_size)}\n")
    while follow and not ended:
        time.sleep(follow)
        ended = writer.write(follow)


def run(argv: Sequence[str]) -> int:
    """Writes a report with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(report, argv, interrupted="interrupted; a page already written remains")
