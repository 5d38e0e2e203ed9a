"""Targets of the fuzzer, and the checks of their results."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parent / "corpus"
"""Inputs that once found something, in a folder for each target; the gate feeds them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A reader of text from outside."""

    name: str
    read: Callable[[bytes], object]
    """Reads one input, and asserts whatever is true of all that can be read."""
    refuses: tuple[type[Exception], ...]
    """The errors of its room, with which it refuses an input."""
    seeds: Callable[[], Iterable[bytes]]
    """Inputs as they are in practice, of which a fuzzer makes others."""
    words: tuple[bytes, ...] = ()
    """Words that have a meaning to the reader, and are not found by chance."""

    @property
    def corpus(self) -> Path:
        return CORPUS / self.name

    def feed(self, data: bytes) -> None:
        """Read an input. Whatever is raised here is a finding."""
        try:
            self.read(data)
        except self.refuses as error:
            reported(str(error))


def reported(message: str) -> None:
    """Check that a message is readable: some lines, each printable and none without end."""
    lines = message.split("\n")
    assert all(map(str.isprintable, lines)), f"not printable: {message!r}"
    assert max(map(len, lines)) < 2_000, "a message without end"


NAMES: Final = tuple(sorted(path.stem for path in Path(__file__).parent.glob("targets/*.py")))
"""Each file in `targets` is one target."""


def target(name: str) -> Target:
    """Return the target of this name; modules of other readers are not imported."""
    imported = import_module(f"tests.fuzz.targets.{name}").TARGET
    assert isinstance(imported, Target)
    return imported
