"""Where the mails of an Alertmanager arrive."""

import email
import email.policy
import socketserver
from email.message import EmailMessage


class MailBox(socketserver.ThreadingTCPServer):
    """Takes mails by SMTP."""

    daemon_threads = True

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        super().__init__(("127.0.0.1", 0), _Smtp)

    @property
    def address(self) -> str:
        """Host and port, as `smtp_smarthost` has them."""
        return f"127.0.0.1:{self.server_address[1]}"

    def has(self, number: int) -> None:
        """Raise AssertionError unless so many mails have come."""
        assert len(self.mails) >= number


class _Smtp(socketserver.StreamRequestHandler):
    server: MailBox

    def handle(self) -> None:
        self._say("220 ready")
        for line in self.rfile:
            match line[:4].upper():
                case b"DATA":
                    self._say("354 go on")
                    lines = b"".join(iter(self.rfile.readline, b".\r\n"))
                    mail = email.message_from_bytes(lines, policy=email.policy.default)
                    assert isinstance(mail, EmailMessage)
                    self.server.mails.append(mail)
                    self._say("250 taken")
                case b"QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 yes")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


def part_of(mail: EmailMessage, subtype: str) -> str:
    """Return the body of a mail of this subtype, `plain` or `html`."""
    part = mail.get_body((subtype,))
    assert part is not None
    text = part.get_content()
    assert isinstance(text, str)
    return text.replace("\r\n", "\n").strip("\n")
