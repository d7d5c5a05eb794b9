"""Bearer tokens: who is let in, what is asked for it, and what a flood costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from koordlet.http import authorisation, message, tokens
from koordlet.kubeapi import kinds, objects, refusals

PEER = authorisation.peer(("10.0.0.1", 1), secure=True)
SCRAPER = "system:serviceaccount:monitoring:prometheus"


class ApiServer:
    """Knows one token, and who may get ``/metrics``."""

    def __init__(self) -> None:
        self.asked: list[tuple[kinds.Kind, Mapping[str, Any]]] = []
        self.error: refusals.ObjectsError | None = None
        self.hold: asyncio.Event | None = None

    async def create(self, kind: kinds.Kind, body: objects.Object) -> objects.Object:
        """Answer a review."""
        self.asked.append((kind, body["spec"]))
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        if kind == kinds.TOKEN_REVIEWS:
            if body["spec"].get("token") != "good":
                return {**body, "status": {"error": "not valid"}}
            user = {"username": SCRAPER, "groups": ["monitoring"], "uid": "u"}
            return {**body, "status": {"authenticated": True, "user": user}}
        wanted = body["spec"]["nonResourceAttributes"]
        return {**body, "status": {"allowed": wanted == {"path": "/metrics", "verb": "get"}}}


class Desk:
    """The seam with its server and a clock that the test moves."""

    def __init__(self, **manners: Any) -> None:
        self.now = 0.0
        self.server = ApiServer()
        chosen = tokens.ReviewTimes(**manners)
        self.seam = tokens.TokenAuthorisation(self.server, chosen, lambda: self.now)

    async def ask(
        self, path: str = "/metrics", method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str]]:
        """The status (200: allowed) and the headers of the refusal."""
        asked = message.HttpRequest(method=method, path=path, headers=headers)
        verdict = await self.seam(asked, PEER)
        if verdict.refusal is None:
            return 200, {}
        return verdict.refusal.status, dict(verdict.refusal.headers)


@pytest.mark.parametrize(
    ("path", "method", "authorization", "status"),
    [
        ("/metrics", "GET", "Bearer good", 200),
        ("/metrics", "HEAD", "bearer  good", 200),
        ("/api/v1/audit", "GET", "Bearer good", 403),
        ("/metrics", "GET", "Bearer bad", 401),
        ("/metrics", "GET", "Basic good", 401),
        ("/metrics", "GET", "Bearer", 401),
        ("/metrics", "GET", "", 401),
        ("/metrics", "GET", "Bearer " + "x" * 9000, 401),
        ("/metrics", "POST", "Bearer good", 405),
    ],
)
def test_who_is_let_in(path: str, method: str, authorization: str, status: int) -> None:
    """A token that the API server knows, with a role for the path, to read; nobody else."""
    desk = Desk()

    assert status == asyncio.run(desk.ask(path, method, authorization=authorization))[0]


def test_the_role_is_asked_for_whom_the_token_names() -> None:
    """User, groups and UID come from the API server, never from the request."""
    desk = Desk()

    asyncio.run(desk.ask(authorization="Bearer good", **{"x-remote-user": "root"}))

    (_, (kind, spec)) = desk.server.asked
    assert kind == kinds.SUBJECT_ACCESS_REVIEWS
    assert (spec["user"], spec["groups"], spec["uid"]) == (SCRAPER, ["monitoring"], "u")


async def test_verdicts_are_remembered_for_a_while() -> None:
    """A scrape each 15 s asks the API server once a minute; a refusal is forgotten sooner."""
    desk = Desk()
    for _ in range(20):
        assert (await desk.ask(authorization="Bearer good"))[0] == 200
        desk.now += 15
    assert len(desk.server.asked) == 5 * 2
    desk.server.asked.clear()
    for _ in range(20):
        assert (await desk.ask(authorization="Bearer bad"))[0] == 401
        desk.now += 1
    assert len(desk.server.asked) == 2


async def test_nobody_is_let_in_while_the_api_server_is_away() -> None:
    """503 and when to come back; it is not remembered."""
    desk = Desk()
    desk.server.error = refusals.Unavailable("down")
    status, headers = await desk.ask(authorization="Bearer good")
    assert (status, headers["retry-after"]) == (503, "5")
    desk.server.error = None
    assert (await desk.ask(authorization="Bearer good"))[0] == 200


async def test_a_flood_of_tokens_is_bounded() -> None:
    """A few questions at once, a bounded memory, and whoever is remembered is still served."""
    desk = Desk(reviews=3, remembered=10)
    assert (await desk.ask(authorization="Bearer good"))[0] == 200
    desk.server.asked.clear()
    desk.server.hold = asyncio.Event()
    waiting = [asyncio.ensure_future(desk.ask(authorization=f"Bearer bad{n}")) for n in range(100)]
    await asyncio.sleep(0)
    assert (await desk.ask(authorization="Bearer good"))[0] == 200
    assert len(desk.server.asked) == 3
    desk.server.hold.set()
    statuses = [status for status, _ in await asyncio.gather(*waiting)]
    assert (statuses.count(401), statuses.count(503)) == (3, 97)
    for number in range(100):
        await desk.ask(authorization=f"Bearer other{number}")
    assert len(desk.seam._known) == 10
