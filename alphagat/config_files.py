"""Config files: Python files with a function `get_config()`, and flags that change single fields."""

import ast
import difflib
import runpy
import textwrap
import traceback
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import config_flags

from alphagat import config_fields
from alphagat.bounds import shown
from alphagat.config import Config
from alphagat.errors import UserError

INSIDE, BESIDE = (Path(__file__).parents[level] / "configs" for level in (0, 1))
NUMBERS = {int: "an integer", float: "a number"}
BOOLEANS = {"true", "t", "1", "false", "f", "0"}  # those of absl
BRACKETS_AND_QUOTES = "([\"'"
FOLDER = INSIDE if INSIDE.is_dir() else BESIDE  # in a wheel, the configs are part of the package


def load_config(path: str, overrides: Sequence[str] = ()) -> Config:
    """Reads a config file and applies overrides such as `--config.search.num_simulations=64`.

    Raises:
      UserError: the file is missing or broken, or an override names an unknown field or has a value of the wrong type.
    """
    return override(_get_config(_find(path)), overrides, f"--config {path}")


def override(config: Config, overrides: Sequence[str], source: str = "config") -> Config:
    """Applies overrides such as `--config.search.num_simulations=64` to a config, in place, and returns it.

    Args:
      source: names the config in errors.

    Raises:
      UserError: an override names an unknown field or has a value of the wrong type.
    """
    arguments = ["", *_normalized(overrides)]
    flag_values = flags.FlagValues()
    try:
        holder = config_flags.DEFINE_config_dataclass("config", config, flag_values=flag_values, sys_argv=arguments)
        flag_values(arguments)
        return holder.value
    except flags.Error as error:
        raise UserError(f"{error}; see --help for the type of each field") from error
    except ValueError:  # Python refuses to convert integers of thousands of digits to text
        raise UserError(f"{source}: a number is too long; see --help for the type of each field") from None


def _find(path: str) -> Path:
    """Returns the config file; `path` may omit `.py`, and may be the name of a config of the package."""
    file = Path(path)
    for candidate in _candidates(path):
        try:
            if candidate.is_file():
                return candidate
        except (OSError, ValueError) as error:  # a name too long, or with a null byte
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"--config {shown(path)}: {reason}; use another path") from error
    if path == file.name and not file.is_dir():
        near = difflib.get_close_matches(path, names(), n=1)
        hint = f"the nearest is {near[0]}" if near else f"configs are {', '.join(names())}"
        raise UserError(f"config {path}: there is no such file or config; {hint}")
    folder = file if file.is_dir() else file.parent
    neighbours = sorted(each.name for each in folder.glob("*.py") if each.name != "__init__.py")
    have = f"{folder}/ has {', '.join(neighbours) or 'no Python file'}"
    what = "it is neither a run nor a Python file" if file.is_dir() else "there is no such file"
    raise UserError(f"--config {path}: {what}; {have}")


def _candidates(path: str) -> list[Path]:
    """Lists the files that `path` may mean: with and without `.py`; a bare name also in the folder of the package."""
    name = Path(path).name
    if not name:
        return []
    folders = (Path(), FOLDER) if path == name else (Path(),)
    return [folder / file for folder in folders for file in (path, f"{path}.py")]


def names() -> list[str]:
    """Names the configs of the package."""
    return sorted(file.stem for file in FOLDER.glob("*.py"))


def summary(name: str) -> str:
    """Returns the first sentence about a config of the package, without executing it."""
    about = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return " ".join(about.partition("\n\n")[0].split())


def _get_config(file: Path) -> Config:
    if file.suffix == ".json":
        raise UserError(f"--config {file}: it is no Python file; for the config of a run, name the folder of the run")
    try:
        get_config = runpy.run_path(str(file)).get("get_config")
        config = get_config() if callable(get_config) else None
    except (Exception, SystemExit) as error:  # SystemExit would end the command as if it had succeeded
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        where = f"{file}, line {lines[-1]}" if lines else str(file)
        raise UserError(f"--config {where}: {type(error).__name__}: {error}") from error
    if not callable(get_config):
        raise UserError(
            f"--config {file}: it has no function get_config(); add one that returns alphagat.config.Config"
        )
    if not isinstance(config, Config):
        raise UserError(f"--config {file}: get_config() returned {type(config).__name__}, not alphagat.config.Config")
    for field in config_fields.fields(config):  # a deep value would exhaust the recursion of libraries
        if isinstance(field.value, tuple) and any(isinstance(item, tuple | list | dict) for item in field.value):
            raise UserError(f"--config {file}: config.{field.path} contains a tuple, a list or a dict")
    return config


def _normalized(overrides: Sequence[str]) -> list[str]:
    """Returns each override as `--config.path=value`; of several for a field, the last. Raises UserError for an unknown
    field.
    """
    types = {field.path: field.type for field in config_fields.fields(Config())}
    normalized: dict[str, list[str]] = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        path = name.removeprefix("--config.")
        if path == name:
            raise UserError(f"{shown(name)}: it must be --config.FIELD=VALUE")
        if path not in types:
            raise UserError(_unknown_field(path, list(types)))
        if not equals:
            if types[path] is not bool:
                raise UserError(f"--config.{path} has no value; write --config.{path}=VALUE")
            value = "true"
        is_list = typing.get_origin(types[path]) is tuple
        if is_list and not value:
            value = "()"
        values = value.split(",") if is_list and not value.startswith(("(", "[")) else [value]
        if is_list and typing.get_args(types[path])[0] is str:
            values = [repr(each) if each and each[0] not in BRACKETS_AND_QUOTES else each for each in values]
        for each in values:
            _check_type(path, types[path], each)
        normalized[path] = [f"--config.{path}={each}" for each in values]  # one flag for each item of a list
    return [flag for flags_of_field in normalized.values() for flag in flags_of_field]


def _check_type(path: str, kind: Any, value: str) -> None:
    """Raises UserError if a value is not of the type of its field; a list in brackets is checked later."""
    if typing.get_origin(kind) is tuple:
        if value.startswith(("(", "[")):
            return
        kind = typing.get_args(kind)[0]
    if kind in NUMBERS:
        try:
            kind(value)
        except ValueError:
            raise UserError(f"--config.{path}={shown(value)}: it must be {NUMBERS[kind]}") from None
    if kind is bool and value.lower() not in BOOLEANS:
        raise UserError(f"--config.{path}={shown(value)}: it must be true or false")


def _unknown_field(path: str, known: list[str]) -> str:
    inside = [each for each in known if each.startswith(f"{path}.")]
    if inside:
        return f"--config.{path} is a section; set one of its fields, such as --config.{inside[0]}"
    name = _name_in(path)
    same_name = [each for each in known if _name_in(each) == name]
    initials = [each for each in known if "".join(word[0] for word in _name_in(each).split("_")) == name]
    near = same_name[:1] or initials[:1] or difflib.get_close_matches(path, known, n=1, cutoff=0.0)
    return f"--config.{path}: there is no such field; the nearest is --config.{near[0]}"


def _name_in(path: str) -> str:
    """Returns the name of the field at a path: `learning_rate` of `learner.learning_rate`."""
    return path.rpartition(".")[2]


def config_help() -> str:
    """Lists every config field with its default, help and choices, section by section."""
    lines = ["fields and their defaults, each set by --config.FIELD=VALUE (a config file may set other values):"]
    section = ""
    for field in config_fields.fields(Config()):
        if field.path.rpartition(".")[0] != section:
            section = field.path.rpartition(".")[0]
            lines.append("")
        default = config_fields.text_of(field.value)
        text = f"{field.help}; {field.limits}" if field.limits.choices else field.help
        label = f"  {f'{field.path}={default}':42}  "
        lines += textwrap.wrap(text, 120, initial_indent=label, subsequent_indent=" " * 46)
    return "\n".join(lines)
