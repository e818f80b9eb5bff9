"""The games of the guides: their code, installed as a reader would."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from alphagat import games

FOLDER = Path(__file__).parents[1] / "docs" / "guides"


def code_of(guide: str, text: str, language: str = "python") -> str:
    """Returns the only block of a guide that contains `text`."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (FOLDER / guide).read_text(), re.DOTALL)
    (found,) = [block for block in blocks if text in block]
    return found


def install(folder: Path, project: dict) -> None:
    """Writes the metadata that an installed project has."""
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


@contextlib.contextmanager
def installed(folder: Path, project: dict) -> Iterator[None]:
    """Installs the modules of a folder as a project within the block."""
    install(folder, project)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setattr(games, "_installed", games._installed.__wrapped__)  # without what is cached
        yield
