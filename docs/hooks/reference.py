"""Makes the reference from the code itself: flags of the commands, fields of the config, docstrings by package."""

import argparse
import ast
import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from alphagat import config_fields, config_files
from alphagat.cli import COMMANDS
from alphagat.config import Config

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "alphagat"
FOLDER = "reference/"
COMMAND_LIST, FIELDS, API = f"{FOLDER}commands/index.md", f"{FOLDER}config.md", f"{FOLDER}python.md"
FIRST = (  # what most programs need
    "alphagat.training.loop.train",
    "alphagat.agents.agent.load",
    "alphagat.agents.agent.Agent",
    "alphagat.games.make_game",
    "alphagat.games.base.Game",
    "alphagat.evaluation.players.Player",
    "alphagat.evaluation.arena.play_match",
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the pages of the reference to the navigation."""
    (reference,) = [entry["Reference"] for entry in config.nav or () if "Reference" in entry]
    reference += [
        {"Commands": [COMMAND_LIST, *(_command_page(name) for name in COMMANDS)]},
        {"Config": FIELDS},
        {"Python": [API, *(_package_page(name) for name in modules_by_package())]},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    parsers = {name: parser_of(name) for name in COMMANDS}
    pages = {_command_page(name): command_text(parser) for name, parser in parsers.items()}
    pages |= {COMMAND_LIST: commands_text(parsers), FIELDS: config_text(), API: api_text()}
    pages |= {
        _package_page(package): package_text(package, modules) for package, modules in modules_by_package().items()
    }
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def parser_of(name: str) -> argparse.ArgumentParser:
    """Returns the parser of a command."""
    return importlib.import_module(f"alphagat.cli.{name}").make_parser()


def modules_by_package() -> dict[str, list[str]]:
    """Lists the modules with docstrings by package, without commands. `alphagat` holds the top-level modules."""
    found: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if file.parent == PACKAGE / "cli" and file.stem in COMMANDS:
            continue
        if ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))):
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            found.setdefault(package, []).append(name)
    return found


def commands_text(parsers: dict[str, argparse.ArgumentParser]) -> str:
    """Returns the list of all commands."""
    lines = ["# Commands\n\n`--help` lists the flags of each.\n\n| command | what it does |\n|---|---|"]
    lines += [f"| [`{parser.prog}`]({name}.md) | {_cell(_summary(parser))} |" for name, parser in parsers.items()]
    return "\n".join(lines)


def command_text(parser: argparse.ArgumentParser) -> str:
    """Returns what a command does, its usage, a table per group of flags, and its examples."""
    name = parser.prog.removeprefix("alphagat ")
    with mock.patch.dict(os.environ, COLUMNS="100"):
        usage = re.sub(r"\n +", "\n    ", parser.format_usage().removeprefix("usage: "))
    lines = ["---", f"title: {name}", "---", f"# `{parser.prog}`", "", parser.description or "", ""]
    lines += ["```text", usage.rstrip(), "```", ""]
    for group in parser._action_groups:  # argparse has no public access to them
        lines += _flags(parser, group)
    fields = config_files.config_help()
    epilog = (parser.epilog or "").replace(fields, "").strip()
    lines += ["## Notes and examples", "", "```text", epilog, "```", ""] if epilog else []
    if fields in (parser.epilog or ""):
        lines.append("Every field of [the config](../config.md) is also a flag: `--config.search.num_simulations=64`.")
    return "\n".join(lines)


def _flags(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> Iterator[str]:
    actions = [each for each in group._group_actions if each.dest != "help"]
    if not actions:
        return
    title = {"positional arguments": "Arguments", "options": "Flags"}.get(group.title or "", group.title or "")
    title, _, note = title.rstrip(")").partition(" (")
    yield f"## {title.capitalize()}\n\n{note[:1].upper()}{note[1:]}{'.' * bool(note)}\n\n| flag | meaning |\n|---|---|"
    for action in actions:
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        name = f"{action.option_strings[0]} {value}".strip() if action.option_strings else value
        text = parser._get_formatter()._expand_help(action) if action.help else ""
        yield f"| `{name}` | {_cell(text + ' (required)' * (action.required and bool(action.option_strings)))} |"
    yield ""


def config_text() -> str:
    """Returns a table of every field with its default, limits and help, for each section of the config."""
    lines = ["# Config\n\nEach field is set by `--config.FIELD=VALUE`, or in a config file. Sizes are global."]
    section = None
    for field in config_fields.fields(Config()):
        name = field.path.rpartition(".")[0]
        if name != section:
            section = name
            about = type(getattr(Config(), name)).__doc__ if name else Config.__doc__
            lines.append(
                f"\n## {name or 'The run'}\n\n{about}\n\n| field | default | limits | meaning |\n|---|---|---|---|"
            )
        default = ",".join(map(str, field.value)) if isinstance(field.value, tuple) else str(field.value)
        cells = [f"`{field.path}`{{ #{field.path} }}", f"`{default}`" if default else "", str(field.limits), field.help]
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines)


def api_text() -> str:
    """Returns the page of the functions and classes that most programs need, with their source."""
    lines = ["---\ntitle: First steps\n---\n# Python\n"]
    lines.append(
        "`alphagat.train` and `alphagat.load`, and what they return. [The guide](../guides/python.md) has examples."
    )
    for name in FIRST:
        lines.append(f"\n::: {name}\n    options:\n      show_source: true\n      skip_local_inventory: true")
    return "\n".join(lines)


def package_text(package: str, modules: list[str]) -> str:
    """Returns the directives by which mkdocstrings shows a package and its modules."""
    lines = ["---", f"title: {package}", "---", f"# `{package}`", ""]
    for module in modules:
        options = ("show_root_heading", "show_root_toc_entry", "members") if module == package else ()
        lines += [f"::: {module}", *["    options:"][: len(options)], *(f"      {each}: false" for each in options), ""]
    return "\n".join(lines)


def _command_page(name: str) -> str:
    return f"{FOLDER}commands/{name}.md"


def _package_page(package: str) -> str:
    return f"{FOLDER}{package}.md"


def _summary(parser: argparse.ArgumentParser) -> str:
    return " ".join((parser.description or "").split())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
