"""The wheel: what it contains, and that its command works in an empty folder."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import alphagat
from alphagat import config_files

ROOT = Path(__file__).parents[1]
MOST_BYTES = 20e6


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return file


def test_files(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    files = [file for file in (ROOT / "alphagat").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert {str(file.relative_to(ROOT)) for file in files} <= set(names)
    assert [name for name in names if not re.match(r"alphagat(-.*\.dist-info)?/", name)] == []
    assert {f"alphagat/configs/{name}.py" for name in config_files.names()} <= set(names)
    assert "alphagat/py.typed" in names


def test_size(wheel):
    assert wheel.stat().st_size <= MOST_BYTES


def test_it_works_in_an_empty_folder(wheel, tmp_path):
    site, work = tmp_path / "site", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(site)
    work.mkdir()
    env = os.environ | {"PYTHONPATH": str(site)}

    def ask(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, *words], cwd=work, env=env, capture_output=True, text=True)

    where = ask("-c", "import alphagat.config_files as files; print(files.FOLDER)")
    assert Path(where.stdout.strip()) == site / "alphagat" / "configs"
    assert ask("-m", "alphagat", "configs", "quickstart").stdout == (ROOT / "configs" / "quickstart.py").read_text()
    refused = ask("-m", "alphagat", "train", "quickstart", "--config.seed=-1")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: config.seed=-1: ")
    assert list(work.iterdir()) == []


def test_the_citation_has_the_version_of_the_package():
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version == alphagat.__version__
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()


def test_the_image_gets_the_files_that_the_package_is_built_from():
    kept = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert {"alphagat", "configs", "pyproject.toml", "requirements.lock"} <= set(kept)
    assert [name for name in kept if not (ROOT / name).exists()] == []
    assert re.findall(r"image: (\S+)", (ROOT / "cluster" / "jobset.yaml").read_text()) == ["alphagat:latest"]
