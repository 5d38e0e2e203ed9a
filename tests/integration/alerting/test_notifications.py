"""Mails and messages of a real Alertmanager with the example, its templates and the receivers of the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.alerts.promtool import ALERTMANAGER
from tests.integration import web
from tests.integration.alerting.alertmanager import Alertmanager, alerting
from tests.integration.alerting.mailbox import MailBox, part_of
from tests.integration.eventually import eventually
from tests.servers import Handler, served

from quotascope.alerts import Site
from quotascope.alerts.files import Extras, write

pytestmark = pytest.mark.real

DOCUMENTED: Final = Path(__file__).parents[3] / "docs" / "reference" / "alerts.md"
HOSTILE: Final = 'svc "<!channel>\n<b>&'
BEGAN: Final = "2026-01-02T05:51:00Z"


class Slack(ThreadingHTTPServer):
    """Takes messages as Slack's webhooks do."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Webhook)


class _Webhook(Handler):
    server: Slack

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self.server.messages.append(json.loads(self.body()))
        self.answer(200, b"ok")


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Alertmanager, MailBox, Slack]]:
    """
    Yield an Alertmanager as the documentation and `alerts write --alertmanager` set it up.

    The receivers of its mails and messages come with it.
    """
    folder = tmp_path_factory.mktemp("notifications")
    templates = folder / "written" / "quotascope.tmpl"
    write(folder / "rules", Site(), Extras(alertmanager=templates))
    config = yaml.safe_load(ALERTMANAGER.read_text())
    (receivers,) = re.findall(r"```yaml\n(receivers:.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    documented = {entry["name"]: entry for entry in yaml.safe_load(receivers)["receivers"]}
    config["receivers"] = [documented.get(entry["name"], entry) for entry in config["receivers"]]
    config["templates"] = [str(templates.parent / name) for name in config["templates"]]
    for route in (ours := config["route"]["routes"][0], *ours["routes"]):
        route["group_wait"] = "1s"
        route["group_interval"] = "1s"
    with served(MailBox()) as box, served(Slack()) as slack:
        config["global"] = {
            "smtp_smarthost": box.address,
            "smtp_from": "alertmanager@example.com",
            "smtp_require_tls": False,
            "slack_api_url": f"http://127.0.0.1:{slack.server_port}/",
        }
        with alerting(folder / "running", config) as alertmanager:
            yield alertmanager, box, slack


def alert(name: str, severity: str, user: str, **times: str) -> dict[str, Any]:
    """Return an alert as Prometheus sends it."""
    return {
        "labels": {"alertname": name, "severity": severity, "scope": "entity", "cluster": "paris", "user": user},
        "annotations": {
            "summary": "A client is throttled by its produce quota for most of the time.",
            "description": f"[paris] Kafka has throttled user {json.dumps(user)} on brokers 1 and 2 since 05:51 UTC.",
            "entity_url": "http://exporter/entity?user=x",
            "runbook_url": f"http://exporter/runbooks/{name}?user=x",
        },
        "startsAt": BEGAN,
        **times,
    }


def send(alertmanager: Alertmanager, *alerts: Mapping[str, Any]) -> None:
    url = f"http://{alertmanager.address}/api/v2/alerts"
    answer = web.ask(url, json.dumps(alerts).encode(), {"Content-Type": "application/json"})
    assert answer.status == 200, answer.text


def test_a_mail_begins_with_what_happened(receiver: tuple[Alertmanager, MailBox, Slack]) -> None:
    """
    Subject and text of a mail begin with the description; HTML in a name stays text, and links follow.

    A second mail has the end of one of two alerts.
    """
    alertmanager, box, _ = receiver
    name = "KafkaQuotaProduceThrottled"
    send(alertmanager, alert(name, "warning", HOSTILE))
    eventually(lambda: box.has(1), seconds=30)
    mail = box.mails[0]
    description = f"[paris] Kafka has throttled user {json.dumps(HOSTILE)} on brokers 1 and 2 since 05:51 UTC."
    assert mail["Subject"] == f"[1 firing] {description}"
    text, html = part_of(mail, "plain"), part_of(mail, "html")
    assert text.splitlines() == [
        description,
        "  client:     http://exporter/entity?user=x",
        f"  what to do: http://exporter/runbooks/{name}?user=x",
        f"  {name}, warning, alert since 05:51 UTC",
    ]
    assert "<b>&" not in html
    assert "&lt;!channel&gt;" in html
    assert '<a href="http://exporter/entity?user=x">Client</a>' in html

    send(alertmanager, alert(name, "warning", "alice"))
    eventually(lambda: box.has(2), seconds=30)
    assert box.mails[1]["Subject"] == (
        "[2 firing] [paris] A client is throttled by its produce quota for most of the time."
    )
    assert part_of(box.mails[1], "plain").count("Kafka has throttled user ") == 2


def test_a_message_of_chat_calls_nobody(receiver: tuple[Alertmanager, MailBox, Slack]) -> None:
    """The description is there, and markup in a client's name is text."""
    alertmanager, _, slack = receiver
    send(alertmanager, alert("KafkaQuotaShadowThrottlesClient", "info", HOSTILE))

    def told() -> None:
        assert slack.messages

    eventually(told, seconds=30)
    (attachment,) = slack.messages[0]["attachments"]
    assert "Kafka has throttled user" in attachment["text"]
    assert "&lt;!channel&gt;" in attachment["text"]
    assert "<!channel>" not in json.dumps(attachment)
    assert "<http://exporter/entity?user=x|client>" in attachment["text"]
