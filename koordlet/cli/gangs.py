"""Shared by the commands that show gangs: asking a scheduler for them, and how they are printed.

Covers: the scheduler's HTTP address, the table, one gang with its members.
Does not cover: the commands (``get``, ``describe``, ``sim``).
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
_TIMEOUT = 10.0
_MOST = 64 << 20

Document = Mapping[str, Any]


def ask(address: str | None, name: str | None) -> list[Document]:
    """The gangs that a scheduler knows; those of a name, with their members."""
    from http import client  # noqa: PLC0415 -- 16 ms with ssl and email that `sim` and `--help` do without

    where = (address or ADDRESS).removeprefix("http://").rstrip("/")
    if where.startswith("unix:"):
        raise errors.UsageError(
            "gangs are asked for over HTTP",
            culprit="--address",
            fix=f"give HOST:PORT of the scheduler's --http, such as {ADDRESS}",
        )
    path = f"/api/v1/gangs?name={quote(name)}" if name else "/api/v1/gangs"
    try:
        connection = client.HTTPConnection(where, timeout=_TIMEOUT)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            document = json.loads(answer.read(_MOST))
        finally:
            connection.close()
        gangs = document["gangs"]
    except (OSError, client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise errors.HostError(
            f"no scheduler that knows gangs answers: {error}",
            culprit=where,
            fix="does `koordlet scheduler` run there? or name its --http with --address",
        ) from None
    return list(gangs)


def named(gangs: Sequence[Document], name: str) -> Document:
    """The gang of a name, alone or as ``namespace/name``."""
    if len(gangs) != 1:
        there = ", ".join(str(gang["gang"]) for gang in gangs)
        fix = f"there are {there}" if there else "`koordlet get gangs` lists them"
        problem = "several gangs have this name" if there else "no such gang"
        raise errors.HostError(problem, culprit=name, fix=fix)
    return gangs[0]


def table(gangs: Sequence[Document]) -> list[str]:
    """A row for each gang: how many of its minimum have a node, and why it waits."""
    head = ("GANG", "PLACED/MIN", "PODS", "PHASE", "SINCE", "GROUP", "WAITS FOR")
    rows = [
        (
            gang["gang"],
            _share(gang),
            str(gang["pods"]),
            gang["phase"],
            gang["since"] or "-",
            ",".join(gang["group"]) or "-",
            _reason(gang) or "-",
        )
        for gang in gangs
    ]
    return output.table(rows, head=head) if rows else []


def detail(gang: Document) -> list[str]:
    """One gang, with a row for each member."""
    shown = {
        "Name": gang["gang"],
        "Form": gang["form"],
        "Phase": gang["phase"],
        "Since": gang["since"] or "",
        "Placed": f"{_share(gang)} of {gang['pods']} pods",
        "Group": ", ".join(gang["group"]),
        "Waits for": _reason(gang),
    }
    lines = [f"{name + ':':<10} {value}".rstrip() for name, value in shown.items()]
    rows = [
        (member["pod"], member["node"] or "-", member["message"] or "")
        for member in gang.get("members", ())
    ]
    return [*lines, *(output.table(rows, head=("POD", "NODE", "WHY NOT")) if rows else ())]


def _share(gang: Document) -> str:
    return f"{gang['placed']}/{'?' if gang['min'] is None else gang['min']}"


def _reason(gang: Document) -> str:
    return ": ".join(filter(None, (gang["member"], gang["message"])))
