"""The page *Attach it in five minutes* leads to a mail: its commands and files, in real servers of its own."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.cluster.ports import free_port
from tests.commands import COMMAND, run
from tests.integration import web
from tests.integration.alerting.alertmanager import alerting
from tests.integration.alerting.hurry import hurried
from tests.integration.alerting.mailbox import MailBox, part_of
from tests.integration.child import Child
from tests.integration.eventually import eventually, some
from tests.integration.prometheus import running
from tests.servers import served

pytestmark = pytest.mark.real

PAGE: Final = (Path(__file__).parents[3] / "docs" / "start" / "start.md").read_text(encoding="utf-8")
HTTP: Final = "http://quotascope:9749"
"""The exporter's address on the page."""
EXPRESSION: Final = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def block(begins: str) -> str:
    """Return the block of the page that begins so."""
    (text,) = (text for text in EXPRESSION.findall(PAGE) if text.startswith(begins))
    return str(text)


def written(name: str, **replaced: str) -> dict[str, Any]:
    """Return a file of the page, with other values for some texts in it."""
    text = block(f"# {name}\n")
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[str]:
    """Yield the address of an exporter whose clients are throttled."""
    port = free_port()
    demo = Child([str(COMMAND), "demo", "--port", str(port)], tmp_path / "demo.log")
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: some(web.ask(f"{url}/metrics").text))
        yield url
    finally:
        demo.end()


@pytest.mark.timeout(240)
def test_the_page_leads_to_a_mail(exporter: str, tmp_path: Path) -> None:
    """
    The test alert of the page arrives, and then the mail about a throttled client, which names it and its runbook.

    Only addresses and folders differ from the page, and a minute is a second.
    """
    rules, templates = tmp_path / "rules", tmp_path / "quotascope.tmpl"
    words = shlex.split(block("quotascope alerts write"))
    places = {"/etc/prometheus/rules": rules, "/etc/alertmanager/quotascope.tmpl": templates, HTTP: exporter}
    assert places.keys() <= set(words)
    process = run(*(places.get(word, word) for word in words[1:]))
    assert process.returncode == 0, process.stderr
    for path in rules.glob("quotascope-*.yaml"):
        path.write_text(yaml.safe_dump(hurried(yaml.safe_load(path.read_text()))))

    with served(MailBox()) as box:
        settings = written(
            "/etc/alertmanager/alertmanager.yml",
            **{"smtp.example.com:587": box.address, "/etc/alertmanager/quotascope.tmpl": str(templates)},
        )
        settings["global"]["smtp_require_tls"] = False  # the mailbox here has neither TLS nor a login
        del settings["global"]["smtp_auth_username"], settings["global"]["smtp_auth_password_file"]
        settings["route"] |= {"group_wait": "1s", "group_interval": "1s"}
        with alerting(tmp_path / "alertmanager", settings) as alertmanager:
            amtool = shutil.which("amtool") or shutil.which("prometheus-amtool")
            assert amtool
            command = [amtool, *shlex.split(block("amtool"))[1:]]
            command[command.index("http://localhost:9093")] = f"http://{alertmanager.address}"
            subprocess.run(command, check=True)
            eventually(lambda: box.has(1), seconds=30)
            assert f"*{box.mails[0]['Subject']}*" in PAGE

            config = written(
                "/etc/prometheus/prometheus.yml",
                **{
                    "/etc/prometheus/rules/": f"{rules}/",
                    "localhost:9093": alertmanager.address,
                    HTTP.removeprefix("http://"): exporter.removeprefix("http://"),
                },
            )
            config["global"] = dict.fromkeys(config["global"], "500ms") | {"scrape_timeout": "500ms"}
            with running(tmp_path / "prometheus", config):
                text = eventually(lambda: some(_about_clients(box))[0], seconds=120)
    assert re.search(rf"client: +{exporter}/entity\?", text)
    assert re.search(rf"what to do: +{exporter}/runbooks/KafkaQuota\w+\?", text)


def _about_clients(box: MailBox) -> list[str]:
    texts = [part_of(mail, "plain") for mail in box.mails]
    return [text for text in texts if "Kafka has throttled" in text]
