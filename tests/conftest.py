"""
Settings of the random tests, and where processes leave their files.

The profile `desk` has a few examples, `thorough` many; both have others in each run.
"""

import gc
import os
import tempfile
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, core, is_hypothesis_test, settings
from tests import class_data
from tests.spark.versions import RUNNING, classes
from tests.spark_listener.task.old_python import VERSION, old_python

pytest_plugins = ["tests.second_try", "tests.cluster.fixtures", "tests.spark.fixtures"]

# Contract tests run once per class that inherits them; a busy machine is no reason to fail.
settings.register_profile(
    "desk",
    deadline=None,
    derandomize=False,  # which Hypothesis would be where CI is set
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("desk"), max_examples=2_000)
settings.load_profile(os.environ.get("QUOTASCOPE_HYPOTHESIS_PROFILE", "desk"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites the golden files instead of comparing with them: read the diff."""
    parser.addoption("--update-golden", action="store_true")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Seed random examples with the order's seed, so that `--randomly-seed=N` makes the same ones again."""
    option = session.config.option
    seed = getattr(option, "randomly_seed", None)
    if isinstance(seed, int) and getattr(option, "hypothesis_seed", None) is None:
        core.global_force_seed = seed  # type: ignore[assignment] # as Hypothesis's own plugin sets it


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector skips the thousands of tests: each full collection would take a quarter of a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Run slow tests, random ones and those with Kafka's classes without coverage, whose tracer slows them further.

    The floors of coverage are reached by the other tests.
    """
    for item in items:
        random = is_hypothesis_test(getattr(item, "obj", None))
        if random or item.get_closest_marker("slow") or item.get_closest_marker("java"):
            item.add_marker("no_cover")


@pytest.fixture(scope="session", autouse=True)
def _leftovers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep temporary files of our processes, killed ones above all, in pytest's folder, which removes them."""
    folder = str(tmp_path_factory.mktemp("left"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        patch.setenv("TMPDIR", folder)
        patch.setenv("SPARK_LOCAL_DIRS", folder)
        patch.setenv("SPARK_SUBMIT_OPTS", " ".join([*class_data.using(classes(RUNNING)), f"-Djava.io.tmpdir={folder}"]))
        yield


def pytest_report_header() -> str:
    """Return lines about the tests that this machine cannot run."""
    found = old_python() or "none here: vermin alone checks what tasks import"
    return f"Python {VERSION} for tasks of old Spark clusters: {found}"
