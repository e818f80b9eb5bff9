"""Runs every notebook in its quick version, and checks its results."""

import importlib.util
import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import nbformat
import pytest

from alphagat.runtime import preemption
from notebooks.run import METADATA, execute

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "notebooks").glob("*.ipynb"))
ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
MAX_BYTES = 300_000
MACHINE = re.compile(r"(?<![\w.~])/(home|root|Users|tmp|work|mnt|opt|var)/")
# By notebook: an expression over its final variables, and a predicate on the value.
ENDS = {
    "01_train": (
        "[line['iteration'] for line in lines], len(starts), result.num_games, "
        "record.moves[-1] in agent.game.action_names",
        lambda iterations, starts, games, named: (
            (iterations, starts, games, named) == ([*range(1, len(iterations) + 1)], 2, 8, True)
            and len(iterations) == 8
        ),
    ),
    "02_play_and_attention": (
        "played.is_over, len(values), weights.sum(axis=-1).tolist(), agent.game.topology.num_nodes",
        lambda is_over, plies, sums, nodes: (
            is_over and plies > 0 and all(total == pytest.approx(nodes, rel=1e-4) for block in sums for total in block)
        ),
    ),
    "03_size_transfer": (
        "SIZES, {size: each.interval for size, each in results.items()}, "
        "[curve[-1]['train/policy_loss'] for curve in curves.values()]",
        lambda sizes, intervals, losses: (
            [*intervals] == [str(size) for size in sizes]
            and all(0 <= low < high <= 1 for low, high in intervals.values())
            and losses[0] != losses[1]
        ),
    ),
    "04_eight_devices": (
        "NUM_DEVICES, same_positions, differences",
        lambda devices, same, differences: (
            devices == 8
            and same > 0.95
            and len(differences) == 3
            and max(differences.values()) < 1e-4
            and min(differences.values()) > 0
        ),
    ),
    "05_evaluate": (
        "[each.num_games for each in results.values()], tests[-1].llr, "
        "{name: each.elo for name, each in ratings.items()}, shares['best_move_search'], to_text(records[0])",
        lambda games, llr, elo, share, text: (
            games == [8, 8]
            and llr != 0
            and elo["mcts:2"] == 0 < elo["4 simulations"]
            and len(elo) == 3
            and share > 0.5
            and text.startswith("(;FF[4]")
        ),
    ),
}


def sources(file: Path, kind: str) -> list[str]:
    return [cell.source for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == kind]


SAYS = {"01_train": ("\nresumed after iteration ",), "03_size_transfer": ("\nstarts from the weights of hex\n",)}


def test_every_notebook_is_checked():
    assert [file.stem for file in FILES] == list(ENDS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_notebook_is_clean(file):
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata == METADATA
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        texts = [
            output.get("text", ""),
            *(text for kind, text in output.get("data", {}).items() if kind != "image/png"),
        ]
        assert not MACHINE.search("\n".join(texts))
    assert file.stat().st_size < MAX_BYTES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_outputs_come_from_one_full_run_without_errors(file):
    cells = [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell.outputs]
    said = [each.text for each in outputs if each.get("name") == "stderr"]
    assert set(said) <= {preemption.SAYS.decode()}  # a notebook interrupts its own run
    assert not [each for each in outputs if each.output_type == "error"]
    assert sum("image/svg+xml" in each.get("data", {}) for each in outputs) >= 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_notebook_has_badge_installation_and_switches(file):
    """Badges and links use the project's address in `pyproject.toml`; relative links would break in Colab."""
    repository = ADDRESS.removeprefix("https://github.com/")
    badge = f"(https://colab.research.google.com/github/{repository}/blob/main/notebooks/{file.name})"
    text, code = sources(file, "markdown"), sources(file, "code")
    assert badge in text[0].splitlines()[0]
    assert f'"git+{ADDRESS}"' in code[0]
    assert re.search(r'^DEVICE = "(auto|cpu)"', code[1], re.MULTILINE)
    assert re.search(r'^QUICK = os\.environ\.get\("ALPHAGAT_NOTEBOOK"\) == "quick"', code[1], re.MULTILINE)
    readme = (ROOT / "README.md").read_text()
    assert badge in readme
    assert f"(notebooks/{file.name})" in readme
    for link in re.findall(r"\]\(([^)]+)\)", "".join(text)):
        assert link.startswith("https://")
        own, _, path = link.partition(f"{ADDRESS}/blob/main/")
        assert own or (ROOT / path.partition("#")[0]).exists()


def test_the_installation_prefers_a_wheel_beside_the_notebook(tmp_path, monkeypatch):
    """Runs the first cell of a notebook with a stub of pip, in a folder with and without a wheel."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    cell = sources(FILES[0], "code")[0].replace("%pip install --quiet ", "installed.append(f").rstrip() + ")"
    installed: list[str] = []
    for wheel in ("", "alphagat-0.1.0-py3-none-any.whl"):
        if wheel:
            (tmp_path / wheel).touch()
        exec(cell, {"installed": installed})
    assert installed == [f"alphagat[engines] @ git+{ADDRESS}", "alphagat-0.1.0-py3-none-any.whl[engines]"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_notebook_runs(file, tmp_path):
    expression, is_true = ENDS[file.stem]
    variables = os.environ | {
        "ALPHAGAT_NOTEBOOK": "quick",
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JAX_PLATFORMS": "cpu",
    }
    before = files_here()
    notebook = execute(file, tmp_path, [f"import json\n\nprint(json.dumps([{expression}]))"], variables)
    printed = text_of(notebook)
    assert is_true(*json.loads(printed.splitlines()[-1]))
    assert all(each in printed for each in SAYS.get(file.stem, ()))
    assert files_here() == before


def files_here() -> set[Path]:
    return {file for folder in (ROOT, ROOT / "notebooks") for file in folder.glob("[!._]*")}


def text_of(notebook: nbformat.NotebookNode) -> str:
    """Returns the printed output of all cells."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return "".join(output.get("text", "") for cell in cells for output in cell.outputs)
