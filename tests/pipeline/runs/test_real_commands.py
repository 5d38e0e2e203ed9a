"""Kafka's own tool takes the commands that `quotascope recommend` prints."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.node import java
from tests.cluster.quotas import Quotas
from tests.cluster.tools import CLASSES
from tests.pipeline.recommend.rows import make_folder, produced

from quotascope.cli.main import main
from quotascope.clients import open_quota_admin
from quotascope.metrics.kafka.entities import QuotaEntity
from quotascope.quotas import Entity, QuotaSet

pytestmark = pytest.mark.real

HOSTILE: Final = 'it\'s; $(touch ran) `touch ran` "x"\n\u202e\\u0041 \N{SNOWMAN}'
NAMES: Final = {HOSTILE: HOSTILE, "-dash": "--entity-default", "<default>": "a,b=[c]"}
"""Users and their client-ids."""


def kafka_configs(folder: Path) -> str:
    """Return a PATH with the tool under the name of Kafka's own script."""
    tool = folder / "bin" / "kafka-configs.sh"
    tool.parent.mkdir()
    command = shlex.join(java(CLASSES[tool.name]))
    tool.write_text(f'#!/usr/bin/env bash\nexec {command} "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    return f"{tool.parent}{os.pathsep}{os.environ['PATH']}"


def test_script_sets_what_is_recommended(
    kafka: Cluster, quotas: Quotas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the script is accepted, whatever the names; nothing else changes any quota."""
    quotas.set(({"user": "alice"}, {"producer_byte_rate": 1024.0}))
    usage = make_folder(
        tmp_path / "usage",
        [produced(0, 1_000_000, user=user, client_id=client_id) for user, client_id in NAMES.items()],
    )
    script = tmp_path / "set.sh"
    options = ["--for", "user,client-id", "--bootstrap-servers", kafka.admin]
    monkeypatch.setattr(
        sys, "argv", ["quotascope", "recommend", usage, "--short-log", *options, "--commands", str(script)]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    with closing(open_quota_admin(kafka.connection())) as admin:
        quotas_before = QuotaSet.of(admin.describe_quotas())
        assert list(quotas_before) == [QuotaEntity("alice")]
        path = kafka_configs(tmp_path)
        variables = {"PATH": path, "LC_ALL": "C"}
        subprocess.run(["bash", script], check=True, env=variables, cwd=tmp_path)
        quotas_after = QuotaSet.of(admin.describe_quotas())
    expected: dict[Entity, dict[str, float]] = {
        QuotaEntity(*pair): {"producer_byte_rate": 120_000.0} for pair in NAMES.items()
    }
    assert quotas_after == QuotaSet({**quotas_before, **expected})
    assert not (tmp_path / "ran").exists()
