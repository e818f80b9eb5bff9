"""Trains or resumes a run, like `alphagat train`: `python -m alphagat.main --config configs/quickstart.py`."""

import sys

from alphagat.cli import commands, train

if __name__ == "__main__":
    commands.end(train.run(sys.argv[1:]))
