"""Asking a Prometheus over HTTP: queries, tokens, and whatever goes wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.http import message, routes, server
from koordlet.http.client import ClientLimits
from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.descheduling.prometheus_source import PrometheusSource, QueryAnswer
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.process import prometheus_client
from tests.kit import descheduling, prometheus, schedulers
from tests.kit.descheduler_scene import FREE
from tests.kit.schedulers import READY

QUERY = 'sum by (instance) (rate(node_cpu{mode!="idle"}[5m]))'
SECRET = ("monitoring", "token")


def vector(**shares: float) -> dict[str, Any]:
    """A good answer."""
    result = [{"metric": {"instance": node}, "value": [0, str(share)]}
              for node, share in shares.items()]  # fmt: skip
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


class Prometheus:
    """A server that answers as it is told."""

    def __init__(self) -> None:
        self.body = json.dumps(vector(n1=0.5695, n2=0.2))
        self.status = 200
        self.asked: list[message.HttpRequest] = []
        self.url = ""

    def answer(self, request: message.HttpRequest) -> message.HttpResponse:
        """The handler."""
        self.asked.append(request)
        return message.text(self.body, status=self.status)


@asynccontextmanager
async def serving() -> AsyncGenerator[Prometheus]:
    """It listens below a path, as behind a gateway."""
    prometheus = Prometheus()
    table = routes.Routes([("GET", "/prom/api/v1/query", prometheus.answer)])
    listener = server.HttpServer("127.0.0.1:0", table)
    prometheus.url = f"http://{await listener.start()}/prom/"
    try:
        yield prometheus
    finally:
        await listener.stop()


async def test_a_query_is_asked_with_the_token_of_the_secret(ram: Path) -> None:
    """It is read each time: one that rotated counts at once."""
    custom = (kinds.SECRETS,)
    async with schedulers.world(ram, over_http=True, custom=custom) as world, serving() as prom:
        source = PrometheusSource(prom.url, SECRET)
        asking = prometheus_client.PrometheusClient(world.client, source)
        (missing,) = (await asking.ask([QUERY])).values()
        assert missing.error.startswith("Secret monitoring/token with its token cannot be read")
        ref = objects.Ref(kinds.SECRETS, SECRET[1], SECRET[0])
        meta = {"name": SECRET[1], "namespace": SECRET[0]}
        await world.store.create(kinds.SECRETS, {"metadata": meta, "data": {}})
        (empty,) = (await asking.ask([QUERY])).values()
        assert empty.error.endswith("has no token at the key prometheusAuthToken")
        assert prom.asked == []
        for token in ("one", "two"):
            data = {"prometheusAuthToken": base64.b64encode(token.encode()).decode()}
            await world.store.patch(ref, objects.Merge({"data": data}))
            answers = await asking.ask([QUERY, QUERY])
            assert answers == {QUERY: QueryAnswer({"n1": 0.5695, "n2": 0.2})}
        tokens = [request.headers["authorization"] for request in prom.asked]
        assert tokens == ["Bearer one", "Bearer two"]
        assert prom.asked[0].one("query") == QUERY


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (401, "", "refuses our token (401)"),
        (502, "<html>", "answered 502 and no JSON"),
        (400, '{"status": "error", "error": "parse error"}', "the query failed: parse error"),
        (200, json.dumps(vector(n1=1.2)), "the sample of n1 is"),
        (200, "[" * 100_000, "and no JSON"),
    ],
)
async def test_whatever_goes_wrong_is_an_answer(
    ram: Path, status: int, text: str, error: str
) -> None:
    """Of an account without a token, too; nobody listens at all in the end."""
    async with schedulers.world(ram, over_http=False) as world:
        async with serving() as prom:
            prom.status, prom.body = status, text
            asking = prometheus_client.PrometheusClient(
                world.client, PrometheusSource(prom.url), account=ram / "none"
            )
            (answer,) = (await asking.ask([QUERY])).values()
            assert error in answer.error
            assert "authorization" not in prom.asked[0].headers
        (gone,) = (await asking.ask([QUERY])).values()
        assert gone.error


@pytest.mark.parametrize("token", ["hid\nden", "hidd\xe9n"])
async def test_a_token_that_no_header_can_carry_is_neither_sent_nor_shown(
    ram: Path, token: str
) -> None:
    """What is wrong with a request would be told with its headers, and logged."""
    (ram / "token").write_text(token)
    async with schedulers.world(ram, over_http=False) as world, serving() as prom:
        source = PrometheusSource(prom.url)
        asking = prometheus_client.PrometheusClient(world.client, source, account=ram)
        (answer,) = (await asking.ask([QUERY])).values()
        assert answer.error.startswith("its token is not one line of ASCII characters")
        assert prom.asked == []


async def test_an_address_that_no_request_can_carry_is_an_answer(ram: Path) -> None:
    """A round goes on without it, and its note says why."""
    async with schedulers.world(ram, over_http=False) as world, serving() as prom:
        for url in ("http://prometheus..svc:9090", f"{prom.url}caf\xe9"):
            source = PrometheusSource(url)
            asking = prometheus_client.PrometheusClient(world.client, source, ram / "none")
            (answer,) = (await asking.ask([QUERY])).values()
            assert "codec" in answer.error


async def test_one_that_never_answers_costs_the_time_of_one_answer(ram: Path) -> None:
    """All queries wait at once, those without a connection, too."""
    seconds = 0.5
    async with schedulers.world(ram, over_http=False) as world:
        # The kernel takes connections, and nobody reads them.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            asking = prometheus_client.PrometheusClient(
                world.client,
                PrometheusSource(f"http://127.0.0.1:{silent.getsockname()[1]}"),
                account=ram / "none",
                limits=ClientLimits(connections=1, answer_seconds=seconds),
            )
            several = [f"q{n}" for n in range(20)]
            answers = await asyncio.wait_for(asking.ask(several), 10 * seconds)
        errors = {answer.error.partition(": ")[2] for answer in answers.values()}
        assert errors == {"no answer within 0 s"}
        assert list(answers) == several


@prometheus.NEEDED
def test_what_a_real_one_answers(ram: Path) -> None:
    """Shares by node, an empty vector, a scalar, an error in the query, a share above 1."""
    share = 'label_replace(vector({}), "instance", "{}", "", "")'
    nodes = f"{share.format('0.2 + 0.5', 'n1')} or {share.format(0.25, 'n2')}"

    async def body(url: str) -> None:
        async with schedulers.world(ram, over_http=False) as world:
            asking = prometheus_client.PrometheusClient(world.client, PrometheusSource(url))
            queries = (nodes, "node_cpu", "0.5", "sum(", share.format(1.5, "n3"), "vector(0.7)")
            answers = list((await asking.ask(queries)).values())
            assert answers[:2] == [QueryAnswer({"n1": 0.7, "n2": 0.25}), QueryAnswer()]
            errors = [answer.error for answer in answers[2:]]
            starts = ("the query gives a scalar", "the query failed: invalid parameter",
                      "the sample of n3 is", "a sample has no label instance")  # fmt: skip
            assert [e.startswith(start) for e, start in zip(errors, starts, strict=True)] == (
                [True] * len(starts)
            ), errors

    with prometheus.serving(ram / "prometheus") as server:
        schedulers.run(body(server.url))


async def test_the_token_of_the_account_is_the_one_without_a_secret(ram: Path) -> None:
    """It is mounted into the pod."""
    (ram / "token").write_text("mounted\n")
    async with schedulers.world(ram, over_http=False) as world, serving() as prom:
        source = PrometheusSource(prom.url)
        asking = prometheus_client.PrometheusClient(world.client, source, account=ram)
        await asking.ask([QUERY])
        assert prom.asked[0].headers["authorization"] == "Bearer mounted"


async def test_a_round_asks_and_evicts_by_the_answer(ram: Path) -> None:
    """One of two pods leaves the node above the target."""
    custom = kinds.RESERVATIONS, kinds.NODE_AVOIDANCES
    async with schedulers.world(ram, over_http=False, custom=custom) as world, serving() as it:
        for name in ("n1", "n2"):
            await world.node(name)
        for name in "ab":
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name}
            meta = {"ownerReferences": [{**owner, "controller": True}]}
            ref = await world.pod(name, on="n1", meta=meta)
            await world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")
        strategies = {
            "LowNodeUtilization": {
                "thresholds": {"MetricResource": 30},
                "targetThresholds": {"MetricResource": 50},
                "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": QUERY}},
            }
        }
        policy = descheduling.policy(
            strategies,
            leaderElection={"leaderElect": False},
            metricsProviders=[{"source": "Prometheus", "prometheus": {"url": it.url}}],
        )
        settings = configuration.read(policy, "f")
        made = descheduler.Descheduler(
            world.client, settings, instance="one", disruption=FREE,
            ask=prometheus_client.asking(world.client, settings),
        )  # fmt: skip
        await made.run(once=True)
        assert made.book.last is not None
        (proposal,) = made.book.last.evicted
        assert proposal.reason == "node is overutilized: MetricResource 56.00% > 50.00%"
