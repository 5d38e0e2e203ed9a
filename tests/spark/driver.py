"""A driver that calls the functions that lines of JSON ask for: `python -m tests.spark.driver`."""

import importlib
import json
import operator
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark import sessions


def _function(name: str) -> Callable[..., Any]:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    return operator.attrgetter(path)(found)  # type: ignore[no-any-return]


def _answer(work: Callable[[], Any]) -> str:
    try:
        return json.dumps({"result": work()})
    except Exception:  # noqa: BLE001 - it is reported to the test
        return json.dumps({"error": traceback.format_exc()})


def main() -> None:
    """Start a session as the first line says, then do as the other lines say."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what jobs print is no answer
    requests = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    folder, master, conf = json.loads(requests.readline())
    running = []

    def begin() -> None:
        running.append(sessions.start(Path(folder), master, conf))

    answers.write(_answer(begin) + "\n")
    answers.flush()
    for line in requests:
        name, arguments, keywords = json.loads(line)

        def job() -> Any:
            return _function(name)(running[0], *arguments, **keywords)  # noqa: B023

        answers.write(_answer(job) + "\n")
        answers.flush()
    sessions.end(running[0])


if __name__ == "__main__":
    main()
