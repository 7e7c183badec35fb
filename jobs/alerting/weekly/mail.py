"""The weekly report by mail: plain text and HTML, over SMTP with TLS and one overall deadline."""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256

from jobs.alerting.http_post import NotAcceptedError
from jobs.config.errors import one_line
from jobs.config.report_section import ReportMail

TIMEOUT_S = 10.0
"""Time limit of each step of the conversation with the server."""

DEADLINE_S = 60.0
"""Time limit of the whole conversation, which a server could otherwise extend byte by byte."""


def mail_of(receiver: ReportMail, *, subject: str, text: str, html: str, key: str, now_ms: int) -> EmailMessage:
    """Return the mail. The same `key` gives the same Message-ID, so that a repeated mail can be recognized."""
    mail = EmailMessage()
    # One line, because a line break in a header would begin another header.
    mail["Subject"] = " ".join(subject.split())[:200]
    mail["From"] = receiver.sender
    mail["To"] = ", ".join(receiver.to)
    mail["Date"] = format_datetime(datetime.fromtimestamp(now_ms / 1000, UTC))
    domain = receiver.sender.rpartition("@")[2]
    mail["Message-ID"] = f"<{sha256(key.encode()).hexdigest()[:32]}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text)
    mail.add_alternative(html, subtype="html")
    return mail


def send_mail(receiver: ReportMail, mail: EmailMessage) -> None:
    """Send it.

    Raises:
        NotAcceptedError: the server is not reached in time, is not who it must be, or refuses the mail for an address.
        UserError: the password's reference is broken.
    """
    login = receiver.login()
    try:
        with _connected(receiver) as server:
            if login is not None:
                server.login(*login)
            refused = server.send_message(mail)
    except smtplib.SMTPResponseException as error:
        raise NotAcceptedError(f"answered {error.smtp_code}: {_line_of(error.smtp_error)}") from None
    except smtplib.SMTPRecipientsRefused as error:
        code, reply = next(iter(error.recipients.values()))
        raise NotAcceptedError(f"refused every address with {code}: {_line_of(reply)}") from None
    except TimeoutError:
        raise NotAcceptedError(f"no answer within {TIMEOUT_S:.0f} s") from None
    except (OSError, ValueError, smtplib.SMTPException) as error:
        raise NotAcceptedError(_line_of(one_line(error))) from None
    if refused:
        raise NotAcceptedError(f"took the mail, but refused {len(refused)} of {len(receiver.to)} addresses")


@contextmanager
def _connected(receiver: ReportMail) -> Iterator[smtplib.SMTP]:
    """Yield a connection to the server, encrypted as the settings say. It is cut after `DEADLINE_S`."""
    trusted = ssl.create_default_context()
    if receiver.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(receiver.server, receiver.port, timeout=TIMEOUT_S, context=trusted)
    else:
        server = smtplib.SMTP(receiver.server, receiver.port, timeout=TIMEOUT_S)
    timer = threading.Timer(DEADLINE_S, _cut, [server])
    timer.daemon = True
    timer.start()
    try:
        with server:
            if receiver.security == "starttls":
                server.starttls(context=trusted)
            yield server
    finally:
        timer.cancel()


def _cut(server: smtplib.SMTP) -> None:
    if server.sock is not None:
        with suppress(OSError):
            server.sock.shutdown(socket.SHUT_RDWR)


def _line_of(text: bytes | str) -> str:
    """Return what a server said as one short line."""
    line = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join("".join(c if c.isprintable() else " " for c in line).split())[:200]
