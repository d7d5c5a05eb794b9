"""A gate before the API server's store: lets a process write so often, and kills it at the next.

Covers: a validating webhook on plans, jobs, their reservations and evictions. Does not cover: who
is killed, and what follows from it (``test_migration``).

A process that dies at the gate has made all writes before, and not this one: how fast the machine
is has no part in it.
"""

from __future__ import annotations

import base64
import contextlib
import http
import json
import threading
from collections.abc import Callable, Iterator
from http import server
from pathlib import Path
from typing import Any

from tests.kit import deadline, k8s_lab
from tests.kit.apiserver import pki

_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
#: As denials name it.
NAME = "gate.koordlet.test"
_JOBS = "podmigrationjobs", "podmigrationjobs/*"


class WriteGate:
    """Counts the writes of one account while it is armed."""

    def __init__(self, account: str) -> None:
        self._account, self._lock = account, threading.Lock()
        #: Writes that may pass; ``None``: all. ``counted``: those of this subresource alone.
        self._left: int | None = None
        self._counted = ""
        self._kill: Callable[[], None] = lambda: None
        #: Somebody asked, whoever it was.
        self.open = threading.Event()
        #: The process is killed, and nothing that it had under way passes.
        self.closed = threading.Event()

    def arm(self, writes: int, kill: Callable[[], None], *, counted: str = "") -> None:
        """Let so many pass from now on, and kill at the next."""
        with self._lock:
            self.closed.clear()
            self._left, self._kill, self._counted = writes, kill, counted

    def disarm(self) -> None:
        """Let everything pass."""
        with self._lock:
            self._left = None

    def allows(self, user: str, subresource: str) -> bool:
        """Whether a write passes."""
        self.open.set()
        with self._lock:
            if self._left is None or not user.endswith(self._account):
                return True
            if not self.closed.is_set():
                if self._counted not in {"", subresource}:
                    return True
                if self._left:
                    self._left -= 1
                    return True
                self._kill()
                self.closed.set()
            return False


def _handler(gate: WriteGate) -> type[server.BaseHTTPRequestHandler]:
    class Handler(server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = review["request"]
            allowed = gate.allows(asked["userInfo"]["username"], asked.get("subResource", ""))
            answer = {"uid": asked["uid"], "allowed": allowed}
            body = json.dumps({**review, "request": None, "response": answer}).encode()
            self.send_response(http.HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return Handler


@contextlib.contextmanager
def serving(
    admin: k8s_lab.Admin, folder: Path, account: str, probe: tuple[str, dict[str, Any]]
) -> Iterator[WriteGate]:
    """A gate that the API server asks; ``probe``: path and body of a job for a dry run."""
    gate, authority = WriteGate(account), pki.Authority(folder, "gate")
    listener = server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(gate))
    listener.socket = authority.serving().wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"https://127.0.0.1:{listener.server_address[1]}/"
        admin.need("POST", _HOOKS, _configuration(url, authority.certificate))
        path, body = probe

        def asked() -> bool:
            status, answer = admin.ask("POST", f"{path}?dryRun=All", body)
            assert status == http.HTTPStatus.CREATED, answer
            return gate.open.is_set()

        deadline.until(asked, "the API server asks the gate", seconds=60)
        yield gate
    finally:
        gate.disarm()
        admin.ask("DELETE", f"{_HOOKS}/{NAME}")
        listener.shutdown()
        thread.join()
        listener.server_close()


def _configuration(url: str, certificate: Path) -> dict[str, object]:
    bundle = base64.b64encode(certificate.read_bytes()).decode()
    rules = [
        {
            "apiGroups": [group], "apiVersions": ["*"], "resources": names, "scope": "*",
            "operations": ["CREATE", "UPDATE", "DELETE"],
        }
        for group, names in (
            ("scheduling.koordinator.sh", [*_JOBS, "reservations"]),
            ("scheduling.koordlet.io", ["moveplans", "moveplans/*"]),
            ("", ["pods/eviction"]),
        )
    ]  # fmt: skip
    hook = {
        "name": NAME, "rules": rules, "clientConfig": {"url": url, "caBundle": bundle},
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }  # fmt: skip
    return {"metadata": {"name": NAME}, "webhooks": [hook]}
