"""One colour for each cause, on the page and in the picture; told apart by those who see red and green alike."""

from __future__ import annotations

from typing import Final

from ..events import Cause

THROTTLED: Final = "#f0b400"
STAGE: Final = "#b8c4d0"
FAILED_STAGE: Final = "#8a97a5"

CAUSES: Final = {
    Cause.KAFKA_QUOTA: "#c1272d",
    Cause.KAFKA_TIMEOUT_THROTTLED: "#e8681a",
    Cause.KAFKA_TIMEOUT: "#f2a071",
    Cause.KAFKA_OTHER: "#9c5b8f",
    Cause.EXECUTOR_LOST: "#2f4b7c",
    Cause.FETCH_FAILED: "#3f8fc4",
    Cause.PYTHON_WORKER_DIED: "#5a5fb8",
    Cause.KILLED: "#6b7280",
    Cause.OTHER: "#4a5560",
    Cause.UNKNOWN: "#9aa3ad",
}
