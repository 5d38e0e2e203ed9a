"""
Each target of `make fuzz`.

What once found something, what is read in practice, random changes of it, and a short run of the fuzzer.
"""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.running import Outcome, Run
from tests.fuzz.target import CORPUS, NAMES, target

KEPT = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", KEPT, ids=[f"{path.parent.name}-{path.name}" for path in KEPT])
def test_what_was_found_stays_mended(path: Path) -> None:
    """Each input that once broke a reader ends in a result or in an error of the reader's room."""
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
    """The corpus has folders of targets only: inputs in another folder would never be used."""
    assert {path.parent.name for path in KEPT} <= set(NAMES)


seeds_of = cache(lambda name: [*target(name).seeds(), b""])


@st.composite
def altered(draw: st.DrawFn, name: str) -> bytes:
    """Draw an input of practice, with parts cut out, repeated, and put in."""
    data = draw(st.sampled_from(seeds_of(name)))
    words = st.sampled_from(target(name).words) | st.binary(max_size=4)
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        piece = draw(st.just(b"") | words | st.just(data[start:end] * 2))
        data = data[:start] + piece + data[end:]
    return data


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_every_input_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """A reader raises only the errors of its room, whatever the input is."""
    target(name).feed(data.draw(altered(name)))


EXECUTIONS = 2_000


def quiet(_outcome: Outcome) -> None:
    """Ignore the outcome."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_in_a_short_run(name: str, tmp_path: Path) -> None:
    """A short run with the same inputs each time finds no failing one."""
    run = Run(target=target(name), kept=tmp_path, findings=tmp_path / "found", executions=EXECUTIONS, seed=1)
    outcome = run.outcome(quiet)
    assert not outcome.found, "\n".join(outcome.lines)
    assert outcome.executions >= EXECUTIONS


@pytest.mark.slow
def test_a_mistake_is_found(tmp_path: Path) -> None:
    """A reader that raises a wrong error is found; its input is kept, and reported."""
    fuzzed = target("page_query")
    run = Run(
        target=fuzzed,
        kept=tmp_path,
        findings=tmp_path / "found",
        executions=20_000,
        seed=1,
        program="tests.fuzz.planted",
    )
    outcome = run.outcome(quiet)
    assert outcome.found
    assert "LookupError" in "\n".join(outcome.lines)
    (input_file,) = (tmp_path / "found").iterdir()
    fuzzed.feed(input_file.read_bytes())
