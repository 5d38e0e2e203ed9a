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

from quotascope.quotas import named

from ..errors import ConfigError
from ..untrusted import one_line
from .file import ConfigDocument, Place, read_document
from .model import Config
from .section import Section

_Section = TypeVar("_Section", bound=Section)
PREFIX: Final = "QUOTASCOPE_"
_SOURCES: Final = "QUOTASCOPE_SOURCES"
_LONGEST: Final = 60
_PLAINLY: Final = {
    "int_parsing": "expected a whole number",
    "float_parsing": "expected a number",
    "bool_parsing": "expected true or false",
    "path_not_file": "expected a file that is there",
}
"""What pydantic says of a value in words of its own."""
_QUERY: Final = re.compile(r"\?[^\s'\"]+")
_STRUCTURE: Final = {
    "model_type": "keys and values",
    "dict_type": "keys and values",
    "list_type": "a list",
    "tuple_type": "a list",
}


def load_config(path: Path | None, environ: Mapping[str, str], flags: Iterable[Override] = ()) -> Config:
    """
    The configuration by precedence: flags, environment, file, defaults.

    Raises ``ConfigError`` with all mistakes at once.
    """
    document = read_document(path, environ) if path else ConfigDocument()
    subject = named(path) if path else "configuration"
    return build_config(document, subject, environ, flags)


def build_config(
    document: ConfigDocument, subject: str, environ: Mapping[str, str], flags: Iterable[Override] = ()
) -> Config:
    """As ``load_config``, from a document. Raises ``ConfigError``, which calls it ``subject``."""
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
    The section that a document and overrides make.

    Raises ``ConfigError`` with all mistakes, those known as ``unknown`` first, then in the order of the file; ``context`` is
    for the validators of the model.
    """
    found = [(0, text) for text in unknown]
    found.extend((line, f"line {line}: {text}") for line, text in document.problems)
    data = _replaced(document.data, overrides)
    try:
        section = model.model_validate(data, context=dict(context or {}))
    except ValidationError as error:
        given: dict[Place, str] = {each.place: each.origin for each in overrides}
        for details in error.errors(include_url=False):
            if details["loc"] not in document.broken:
                line, where = _origin(details["loc"], document, given)
                text = _sentence(details, document, model)
                found.append((line, f"{where}: {text}" if where else text))
    if found:
        in_order = sorted(found, key=lambda problem: problem[0])
        raise ConfigError(subject, [text for _, text in in_order]) from None
    return section


def _replaced(data: dict[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    result = dict(data)
    for override in overrides:
        *parents, key = override.place
        section = result
        for parent in parents:
            below = section.get(parent)
            section[parent] = section = dict(below) if isinstance(below, dict) else {}
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


def variable(place: tuple[str, ...]) -> str:
    """
    The environment variable for a place: ``QUOTASCOPE_SERVER__PORT``.

    Two underscores between levels: Kubernetes sets ``QUOTASCOPE_SERVER_PORT`` of its own accord
    where a service is named ``quotascope-server``.
    """
    return PREFIX + "__".join(place).upper()


def environment_overrides(environ: Mapping[str, str]) -> tuple[list[Override], list[str]]:
    """The values that the environment gives, and what is wrong with its names."""
    names = {variable(place): place for place in value_places()}
    overrides = [
        Override(place=place, value=environ[name], origin=name) for name, place in names.items() if name in environ
    ]
    if _SOURCES in environ:
        overrides.append(sources_override(environ[_SOURCES].split(), _SOURCES))
    unknown = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and "__" in name and name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            unknown.append(f"unknown environment variable {name}{hint}")
    return overrides, unknown


def sources_override(texts: Iterable[str], origin: str) -> Override:
    """Sources in their short form, see ``source_from_text``."""
    sources = [source_from_text(text) for text in texts]
    return Override(place=("sources",), value=sources, origin=origin)


def source_from_text(text: str) -> dict[str, object]:
    """
    A source in its short form, ``[DIALECT[:NODE_ID]=]URL``.

    ``auto:1=http://broker-1:9404/metrics``. What is missing or wrong is left to
    the checks of the configuration.
    """
    head, equals, url = text.partition("=")
    if not equals or "://" in head:  # the first = is in the URL's query
        return {"url": text}
    dialect, colon, node_id = head.partition(":")
    source: dict[str, object] = {"dialect": dialect, "url": url}
    return {**source, "node_id": node_id} if colon else source


def discovery_overrides(text: str, origin: str) -> list[Override]:
    """Discovery by the cluster in its short form, ``[DIALECT=]URL`` with placeholders."""
    found = source_from_text(text)
    url = Override(place=("discovery", "kafka", "url"), value=found["url"], origin=origin)
    if found["url"] == text:
        return [url]
    dialect = ("discovery", "source", "dialect")
    return [url, Override(place=dialect, value=found["dialect"], origin=origin)]


def _origin(place: Place, document: ConfigDocument, overrides: Mapping[Place, str]) -> tuple[int, str]:
    """Line (0 outside the file) and name of what gave the value at a place, or at the nearest place above it; ``overrides`` are flags and variables."""
    for end in range(len(place), -1, -1):
        if place[:end] in overrides:
            return 0, overrides[place[:end]]
        if place[:end] in document.lines:
            line = document.lines[place[:end]]
            return line, f"line {line}"
    return 0, ""


def _sentence(details: ErrorDetails, document: ConfigDocument, root: type[Section]) -> str:
    """A mistake that pydantic found in a section of type ``root``, as a sentence that begins with its place."""
    place, kind = details["loc"], details["type"]
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
    text = _PLAINLY.get(kind, text)
    known = re.findall("'([^']*)'", text) if kind in {"literal_error", "enum"} else []
    close = difflib.get_close_matches(str(details["input"]), known, n=1)
    if not is_secret(place, root):
        given = repr(document.raw.get(place, details["input"]))
        shown = _QUERY.sub("?…", given)  # of a URL: tokens are there
        cut = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"
        text = f"{text}, got {cut}"
    if close:
        text += f"; did you mean {close[0]!r}?"
    return f"{dotted(place)}: {text}"


def _unknown_key(place: Place, root: type[Section]) -> str:
    key, section = str(place[-1]), section_at(place[:-1], root)
    known = list(section.model_fields) if section else []
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    where = f" under {dotted(place[:-1])}" if place[:-1] else ""
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    return f"unknown key {key!r}{where}; {hint}"


def dotted(place: Place) -> str:
    """A place as people write it: ``sources[0].url``."""
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step}"
        for step in place
        if step != "[key]"  # pydantic's mark for a key that is wrong itself
    )
    return one_line("".join(steps).removeprefix("."))


def section_in(annotation: object) -> type[Section] | None:
    """The section that a field of this type holds, alone, optional or in a sequence."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    found = (section_in(part) for part in typing.get_args(annotation))
    return next((section for section in found if section), None)


def section_at(place: Place, root: type[Section] = Config) -> type[Section] | None:
    """The section at a place below ``root``, None for values and for places that do not exist."""
    section: type[Section] | None = root
    for step in place:
        if isinstance(step, int):
            continue
        field = section.model_fields.get(step) if section else None
        section = section_in(field.annotation) if field else None
    return section


def is_secret(place: Place, root: type[Section] = Config) -> bool:
    """Whether the value at a place must not be shown: the field that it belongs to, alone or as an item of it, is secret or unknown."""
    for end in range(len(place), 0, -1):
        section, key = section_at(place[: end - 1], root), place[end - 1]
        if section and isinstance(key, str) and key in section.model_fields:
            return _mentions(section.model_fields[key].annotation, SecretStr)
    return True


def value_places(section: type[Section] = Config, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of all values outside of lists of sections that one text can give, in the order of declaration."""
    for key, each in section.model_fields.items():
        below = section_in(each.annotation)
        kind = typing.get_origin(each.annotation)
        if kind is dict:
            continue
        if below is None:
            yield (*place, key)
        elif kind is not tuple:
            yield from value_places(below, (*place, key))


def _mentions(annotation: object, wanted: type) -> bool:
    parts = typing.get_args(annotation)
    return annotation is wanted or any(_mentions(part, wanted) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A configuration together with what the files hold that it names: passwords, tokens, certificates."""

    config: Config
    contents: Mapping[Path, str] = field(default_factory=dict)
    """A digest of each file that the configuration names; empty for one that cannot be read."""

    def same(self, before: Loaded, ours: object, theirs: object) -> bool:
        """Whether a part of this configuration equals one of an earlier one, with the same content of the files that it names."""
        if ours != theirs:
            return False
        return all(self.contents.get(path) == before.contents.get(path) for path in files_in(ours))


def loaded(config: Config) -> Loaded:
    """The configuration with the content of its files now."""
    contents: dict[Path, str] = {}
    for path in files_in(config):
        try:
            contents[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            contents[path] = ""
    return Loaded(config=config, contents=contents)


def files_in(part: object) -> Iterator[Path]:
    """The files that a part of the configuration names."""
    return (path for _, path in named_files(part))


def named_files(part: object, name: str = "") -> Iterator[tuple[str, Path]]:
    """The same, each with the field that names it, such as ``ca_file``."""
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
