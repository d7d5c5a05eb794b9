"""What a running agent answers over HTTP, asked by a plain client on a connection of its own.

Covers: a document, a text, one metric. Does not cover: streams, TLS, what is malformed
(``tests/http``).
"""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.kit import deadline


def get(address: str, path: str) -> tuple[int, bytes]:
    """Status and body."""
    connection = http.client.HTTPConnection(address, timeout=deadline.PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def text(address: str, path: str) -> str:
    """The body, whatever the status is."""
    return get(address, path)[1].decode()


def document(address: str, path: str) -> Any:
    """The body as JSON; an assertion where the answer is not 200."""
    status, body = get(address, path)
    assert status == 200, (path, status)
    return json.loads(body)


def metric(address: str, name: str) -> float:
    """One sample by its name and labels as they are written; 0 while it is not there."""
    lines = text(address, "/metrics").splitlines()
    return next((float(line[len(name) :]) for line in lines if line.startswith(f"{name} ")), 0.0)
