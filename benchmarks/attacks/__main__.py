"""Repeats attacks on runs, engines, files and the web server, and prints the answer to each: a status and one line.

    python benchmarks/attacks                 # all
    python benchmarks/attacks --only lock     # those whose name contains the word

No answer may contain a traceback, and no attack may lose data. Each attack works on a fresh copy of a short run.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from commands import RUN, train
from inputs import INPUTS
from run_folders import RUNS
from server import SERVER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the names of the attacks")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(folder) / "compiled")
        base = Path(folder) / "run"
        answer = train(base, RUN)
        if answer.status != 0:
            sys.exit(f"the run under attack has failed: {answer.said}")
        for number, (name, attack) in enumerate((RUNS | INPUTS | SERVER).items()):
            if options.only not in name:
                continue
            copy = Path(folder) / str(number) / "run"
            shutil.copytree(base, copy)
            answer = attack(copy)
            failures += answer.status is None or "Traceback" in answer.said
            print(f"{name}\n    {answer.status}: {answer.line.replace(str(copy), 'RUN')[:300]}", flush=True)
    sys.exit(f"{failures} attacks ended in a traceback or not at all" if failures else 0)


if __name__ == "__main__":
    main()
