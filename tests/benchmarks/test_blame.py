"""The benchmark of blame names who held the threads of a real broker."""

from pathlib import Path

import pytest
from benchmarks.blame import VICTIM, broker, call, culprits_of, loaded


@pytest.mark.real
def test_the_culprit_of_a_real_broker(tmp_path: Path) -> None:
    """A victim's waits are due to slow Produces, and to nothing else in the log of a real broker."""
    with broker(1, tmp_path / "kafka") as cluster:
        sent = loaded(cluster, ["large_produces"], 4).sent
        log = cluster.nodes[1].request_log
        result, waits = culprits_of(log, tmp_path / "usage", None)
    assert sent[VICTIM] == 200
    assert result.plan.threads[0] == 1
    named = [name for name in waits if name != "not in the log"]
    assert named[0] == "large_produces"
    page = tmp_path / "blame.html"
    call(["blame", str(tmp_path / "usage"), "--html", str(page)])
    assert "large_produces held" in page.read_text(encoding="utf-8")
