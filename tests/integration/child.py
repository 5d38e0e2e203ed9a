"""A program that runs beside the tests, and what it wrote."""

import contextlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class Child:
    """
    A process whose output goes to a file.

    Where `setpriv` is at hand it ends with the tests even when these are killed.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        self.name = Path(command[0]).name
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*tether(), *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
            )

    @property
    def pid(self) -> int:
        """Id of its process: `setpriv` puts the command in its own place."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def lines(self) -> list[str]:
        return self.output().split("\n")[:-1]

    def must_run(self) -> None:
        """Raise RuntimeError, with the output, when it has ended."""
        if not self.running:
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{self.output()}")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self, seconds: float = 20) -> int:
        """Ask the process to end, wait, and return its exit code; a process that takes longer is killed."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        self._process.kill()
        return self._process.wait()


def tether() -> list[str]:
    """Return the command that makes a process end with ours, where it is available."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []
