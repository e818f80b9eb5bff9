"""Fields of nested config dataclasses: declaration, walk, checks, and JSON form."""

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any, TypeVar

from alphagat.bounds import Limits, is_finite, shown
from alphagat.errors import UserError

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a config, with its value there.

    Attributes:
      path: dotted, without `config.`, e.g. `search.num_simulations`.
      type: the annotation.
      value: in the config that `fields` walked.
      help: one line for `--help` and the reference.
      limits: of the value.
    """

    path: str
    type: Any
    value: Any
    help: str
    limits: Limits


def setting(
    default: T,
    help: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> T:
    """Declares a dataclass field with its help and limits. The default must be immutable, such as a tuple."""
    limits = Limits(at_least=at_least, at_most=at_most, above=above, below=below, choices=choices)
    return dataclasses.field(default=default, metadata={"help": help, "limits": limits})


def fields(config: Any, prefix: str = "") -> Iterator[Field]:
    """Yields every field of a config, section by section.

    Raises:
      UserError: a section has the wrong type.
    """
    for field in dataclasses.fields(config):
        path, value = prefix + field.name, getattr(config, field.name)
        section = typing.cast(type, field.type)
        if dataclasses.is_dataclass(section):
            if not isinstance(value, section):
                raise refusal(path, value, f"it must be a {section.__name__}")
            yield from fields(value, f"{path}.")
        else:
            yield Field(path, field.type, value, field.metadata["help"], field.metadata["limits"])


def changes(config: Any) -> Iterator[tuple[Field, Any]]:
    """Yields each field whose value differs from its default, with the default."""
    for field, default in zip(fields(config), fields(type(config)())):
        if field.value != default.value:
            yield field, default.value


def text_of(value: Any) -> str:
    """Returns a value as it is written in a flag `--config.FIELD=VALUE`."""
    return ",".join(map(str, value)) or "()" if isinstance(value, tuple) else str(value)


def refusal(path: str, value: Any, fix: str) -> UserError:
    """Returns the error that names a field, its value and the fix."""
    return UserError(f"config.{path}={shown(repr(value) if isinstance(value, str) else value)}: {fix}")


def check(field: Field) -> None:
    """Checks the type and the limits of one field.

    Raises:
      UserError: the value has the wrong type, is not finite, or breaks a limit.
    """
    is_tuple = typing.get_origin(field.type) is tuple
    kind = typing.get_args(field.type)[0] if is_tuple else field.type
    if is_tuple and not (isinstance(field.value, tuple) and all(_has_type(each, kind) for each in field.value)):
        one = isinstance(field.value, str) and kind is str
        example = f"({field.value!r},)" if one else "(1.0, 2.0)" if kind is float else "('a', 'b')"
        raise refusal(field.path, field.value, f"it must be a tuple of {kind.__name__}, such as {example}")
    if not is_tuple and not _has_type(field.value, kind):
        fix = f"it must be of type {kind.__name__}, not {type(field.value).__name__}"
        raise refusal(field.path, field.value, fix)
    subject = "each item" if is_tuple else "it"
    values: tuple[Any, ...] = field.value if is_tuple else (field.value,)
    for each in values:
        if kind is float and not is_finite(each):
            raise refusal(field.path, field.value, f"{subject} must be a finite number")
        if kind is str and "\0" in each:
            raise refusal(field.path, field.value, f"{subject} must not contain a NUL character")
        if not field.limits.accept(each):
            raise refusal(field.path, field.value, f"{subject} must be {field.limits}")


def _has_type(value: Any, kind: type) -> bool:
    """Checks a single value: a float field accepts an int, and only a bool field accepts a bool."""
    return isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))


def to_dict(config: Any) -> dict[str, Any]:
    """Returns nested dicts of JSON types; tuples become lists."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        return list(value) if isinstance(value, tuple) else value

    return plain(dataclasses.asdict(config))


def assign(config: Any, values: Any, prefix: str = "") -> None:
    """Sets the fields that `values` names, in the form of `to_dict`, without checking their types or limits.

    Raises:
      UserError: a name is no field, or a section is not a dict.
    """
    if not isinstance(values, dict):
        raise refusal(prefix.rstrip("."), values, "it must be a section with fields")
    known = {field.name: field.type for field in dataclasses.fields(config)}
    for name, value in values.items():
        if name not in known:
            raise UserError(f"config.{prefix}{name} is not a field of this version; remove it")
        if dataclasses.is_dataclass(known[name]):
            assign(getattr(config, name), value, f"{prefix}{name}.")
        else:
            is_tuple = isinstance(known[name], types.GenericAlias) and isinstance(value, list)
            setattr(config, name, tuple(value) if is_tuple else value)
