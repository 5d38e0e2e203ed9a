"""From file, environment and flags to one configuration, or to a list of all mistakes, each with its place."""

from __future__ import annotations

import difflib
import hashlib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails

from quotascope.clients.reading import content_of
from quotascope.metrics.connection_settings import PREFIX, variable
from quotascope.quotas import named

from ..errors import WITHOUT_FILE, ConfigError
from ..untrusted import one_line
from .file import ConfigDocument, Place, read_document
from .model import Config
from .section import MOST_BYTES, Section, Undisclosed

_Section = TypeVar("_Section", bound=Section)
_SOURCES: Final = "QUOTASCOPE_SOURCES"
_PROMETHEUS: Final = "prometheus"
_LONGEST: Final = 60
"""Most characters of a wrong value that a message shows."""
_EXPECTATIONS: Final = {
    "int_parsing": "expected a whole number",
    "float_parsing": "expected a number",
    "bool_parsing": "expected true or false",
    "path_not_file": "expected a file that is there",
}
"""Expectations of pydantic in words of our own."""
_QUERY: Final = re.compile(r"\?[^\s'\"]+")
_ELSEWHERE: Final = {
    "owners": "is the file of teams now: write `teams: FILE` (documentation: Teams)",
    "default_owner": "is the last team of the file of teams now: write `teams: FILE` (documentation: Teams)",
    "thresholds": "belongs to the alerts' configuration: put it there, and name that file as alerts_config",
}
"""Keys at the top that a reader may look for, and what to do instead."""
_STRUCTURE: Final = {
    "model_type": "keys and values",
    "dict_type": "keys and values",
    "list_type": "a list",
    "tuple_type": "a list",
}


def load_config(path: Path | None, environ: Mapping[str, str], flags: Iterable[Override] = ()) -> Config:
    """
    Return the configuration by precedence: flags, environment, file, defaults.

    Raises ``ConfigError`` with all mistakes at once.
    """
    document = read_document(path, environ) if path else ConfigDocument()
    subject = named(path) if path else WITHOUT_FILE
    return build_config(document, subject, environ, flags)


def build_config(
    document: ConfigDocument, subject: str, environ: Mapping[str, str], flags: Iterable[Override] = ()
) -> Config:
    """
    Return the configuration as ``load_config`` does, from a document.

    Raises ``ConfigError`` about ``subject``.
    """
    overrides, unknown = environment_overrides(environ)
    overrides.extend(flags)
    return filled(Config, document, subject, overrides, unknown)


def filled(
    model: type[_Section],
    document: ConfigDocument,
    subject: str,
    overrides: Iterable[Override] = (),
    unknown: Iterable[str] = (),
    context: Mapping[str, object] | None = None,
) -> _Section:
    """
    Return the section with the values of a document and of overrides.

    Raises ``ConfigError`` with all mistakes, first those outside the file, then in the order of the file.

    Args:
        model: The type of the section.
        document: The file that the values come from.
        subject: The name of the file in messages.
        overrides: Values that replace those of the file.
        unknown: Sentences about names of variables that are not known.
        context: Values for the validators of the model.

    """
    problems = [(0, text) for text in unknown]
    problems.extend((line, f"line {line}: {text}") for line, text in document.problems)
    data = _replaced(document.data, overrides)
    try:
        section = model.model_validate(data, context=dict(context or {}))
    except ValidationError as error:
        origins: dict[Place, str] = {override.place: override.origin for override in overrides}
        for details in error.errors(include_url=False):
            if details["loc"] not in document.broken:
                line, place = _origin(details["loc"], document, origins)
                text = _sentence(details, document, model)
                problems.append((line, f"{place}: {text}" if place else text))
    if problems:
        in_order = sorted(problems, key=lambda problem: problem[0])
        raise ConfigError(subject, [text for _, text in in_order]) from None
    return section


def _replaced(data: dict[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """Return the data with the values of overrides; ``data`` itself and the sections in it stay as they are."""
    result = dict(data)
    for override in overrides:
        *parents, key = override.place
        section = result
        for parent in parents:
            subsection = section.get(parent)
            copied = dict(subsection) if isinstance(subsection, dict) else {}
            section[parent] = copied
            section = copied
        section[key] = override.value
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One value given outside the file, which it replaces."""

    place: tuple[str, ...]
    """Keys from the top, such as ``("server", "port")``."""
    value: object
    origin: str
    """The flag or variable, such as ``--port``."""


def environment_overrides(environ: Mapping[str, str]) -> tuple[list[Override], list[str]]:
    """Return the values in the environment, and the problems of its names."""
    names = {variable(place): place for place in value_places()}
    overrides = [
        Override(place=place, value=environ[name], origin=name) for name, place in names.items() if name in environ
    ]
    if _SOURCES in environ:
        overrides.append(sources_override(environ[_SOURCES].split(), _SOURCES))
    unknown = [
        f"{variable((key,))} {advice}" for key, advice in sorted(_ELSEWHERE.items()) if variable((key,)) in environ
    ]
    for name in sorted(environ):
        if name.startswith(PREFIX) and "__" in name and name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            unknown.append(f"unknown environment variable {name}{hint}")
    return overrides, unknown


def sources_override(texts: Iterable[str], origin: str) -> Override:
    """Return sources in their short form, see ``source_from_text``."""
    sources = [source_from_text(text) for text in texts]
    return Override(place=("sources",), value=sources, origin=origin)


def source_from_text(text: str) -> dict[str, object]:
    """
    Return a source in its short form, ``[DIALECT[:NODE_ID]=]URL``.

    ``auto:1=http://broker-1:9404/metrics``; ``prometheus=URL`` is a Prometheus server. What is missing or wrong is left
    to the checks of the configuration.
    """
    head, equals, url = text.partition("=")
    if not equals or "://" in head:  # the first = is in the URL's query
        return {"url": text}
    dialect, colon, node_id = head.partition(":")
    source: dict[str, object] = {"url": url}
    if colon:
        source["node_id"] = node_id
    return {_PROMETHEUS: source} if dialect == _PROMETHEUS else {"dialect": dialect, **source}


def discovery_overrides(text: str, origin: str) -> list[Override]:
    """Return discovery by the cluster in its short form, ``[DIALECT=]URL`` with placeholders."""
    source = source_from_text(text)
    url = Override(place=("discovery", "kafka", "url"), value=source["url"], origin=origin)
    if source["url"] == text:
        return [url]
    dialect = ("discovery", "source", "dialect")
    return [url, Override(place=dialect, value=source["dialect"], origin=origin)]


def _origin(place: Place, document: ConfigDocument, overrides: Mapping[Place, str]) -> tuple[int, str]:
    """
    Return line (0 outside the file) and name of the origin of the value at a place, or at the nearest place above.

    ``overrides`` are flags and variables.
    """
    for end in range(len(place), -1, -1):
        if place[:end] in overrides:
            return 0, overrides[place[:end]]
        if place[:end] in document.lines:
            line = document.lines[place[:end]]
            return line, f"line {line}"
    return 0, ""


def _sentence(details: ErrorDetails, document: ConfigDocument, root: type[Section]) -> str:
    """Return a mistake that pydantic found in a section of type ``root``, as a sentence that begins with its place."""
    place, kind = details["loc"], details["type"]
    if place[-1:] == ("[key]",) and is_secret(place, root):
        text = str(details.get("ctx", {}).get("error", "is wrong"))
        return f"{dotted(place[:-2])} has a key that {text}"  # the text may be a whole header, with its secret
    if kind == "extra_forbidden":
        return _unknown_key(place, root)
    if kind == "missing":
        section = dotted(place[:-1]) or "the configuration"
        return f"{section} lacks the key {str(place[-1])!r}"
    if kind == "value_error":
        text = str(details.get("ctx", {}).get("error", details["msg"]))
        return f"{dotted(place)} {text}" if place else text
    if kind in _STRUCTURE:
        return f"{dotted(place)}: expected {_STRUCTURE[kind]}"
    expectation = details["msg"].partition(", unable to")[0]
    text = expectation.replace("Input should be", "expected", 1)
    text = _EXPECTATIONS.get(kind, text)
    allowed = re.findall("'([^']*)'", text) if kind in {"literal_error", "enum"} else []
    close = difflib.get_close_matches(str(details["input"]), allowed, n=1)
    if not is_secret(place, root):
        text_of_value = repr(document.raw.get(place, details["input"]))
        without_query = _QUERY.sub("?…", text_of_value)  # queries of URLs may hold tokens
        short_text = without_query if len(without_query) <= _LONGEST else without_query[:_LONGEST] + "…"
        text = f"{text}, got {short_text}"
    if close:
        text += f"; did you mean {close[0]!r}?"
    return f"{dotted(place)}: {text}"


def _unknown_key(place: Place, root: type[Section]) -> str:
    """Return the mistake of a key that its section does not have, with the key that may be meant."""
    key, section = str(place[-1]), section_at(place[:-1], root)
    keys = list(section.model_fields) if section else []
    if len(place) == 1 and key in _ELSEWHERE and "teams" in keys:
        return f"{key} {_ELSEWHERE[key]}"
    close = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    suffix = f" under {dotted(place[:-1])}" if place[:-1] else ""
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(keys)}"
    return f"unknown key {key!r}{suffix}; {hint}"


def dotted(place: Place) -> str:
    """Return a place as people write it: ``sources[0].url``."""
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step}"
        for step in place
        if step != "[key]"  # pydantic's mark for a key that is wrong itself
    )
    return one_line("".join(steps).removeprefix("."))


def section_in(annotation: object) -> type[Section] | None:
    """Return the section that a field of this type holds, alone, optional or in a sequence."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(sections_in(annotation), None)


def sections_in(annotation: object) -> Iterator[type[Section]]:
    """Yield all sections that a field of this type can hold: an entry of `sources` is one of two."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in typing.get_args(annotation):
        yield from sections_in(part)


def sections_at(place: Place, root: type[Section] = Config) -> list[type[Section]]:
    """Return the sections that can be at a place below ``root``, none for values and places that do not exist."""
    sections = [root]
    for step in place:
        if isinstance(step, str):
            fields = [section.model_fields[step] for section in sections if step in section.model_fields]
            sections = [below for field in fields for below in sections_in(field.annotation)]
    return sections


def section_at(place: Place, root: type[Section] = Config) -> type[Section] | None:
    """Return the section at a place below ``root``, None for values and for places that do not exist."""
    return next(iter(sections_at(place, root)), None)


def is_secret(place: Place, root: type[Section] = Config) -> bool:
    """Return whether the value at a place must not be shown, because its field is secret, or is not known."""
    # the last key that is a field decides: what is below it has no field of its own
    for end in range(len(place), 0, -1):
        key = place[end - 1]
        for section in sections_at(place[: end - 1], root):
            if isinstance(key, str) and key in section.model_fields:
                annotation = section.model_fields[key].annotation
                return _mentions(annotation, SecretStr) or _mentions(annotation, Undisclosed)
    return True


def value_places(section: type[Section] = Config, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """
    Yield the places of all values that a variable of the environment can set, in the order of declaration.

    Mappings and lists of sections have none.
    """
    for key, model_field in section.model_fields.items():
        subsection = section_in(model_field.annotation)
        container = typing.get_origin(model_field.annotation)
        if container is dict:
            continue
        if subsection is None:
            yield (*place, key)
        elif container is not tuple:
            yield from value_places(subsection, (*place, key))


def _mentions(annotation: object, kind: type) -> bool:
    """Return whether a type is this one, or one of its arguments mentions it: ``tuple[SecretStr, ...]``."""
    parts = typing.get_args(annotation)
    return annotation is kind or any(_mentions(part, kind) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A configuration together with what the files hold that it names: passwords, tokens, certificates."""

    config: Config
    contents: Mapping[Path, str] = field(default_factory=dict)
    """A digest of each file that the configuration names; empty for one that cannot be read."""

    def same(self, old_loaded: Loaded, part: object, old_part: object) -> bool:
        """
        Return whether a part of this configuration equals that of an earlier one.

        The files that it names must have the same content, too.
        """
        if part != old_part:
            return False
        return all(self.contents.get(path) == old_loaded.contents.get(path) for path in files_in(part))


def loaded(config: Config) -> Loaded:
    """Return the configuration with the content of its files now."""
    contents: dict[Path, str] = {}
    for path in files_in(config):
        try:
            contents[path] = hashlib.sha256(content_of(path, MOST_BYTES)).hexdigest()
        except OSError:
            contents[path] = ""
    return Loaded(config=config, contents=contents)


def files_in(part: object) -> Iterator[Path]:
    """Yield the files that a part of the configuration names."""
    return (path for _, path in named_files(part))


def named_files(part: object, name: str = "") -> Iterator[tuple[str, Path]]:
    """Yield the files that a part of the configuration names, each after the name of its field, such as ``ca_file``."""
    match part:
        case Path():
            yield name, part
        case Section():
            for field_name in type(part).model_fields:
                yield from named_files(getattr(part, field_name), field_name)
        case Mapping():
            for value in part.values():
                yield from named_files(value, name)
        case tuple():
            for value in part:
                yield from named_files(value, name)
