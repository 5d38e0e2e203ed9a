"""`quotascope rules`."""

from pathlib import Path

import yaml
from tests.cli.conftest import Run

from quotascope.exporter.rules import jmx_exporter_rules


def test_rules_go_to_standard_output(run: Run) -> None:
    """As they are, ready to be redirected."""
    code, out, _ = run("rules", "jmx-exporter")
    assert (code, out) == (0, jmx_exporter_rules())
    assert yaml.safe_load(out)["rules"]


def test_rules_go_to_a_file(tmp_path: Path, run: Run) -> None:
    """Its name is shown; where it cannot be written, the reason and no traceback."""
    file = tmp_path / "rules.yml"
    written = run("rules", "jmx-exporter", "--output", file)
    assert written == (0, f"{file}\n", "")
    assert file.read_text("utf-8") == jmx_exporter_rules()
    code, _, err = run("rules", "jmx-exporter", "--output", tmp_path / "no" / "r.yml")
    assert code == 1
    assert "No such file or directory" in err
    assert "Traceback" not in err
