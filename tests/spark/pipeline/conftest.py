"""The engines of the pipeline, for tests whose question is the same for both."""

import pytest

from quotascope.pipeline.engine import Engine
from quotascope.pipeline.runs.engine import EngineChoice, engine_of


@pytest.fixture(
    params=[
        pytest.param(EngineChoice.LOCAL, id="local"),
        pytest.param(EngineChoice.SPARK, id="spark", marks=pytest.mark.real),
    ]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return an engine: this process, or the session of the tests."""
    if request.param is EngineChoice.SPARK:
        request.getfixturevalue("spark")
    return engine_of(request.param)
