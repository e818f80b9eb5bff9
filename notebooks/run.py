"""Runs notebooks from start to end and saves their output: `python notebooks/run.py notebooks/*.ipynb`."""

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 1200  # limit per cell
# Fixed metadata; the recorded one differs between machines, front ends and times.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(
    file: Path, folder: Path, more: Sequence[str] = (), variables: Mapping[str, str] = os.environ
) -> nbformat.NotebookNode:
    """Runs the notebook `file` in a separate kernel with working directory `folder`, on this source tree.

    Args:
      more: cells to run after those of the notebook.
      variables: the environment of the kernel.

    Raises:
      CellExecutionError: a cell has failed.
    """
    notebook = nbformat.read(file, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in more]
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute(env={**variables, "PYTHONPATH": str(ROOT)})


def clean(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Drops run metadata, keeps outputs, and makes their paths relative or begin with `~`."""
    text = nbformat.writes(notebook).replace(f"{folder}/", "").replace(f"{Path.home()}/", "~/")
    notebook = nbformat.reads(text, as_version=4)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    for file in parser.parse_args().files:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(clean(execute(file, Path(folder)), Path(folder)), file)


if __name__ == "__main__":
    main()
