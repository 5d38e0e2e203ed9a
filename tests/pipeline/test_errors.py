"""The tree of the pipeline's errors."""

import pickle

import pytest

from quotascope.pipeline import errors


def drawn(kind: type[Exception], indent: str = "    ") -> list[str]:
    """Return the names of the errors below one, as the drawing has them."""
    below = [child for child in vars(errors).values() if isinstance(child, type) and child.__base__ is kind]
    return [line for each in below for line in (f"{indent}{each.__name__}", *drawn(each, indent + "    "))]


@pytest.mark.parametrize(
    "error",
    [
        errors.BadOption("é\n"),
        errors.BadSnapshot("/a", "no JSON"),
        errors.UnreadableLog("/a", "it is gone"),
        errors.DamagedFile("/u", "day=1/x.parquet", "it has 4 bytes"),
        errors.OtherTopic("t", "2 partitions"),
        errors.IncompleteRequests("completed", 2),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_workers_can_be_sent(error: errors.PipelineError) -> None:
    """Kind, message and fields arrive, whatever an error is made of."""
    sent = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(sent), str(sent), vars(sent)) == (type(error), str(error), vars(error))


def test_a_trace_of_a_library_is_no_part_of_a_message() -> None:
    """A library's trace is no part of a message, whatever the environment asks of the library."""
    error = ValueError("Kernel error: Json error\n   0: <unknown>\n   1: start_thread\n             at ./a.c:1:8\n")
    assert errors.plain(error) == "Kernel error: Json error"


def test_the_drawing_shows_each_error_below_its_base() -> None:
    """The drawing shows every error, each below its base class."""
    lines = (errors.__doc__ or "").splitlines()
    drawn_lines = [line.translate(str.maketrans("├└─│", "    ")) for line in lines]
    depths = {}
    for line in drawn_lines:
        words = line.split()
        if words and hasattr(errors, words[0]):
            depths[words[0]] = (len(line) - len(line.lstrip())) // 4
    expected = {line.strip(): (len(line) - len(line.lstrip())) // 4 + 1 for line in drawn(errors.PipelineError)}
    assert depths == {"PipelineError": 1, **expected}
