"""Shared by the commands that show what a scheduler knows: asking for one of its documents.

Covers: the scheduler's HTTP address, the object of a name, errors. Does not cover: how they are
printed (``gangs``, ``quotas``, ``claims``, ``disruption``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from koordlet.cli import output
from koordlet.model import errors

#: Where a scheduler listens when nothing else is configured (``koordlet scheduler --http``).
ADDRESS = "127.0.0.1:9317"
OPTIONS = {"--address ADDRESS": f"HOST:PORT of the scheduler's --http (default: {ADDRESS})"}
_TIMEOUT = 10.0
_MOST = 64 << 20

Document = Mapping[str, Any]


def one(address: str | None, kind: str, name: str) -> Document:
    """The object of a kind, such as ``gang``, and a name, alone or as ``namespace/name``."""
    return named(ask(address, f"{kind}s", name), kind, name)


def named(several: Sequence[Document], kind: str, name: str) -> Document:
    """The only object that a scheduler answered with."""
    if len(several) != 1:
        there = ", ".join(str(each[kind]) for each in several)
        fix = f"there are {there}" if there else f"`koordlet get {kind}s` lists them"
        problem = f"several {kind}s have this name" if there else f"no such {kind}"
        raise errors.HostError(problem, culprit=name, fix=fix)
    return several[0]


def ask(address: str | None, kind: str, name: str | None) -> list[Document]:
    """All objects of a kind that a scheduler knows; of a name, in full.

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
        why = getattr(error, "strerror", None) or error
        raise errors.HostError(
            f"no scheduler that knows {kind} answers: {why}",
            culprit=where,
            fix="does `koordlet scheduler` run there? or name its --http with --address",
        ) from None
    output.warn(map(str, document.get("warnings", ())))
    return list(several)
