import subprocess
import sys
from pathlib import Path

SCRIPT = """\
import quotascope.spark_listener.enabling as enabling
import quotascope.spark_listener.hook
from pyspark import SparkContext
from pyspark.sql import SparkSession

seen = []
enabling._attached = lambda spark: seen.append(type(spark).__name__)
enabling.enable()


class Made(SparkContext):
    pass


SparkContext._do_init = lambda *_, **__: None
SparkContext._ensure_initialized = classmethod(lambda *_, **__: None)
made = Made()
print(seen, SparkContext.__init__.__name__, SparkSession.Builder.getOrCreate.__name__)
"""
RUNNER = "import sys; print(sys.argv[1:], __name__, sys.path[0] == {folder!r}); raise SystemExit(3)"


def _run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_hook_sees_every_context_once() -> None:
    """However often it is imported; what it wraps keeps its name."""
    ran = _run("-c", SCRIPT)
    assert ran.stdout.strip() == "['Made'] __init__ getOrCreate", ran.stderr


def test_runner_gives_a_script_what_python_would(tmp_path: Path) -> None:
    """Its arguments, its name, and its own folder to import from; it ends with the script's exit code."""
    script = tmp_path / "job.py"
    script.write_text(RUNNER.format(folder=str(tmp_path)))
    ran = _run("-m", "quotascope.spark_listener.run", str(script), "--flag", "a b")
    assert (ran.returncode, ran.stdout.strip()) == (3, "['--flag', 'a b'] __main__ True"), ran.stderr


def test_runner_without_a_script_says_how_it_is_used() -> None:
    """On standard error, with an exit code that is not 0."""
    ran = _run("-m", "quotascope.spark_listener.run")
    assert ran.returncode == 1
    assert ran.stderr.startswith("usage: spark-submit --conf")
