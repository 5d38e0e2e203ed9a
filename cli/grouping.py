"""Options that belong together, as one parameter of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeGuard, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """
    The command with single options in the place of each parameter that is a group of them.

    A group is a dataclass whose fields are options as typer wants them, each with its default, or groups.
    """
    declared = signature(command, eval_str=True)
    groups = {
        name: parameter.annotation
        for name, parameter in declared.parameters.items()
        if _is_group(parameter.annotation)
    }

    @wraps(command)
    def run(**given: object) -> None:
        filled = {name: _filled(group, given) for name, group in groups.items()}
        command(**filled, **given)

    options = [
        option
        for name, parameter in declared.parameters.items()
        for option in (_options(groups[name]) if name in groups else [parameter])
    ]
    # what typer asks for the options of a command
    run.__signature__ = declared.replace(parameters=options)  # type: ignore[attr-defined]
    return run


def _options(group: type) -> Iterator[Parameter]:
    for name, hint, default in _fields(group):
        if _is_group(hint):
            yield from _options(hint)
        else:
            yield Parameter(
                name, Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )


def _filled(group: type, given: dict[str, object]) -> object:
    """The group with what was given for its options, which is taken out."""
    return group(
        **{
            name: _filled(hint, given) if _is_group(hint) else given.pop(name)
            for name, hint, _ in _fields(group)
        }
    )


def _fields(group: type) -> Iterator[tuple[str, Any, object]]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield field.name, hints[field.name], field.default


def _is_group(hint: object) -> TypeGuard[type]:
    return isinstance(hint, type) and is_dataclass(hint)
