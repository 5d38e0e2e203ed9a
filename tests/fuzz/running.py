"""One run of atheris on a target, in a process of its own, with its progress."""

import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Final

from .target import Target

ROOT: Final = Path(__file__).parents[2]
_EVERY_SECONDS: Final = 10.0
_LAST_LINES: Final = 60
_COUNT: Final = re.compile(r"#(\d+)\t|stat::number_of_executed_units: +(\d+)")
_ONE_INPUT_SECONDS: Final = 20
"""Timeout of one input, which takes a reader a hundredth of it at most; a wrong regular expression may take hours."""
_MEBIBYTES: Final = 1_024
"""Bound of the memory of the whole process, of which Python with its imports takes a fifth."""
_LONGEST_INPUT: Final = 16_384
_AS_A_GRANDCHILD: Final = ["sh", "-c", '"$@"; exit $?', "sh"]
"""
The shell forks once more. libFuzzer compares its limit with `ru_maxrss`, which Linux carries over an exec:
started by pytest itself, a small process would begin with pytest's peak.
"""


@dataclass(slots=True)
class Outcome:
    """Result of a run."""

    executions: int = 0
    found: bool = False
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    """The last ones that atheris wrote: of a finding, the traceback and where its input is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Seconds or number of inputs for fuzzing a target."""

    target: Target
    kept: Path
    """Folder of inputs that reached new code, from which the next run starts."""
    findings: Path
    """Folder of inputs that found something."""
    seconds: int = 0
    executions: int = -1
    seed: int = 0
    """0 for another one each time."""
    program: str = "tests.fuzz.hunt"

    def outcome(self, progress: Callable[[Outcome], None]) -> Outcome:
        """Run a process to its end, and return its outcome."""
        outcome = Outcome()
        with subprocess.Popen(
            self._command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=ROOT
        ) as process:
            assert process.stdout is not None
            reader = Thread(target=_follow, args=(process.stdout, outcome))
            reader.start()
            while _runs(process):
                progress(outcome)
            reader.join()
        outcome.found = process.returncode != 0
        return outcome

    def _command(self) -> list[str]:
        grown, seeds, words = (self.kept / name for name in ("grown", "seeds", "words"))
        for folder in (grown, seeds, self.findings):
            folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(self.target.seeds()):
            (seeds / f"{number:04}").write_bytes(seed)
        lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in self.target.words)
        words.write_text("".join(f'"{line}"\n' for line in lines))
        options = {
            "max_total_time": self.seconds,
            "runs": self.executions,
            "seed": self.seed,
            "dict": words,
            "artifact_prefix": f"{self.findings}/",
            "max_len": _LONGEST_INPUT,
            "timeout": _ONE_INPUT_SECONDS,
            "rss_limit_mb": _MEBIBYTES,
            "print_final_stats": 1,
        }
        arguments = [f"-{name}={value}" for name, value in options.items()]
        program = [sys.executable, "-m", self.program, self.target.name]
        return [*_AS_A_GRANDCHILD, *program, *arguments, str(grown), str(seeds)]


def _runs(process: subprocess.Popen[str]) -> bool:
    try:
        process.wait(_EVERY_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _follow(stream: IO[str], outcome: Outcome) -> None:
    for line in stream:
        counted = _COUNT.match(line)
        if counted:
            outcome.executions = int(counted[1] or counted[2])
        if not line.startswith("INFO:"):
            outcome.lines.append(line.rstrip("\n"))
