"""Shared by the commands that show what a scheduler knows: asking for one of its documents.

Covers: the scheduler's HTTP address, errors. Does not cover: what is asked and how it is printed
(``gangs``, ``quotas``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from koordlet.cli import output
from koordlet.model import errors

#: Where a scheduler listens when nothing else is configured (``koordlet scheduler --http``).
ADDRESS = "127.0.0.1:9317"
_TIMEOUT = 10.0
_MOST = 64 << 20

Document = Mapping[str, Any]


def ask(address: str | None, kind: str, name: str | None) -> list[Document]:
    """All objects of a kind (``gangs``, ``quotas``) that a scheduler knows; of a name, in full.

    What the scheduler warns of goes to stderr.
    """
    from http import client  # noqa: PLC0415 -- 16 ms with ssl and email that `sim` and `--help` do without

    where = (address or ADDRESS).removeprefix("http://").rstrip("/")
    if where.startswith("unix:"):
        raise errors.UsageError(
            f"{kind} are asked for over HTTP",
            culprit="--address",
            fix=f"give HOST:PORT of the scheduler's --http, such as {ADDRESS}",
        )
    path = f"/api/v1/{kind}?name={quote(name)}" if name else f"/api/v1/{kind}"
    try:
        connection = client.HTTPConnection(where, timeout=_TIMEOUT)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            document = json.loads(answer.read(_MOST))
        finally:
            connection.close()
        several = document[kind]
    except (OSError, client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise errors.HostError(
            f"no scheduler that knows {kind} answers: {error}",
            culprit=where,
            fix="does `koordlet scheduler` run there? or name its --http with --address",
        ) from None
    output.warn(map(str, document.get("warnings", ())))
    return list(several)
