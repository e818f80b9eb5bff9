"""Trains or resumes a run, like `alphagat train`: `python -m alphagat.main --config configs/quickstart.py`."""

import sys

from alphagat.cli import commands, train
from alphagat.runtime import supervisor

if __name__ == "__main__":
    supervisor.end_with_supervisor()
    commands.end(train.run(sys.argv[1:]))
