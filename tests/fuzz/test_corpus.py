"""Whatever once found something, and what is read in practice, is fed again: in seconds, without a fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fuzz.named import NAMES, target
from tests.fuzz.target import CORPUS

KEPT = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", KEPT, ids=[f"{path.parent.name}-{path.name}" for path in KEPT])
def test_what_was_found_stays_mended(path: Path) -> None:
    """Each input ends in a result or in an error of its room."""
    target(path.parent.name).feed(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_every_seed_reaches_the_reader(name: str) -> None:
    """A target that refuses all that is read in practice would look for nothing."""
    fuzzed = target(name)
    refused = 0
    seeds = list(fuzzed.seeds())
    for seed in seeds:
        try:
            fuzzed.read(seed)
        except fuzzed.refuses:
            refused += 1
    assert refused < len(seeds)


def test_the_folders_of_the_corpus_are_those_of_targets() -> None:
    """An input in another one would never be fed."""
    assert {path.parent.name for path in KEPT} <= set(NAMES)
