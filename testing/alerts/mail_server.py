"""A mail server on loopback that keeps what it is sent: the part of SMTP that smtplib uses, with STARTTLS and AUTH."""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any


class MailServer:
    """Keeps the mails with their recipients. `refuses` are addresses that do not exist here.

    With `certificate` (a PEM file with its key), it offers STARTTLS; with `login`, it demands it.
    """

    def __init__(self, *, certificate: Path | None = None, login: tuple[str, str] | None = None) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.raw: list[bytes] = []
        self.refuses: set[str] = set()
        self.is_down = False
        server = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _Conversation(server, self, certificate, login).run()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_: Any) -> None:
                """A client that does not trust the certificate ends the conversation, which is no error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Conversation:
    def __init__(
        self, server: MailServer, handler: Any, certificate: Path | None, login: tuple[str, str] | None
    ) -> None:
        self._server, self._socket, self._certificate, self._login = server, handler.connection, certificate, login
        self._file, self._is_known = self._socket.makefile("rwb"), login is None
        self._to: list[str] = []

    def run(self) -> None:
        try:
            self._converse()
        finally:
            self._file.close()
            self._socket.close()

    def _converse(self) -> None:
        if self._server.is_down:
            self._say("421 not now")
            return
        self._say("220 here")
        while line := self._file.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            if verb.upper() == "QUIT":
                self._say("221 bye")
                return
            getattr(self, f"_{verb.lower()}", self._unknown)(rest)

    def _say(self, *lines: str) -> None:
        self._file.write("".join(f"{line}\r\n" for line in lines).encode())
        self._file.flush()

    def _unknown(self, _: str) -> None:
        self._say("502 not here")

    def _ehlo(self, _: str) -> None:
        offers = [
            "here",
            *(["STARTTLS"] if self._certificate else []),
            *(["AUTH PLAIN"] if self._login else []),
            "8BITMIME",
        ]
        self._say(*(f"250-{offer}" for offer in offers[:-1]), f"250 {offers[-1]}")

    def _starttls(self, _: str) -> None:
        self._say("220 go")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(str(self._certificate))
        self._socket = context.wrap_socket(self._socket, server_side=True)
        self._file = self._socket.makefile("rwb")
        self._certificate = None

    def _auth(self, rest: str) -> None:
        _, user, password = base64.b64decode(rest.removeprefix("PLAIN ")).decode().split("\0")
        self._is_known = (user, password) == self._login
        self._say("235 known" if self._is_known else "535 who are you?")

    def _mail(self, _: str) -> None:
        self._to = []
        self._say("250 ok" if self._is_known else "530 log in first")

    def _rcpt(self, rest: str) -> None:
        address = rest.partition("<")[2].partition(">")[0]
        if address in self._server.refuses:
            self._say("550 nobody here has this address")
            return
        self._to.append(address)
        self._say("250 ok")

    def _rset(self, _: str) -> None:
        self._say("250 ok")

    def _data(self, _: str) -> None:
        self._say("354 go on")
        lines = []
        while (line := self._file.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        raw = b"".join(lines)
        self._server.raw.append(raw)
        self._server.recipients.append(self._to)
        self._server.mails.append(message_from_bytes(raw, policy=policy.default))
        self._say("250 kept")
