"""Endpoints: the port that is taken, and the last word of an agent that nobody follows."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.agent import endpoints
from koordlet.config import loader
from koordlet.history import series
from koordlet.kubeapi import objects
from koordlet.report import rows
from koordlet.state import paths
from tests.kit.node_reports import (
    MANNERS,
    NODE_REF,
    Racing,
    node_view,
    offering,
    stored_node,
)

QUIET = {
    "KOORDLET_REPORT__HTTP__ENABLED": "false",
    "KOORDLET_REPORT__GRPC__ENABLED": "false",
    "KOORDLET_REPORT__OBJECTS__TAINTS": "NoSchedule",
}
OURS = "koordlet.io/memory-pressure"


@pytest.mark.parametrize("final", [True, False])
async def test_the_node_keeps_nothing_of_an_agent_that_ends_for_good(
    ram: Path, *, final: bool
) -> None:
    """Taints, conditions and resources go; with a successor to come all of it stays."""
    async with stored_node(ram) as store:
        now = offering(node_view(), cpu=4000)
        where = paths.choose({}, root=True, state_dir=str(ram))
        cluster = endpoints.Cluster(store=store.store, by_default=True)
        report = loader.from_text(None, "", QUIET, {}).config.report
        served = endpoints.Endpoints(report, where, past=series.History(), cluster=cluster)
        await served.start(lambda: now)

        async def shown() -> tuple[bool, ...]:
            there = await store.store.get(NODE_REF)
            status = there.get("status") or {}
            taints = (there.get("spec") or {}).get("taints") or []
            return (
                any("koordlet.io/" in each["type"] for each in status.get("conditions") or ()),
                bool(status.get("allocatable")),
                any(each["key"] == OURS for each in taints),
            )

        await rows.StatusRow(MANNERS, Racing()).bring(store.store, now)
        taint = {"spec": {"taints": [{"key": OURS, "effect": "NoSchedule"}]}}
        await store.store.patch(NODE_REF, objects.Merge(taint))
        assert await shown() == (True,) * 3
        await served.stop(final=final)
        assert (not final,) * 3 == await shown()


@contextlib.contextmanager
def taken() -> Iterator[str]:
    """An address at which somebody listens already."""
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        yield f"127.0.0.1:{somebody.getsockname()[1]}"


@pytest.mark.parametrize("any_port", [True, False])
def test_a_taken_port_costs_the_demo_its_number_and_a_service_its_page(
    ram: Path, *, any_port: bool
) -> None:
    """The demo says where its page is and why; a service reports the problem and keeps its port."""

    async def body(address: str) -> None:
        environ = {**QUIET, "KOORDLET_REPORT__HTTP__ENABLED": "true"}
        environ["KOORDLET_REPORT__HTTP__ADDRESS"] = address
        report = loader.from_text(None, "", environ, {}).config.report
        where = paths.choose({}, root=True, state_dir=str(ram))
        made = endpoints.Endpoints(report, where, past=series.History(), any_port=any_port)
        addresses = await made.start(lambda: None)
        await made.stop(final=False)
        if any_port:
            (page,) = addresses
            url, reason = page.split(" ", 1)
            assert url.startswith("http://127.0.0.1:")
            assert url != f"http://{address}/"
            assert reason == f"(not {address}: another program already listens there)"
            assert made.problems == {}
        else:
            assert (addresses, list(made.problems)) == ((), ["http"])

    with taken() as address:
        asyncio.run(body(address))
