"""Answers of a real broker (Kafka 4.3.1), recorded through kafka-python as the JSON of its protocol classes."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "answers"


def answer(name: str) -> dict[str, Any]:
    """Return a recorded answer; names that begin with `denied_` are answers to a user without rights."""
    recorded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return recorded
