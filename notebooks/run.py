"""Runs notebooks from start to end, and keeps what they show: `python notebooks/run.py notebooks/*.ipynb`."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient

SECONDS = 1200  # for a cell, at most
# What differs from one machine, front end or time to the next.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(file: Path, folder: Path, more: Sequence[str] = ()) -> nbformat.NotebookNode:
    """Runs a notebook, as it stands in `file`, in a kernel of its own whose folder is `folder`.

    Args:
      more: cells to run after its own.

    Raises:
      CellExecutionError: a cell has failed.
    """
    notebook = nbformat.read(file, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in more]
    resources = {"metadata": {"path": str(folder)}}
    return NotebookClient(notebook, timeout=SECONDS, record_timing=False, resources=resources).execute()


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Drops what a run leaves beside outputs, and joins the pieces in which text was printed."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    for file in parser.parse_args().files:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(clean(execute(file, Path(folder))), file)


if __name__ == "__main__":
    main()
