"""The site builds without warnings, is complete and self-contained, and its commands are valid."""

import ast
import html
import html.parser
import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from alphagat import config_fields, config_files, config_validation
from alphagat.cli import COMMANDS, training_arguments
from alphagat.config import Config

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "alphagat"
MODULES = sorted(f for f in PACKAGE.rglob("*.py") if f.parent.name != "cli" or f.stem not in COMMANDS)
TEXTS = sorted(
    [*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", *ROOT.glob("docs/**/*.md"), *PACKAGE.glob("weights/*.md")]
)
TAKING_FIELDS = ("train", "pretrain", "launch", "doctor")
PLACEHOLDERS = (None, "FILE", "sets.py")
LOADING = {"src", "srcset", "poster", "data"}  # attributes; for <link>, also `href`
BROKEN = {
    "[a page](nowhere.md)": "'nowhere.md', but the target is not found",
    "[a heading](index.md#nowhere)": "no such anchor",
    "[a name][broken.nowhere]": "Could not find cross-reference target 'broken.nowhere'",
    "::: broken": "Parameter 'size' does not appear in the function signature",
}
BROKEN_MODULE = (
    '"""A module."""\n\n\ndef make(width: int) -> int:\n    """Makes.\n\n    Args:\n      size: of it.\n    """\n'
)


def name_of(file: Path) -> str:
    """Returns the dotted name of a module."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def build(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", *arguments],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    ended = build("--site-dir", str(folder))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> str:
    """Returns the warnings of a build with a page that contains every mistake."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text("# A page\n\n" + "\n\n".join(BROKEN))
    (folder / "broken.py").write_text(BROKEN_MODULE)
    (folder / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT}/mkdocs.yml\ndocs_dir: docs\nnav: []\nhooks: []\nwatch: []\nextra_css: []\n"
        f"plugins: {{mkdocstrings: {{handlers: {{python: {{paths: [{folder}]}}}}}}}}\n"
    )
    ended = build("--config-file", str(folder / "mkdocs.yml"), "--site-dir", str(folder / "site"))
    assert ended.returncode == 1
    return "\n".join(line for line in (ended.stdout + ended.stderr).splitlines() if line.startswith("WARNING"))


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_mistake_is_a_warning(broken, mistake):
    assert BROKEN[mistake] in broken


class Loads(html.parser.HTMLParser):
    """Collects the addresses that a browser loads to show a page."""

    def __init__(self, text: str):
        super().__init__()
        self.urls: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.urls += [value or "" for name, value in attrs if name in LOADING or (tag == "link" and name == "href")]


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    urls = {url for page in pages for url in Loads(page.read_text()).urls}
    for file in [*pages, *site.rglob("*.css")]:
        urls |= set(re.findall(r"""(?:url\(|@import )\s*["']?([^"')]+)""", file.read_text()))
    assert {"assets/site.css", "assets/logo.svg"} <= urls
    assert not [url for url in urls if re.match(r"([a-z]+:)?//", url)]


@pytest.mark.parametrize("file", MODULES, ids=name_of)
def test_public_docstrings_are_in_the_reference(site, file: Path):
    tree, name = ast.parse(file.read_text()), name_of(file)
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"]
    names = [f"{name}.{node.name}" for node in nodes if ast.get_docstring(node) and file.name != "__init__.py"]
    if not ast.get_docstring(tree):
        assert not names
        return
    page = (site / "reference" / f"{package}.html").read_text()
    assert [each for each in names if f'id="{each}"' not in page] == []
    if file.name != "__init__.py":
        assert f'id="{name}"' in page


def test_the_reference_of_python_starts_with_what_most_programs_need(site):
    page = (site / "reference" / "python.html").read_text()
    names = re.findall(r'<h2 id="(alphagat[^"]*)"', page)
    assert names[:3] == ["alphagat.training.loop.train", "alphagat.agents.agent.load", "alphagat.agents.agent.Agent"]
    assert page.count("Source code in") >= len(names)


def test_sections_of_docstrings_are_read(site):
    unread = re.compile(r"<p>[^<]*\b(?:Attributes|Args|Raises|Returns|Yields):\s")
    assert [page.name for page in (site / "reference").glob("*.html") if unread.search(page.read_text())] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_listed_with_their_flags(site, name):
    listed = f'<a href="{name}.html"><code>alphagat {name}</code></a>'
    assert listed in (site / "reference" / "commands" / "index.html").read_text()
    page = (site / "reference" / "commands" / f"{name}.html").read_text()
    flags = re.findall(r'add_(?:argument|number)\((?:\w+,)?\s*"(--\w+)"', (PACKAGE / "cli" / f"{name}.py").read_text())
    assert [flag for flag in flags if f"<code>{flag}" not in page] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_exits_with_0(name, capsys):
    assert importlib.import_module(f"alphagat.cli.{name}").run(["--help"]) == 0
    assert f"usage: alphagat {name} " in capsys.readouterr().out


def test_fields_of_the_config_are_listed_with_help_and_limits(site):
    page = (site / "reference" / "config.html").read_text()
    text = html.unescape(re.sub("<[^>]*>", "", page))
    for field in config_fields.fields(Config()):
        assert f'id="{field.path}"' in page
        assert field.help in text
        assert str(field.limits) in text


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_relative_links_resolve_to_files(file: Path):
    links = re.findall(r"\]\(([^)\s:#]+)(?:#[^)\s]*)?\)", file.read_text())
    assert [link for link in links if not (file.parent / link).exists()] == []


@pytest.mark.parametrize("file", TEXTS, ids=name_of)
def test_code_blocks_stand_on_lines_of_their_own(file: Path):
    text = file.read_text()
    fences = re.findall(r"^ *```(?:[a-z]+)?$", text, re.MULTILINE)
    assert len(fences) == text.count("```")
    assert len(fences) % 2 == 0


def test_every_benchmark_is_listed():
    folder = ROOT / "benchmarks"
    names = {path.name for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__main__.py")}
    listed = re.findall(r"^(?:\| )?`([a-z_.]+)`", (folder / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(names)


def test_mutants_name_tests_that_exist():
    named = runpy.run_path(str(ROOT / "benchmarks" / "mutants.py"))["TESTS"]
    assert [path for paths in named.values() for path in paths if not (ROOT / path).exists()] == []


def told() -> Iterator[tuple[str, str]]:
    """Yields every command line in the texts, with its file."""
    for file in [
        *TEXTS,
        *ROOT.glob("benchmarks/mutants.md"),
        *ROOT.glob("configs/*.py"),
        *ROOT.glob("benchmarks/**/*.py"),
    ]:
        text = file.read_text().replace("\\\n", " ")
        lines = re.findall(r"^ *(?:.*\| |taskset -c \d )?((?:python|make|alphagat) .*)$", text, re.MULTILINE)
        for line in {*lines, *re.findall(r"`((?:python|make|alphagat) [^`]+)`", text)}:
            yield str(file.relative_to(ROOT)), " ".join(line.split())


@pytest.mark.parametrize(("file", "line"), sorted(set(told())))
def test_commands_in_the_texts_are_valid(file, line):
    program, *words = shlex.split(line.partition(" > ")[0], comments=True)
    if program == "make":
        assert re.search(f"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif words[0].startswith("benchmarks/"):
        script = ROOT / words[0]
        source = (script / "__main__.py" if script.is_dir() else script).read_text()
        flags = [word for word in words if word.startswith("--") and not word.startswith("--config.")]
        assert [flag for flag in flags if f'"{flag}"' not in source] == []
    elif program == "alphagat":
        _check(words[0], words[1:])
    elif words[1:] and words[1].startswith("alphagat."):
        assert words[1] == "alphagat.main"
        _check("train", words[2:])


def _check(name: str, words: list[str]) -> None:
    if name == "--help":
        return
    assert name in COMMANDS
    if not words or "--help" in words:
        return
    parser = importlib.import_module(f"alphagat.cli.{name}").make_parser()
    if name not in TAKING_FIELDS:
        parser.parse_args(words)
        return
    if name == "launch":
        words, parser = parser.parse_known_args(words)[1], training_arguments.make_parser("train")
    options, rest = training_arguments.parse(parser, words)
    config = training_arguments.named_config(options)
    if config is not None and config.startswith("runs/"):
        config_files.override(Config(), rest)
    elif config not in PLACEHOLDERS:
        config_validation.validate(config_files.load_config(config, rest))
