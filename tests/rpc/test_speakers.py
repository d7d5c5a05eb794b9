"""Who may speak for a node: certificates that name it, tokens of pods on it, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import grpc
import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.rpc import speakers
from tests.kit import loops
from tests.rpc.test_ingest import METHOD, Scheduler, hello

AUDIENCE = "koordlet-scheduler"
AGENT = "system:serviceaccount:koordlet-system:koordlet"
POD = {"metadata": {"name": "koordlet-x", "uid": "u1"}, "spec": {"nodeName": "n1"}}


class Call:
    """What a call says of its caller."""

    def __init__(self, name: str = "", token: str = "", *, tls: bool = True) -> None:
        self._auth: dict[str, tuple[bytes, ...]] = {
            "transport_security_type": (b"ssl",) if tls else (b"local",),
            "x509_subject_alternative_name": (name.encode(),),
        }
        self._metadata = (("authorization", token),) if token else ()

    def auth_context(self) -> Mapping[str, tuple[bytes, ...]]:
        """The certificate."""
        return self._auth

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """The token."""
        return self._metadata


class ApiServer:
    """Reviews one token, and has one pod."""

    def __init__(self, **extra: list[str]) -> None:
        self.extra = {f"authentication.kubernetes.io/{k.replace('_', '-')}": v
                      for k, v in extra.items()}  # fmt: skip
        self.audiences: list[str] | None = [AUDIENCE]
        self.user = AGENT
        self.asked: list[Any] = []
        self.open = self.most = 0
        self.error: refusals.ObjectsError | None = None

    async def create(self, kind: kinds.Kind, body: objects.Object) -> objects.Object:
        """A review."""
        assert kind == kinds.TOKEN_REVIEWS
        self.asked.append(body["spec"])
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        if self.error is not None:
            raise self.error
        if body["spec"]["token"] != "good":
            return {**body, "status": {"error": "unknown"}}
        status: dict[str, Any] = {"authenticated": True,
                                  "user": {"username": self.user, "extra": self.extra}}  # fmt: skip
        if self.audiences is not None:
            status["audiences"] = self.audiences
        return {**body, "status": status}

    async def get(self, ref: objects.Ref) -> objects.Object:
        """The pod."""
        if (ref.namespace, ref.name) != ("koordlet-system", "koordlet-x"):
            raise refusals.NotFound("no such pod")
        return POD


def why(server: ApiServer, call: Any, node: str = "n1") -> str:
    """The answer."""
    return asyncio.run(tokens(server)(call, node))


def tokens(server: ApiServer, **options: Any) -> speakers.TokenSpeakers:
    """For agents of one account, in one trust domain."""
    names = speakers.Names("cluster")
    return speakers.TokenSpeakers(
        server, AUDIENCE, ["koordlet-system/koordlet"], names=names, **options
    )


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("n1", True),
        ("spiffe://cluster/node/n1", True),
        ("n2", False),
        ("agents.example", False),
        ("x/node/n1", False),
        ("spiffe://cluster/node/n11", False),
        ("spiffe://elsewhere/node/n1", False),
        ("spiffe://cluster/ns/shop/node/n1", False),
        ("spiffe://cluster.elsewhere/node/n1", False),
        ("https://cluster/node/n1", False),
        ("spiffe://cluster/node/", False),
    ],
)
def test_certificates(name: str, *, allowed: bool) -> None:
    """A DNS name that is the node, or its URI in the trust domain; and nobody is asked."""
    server = ApiServer()

    assert allowed is (not why(server, Call(name)))
    assert server.asked == []


def test_without_a_trust_domain_no_uri_counts() -> None:
    """Whoever the authority signs for may choose how a URI ends; a DNS name still counts."""
    for name in ("spiffe://cluster/node/n1", "spiffe:///node/n1"):
        refused = asyncio.run(speakers.NAMED(Call(name), "n1"))  # type: ignore[arg-type]
        assert "not of node n1: it contains none of ['n1']" in refused
    assert not asyncio.run(speakers.NAMED(Call("n1"), "n1"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "user",
    [
        "system:serviceaccount:shop:web",
        "system:serviceaccount:shop:koordlet",
        "system:serviceaccount:koordlet-system:other",
        "koordlet-system/koordlet",
        "koordlet-system:koordlet",
    ],
)
def test_a_token_of_somebody_else(user: str) -> None:
    """Any pod may ask for a token with our audience; only those of the agents' account count."""
    server = ApiServer(node_name=["n1"])
    server.user = user

    assert f"the token belongs to {user}, which is not an agent" == why(
        server, Call("agents.example", "Bearer good")
    )


def test_the_socket_is_for_its_owner() -> None:
    """Whoever came through it speaks for any node."""
    assert not why(ApiServer(), Call(tls=False))


def test_a_token_that_names_the_node() -> None:
    """It speaks for that node alone, and was made for us."""
    server = ApiServer(node_name=["n1"])
    call = Call("agents.example", "Bearer good")

    assert not why(server, call)
    assert "belongs to node n1, not n2" in why(server, call, "n2")
    assert server.asked[0] == {"token": "good", "audiences": [AUDIENCE]}
    assert "rejected the token" in why(server, Call("agents.example", "Bearer bad"))
    for audiences in (None, [], ["https://kubernetes.default.svc"]):
        server.audiences = audiences
        assert "rejected the token" in why(server, call)


def test_a_token_that_names_its_pod() -> None:
    """Of an older API server: the pod is looked up, and must be the same one."""
    call = Call("agents.example", "Bearer good")

    assert not why(ApiServer(pod_name=["koordlet-x"], pod_uid=["u1"]), call)
    assert why(ApiServer(pod_name=["koordlet-x"], pod_uid=["u1"]), call, "n2")
    for extra in ({}, {"pod_name": ["koordlet-x"], "pod_uid": ["u2"]},
                  {"pod_name": ["gone"], "pod_uid": ["u1"]}):  # fmt: skip
        assert "rejected the token" in why(ApiServer(**extra), call)
    person = ApiServer(pod_name=["koordlet-x"], pod_uid=["u1"])
    person.user = ""
    assert "rejected the token" in why(person, call)


def test_questions_are_bounded() -> None:
    """All agents at once ask the API server a few at a time, and each gets its answer."""
    server = ApiServer(node_name=["n1"])

    async def ask() -> list[str]:
        it = tokens(server, reviews=3)
        call = Call("agents.example", "Bearer good")
        return await asyncio.gather(*(it(call, "n1") for _ in range(20)))  # type: ignore[arg-type]

    assert asyncio.run(ask()) == [""] * 20
    assert server.most == 3


async def _ended(it: Scheduler) -> grpc.StatusCode:
    async with grpc.aio.insecure_channel(f"unix:{it.path}") as channel:
        stream: Any = channel.stream_stream(METHOD)()
        await stream.write(hello("n1").SerializeToString())
        code: grpc.StatusCode = await stream.code()
        return code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"decides": lambda: False}, grpc.StatusCode.UNAVAILABLE),
        ({"speaks": "away"}, grpc.StatusCode.UNAVAILABLE),
        ({"speaks": "no"}, grpc.StatusCode.PERMISSION_DENIED),
    ],
)
def test_what_an_agent_is_told(
    loop: loops.LoopThread, ram: Any, options: dict[str, Any], code: grpc.StatusCode
) -> None:
    """Another replica, an API server that is away: come back. Not its node: no."""

    async def no(_context: object, _node: str) -> str:
        if options["speaks"] == "away":
            raise refusals.Unavailable("away")
        return "not yours"

    async def run() -> None:
        spoken = {**options, "speaks": no} if "speaks" in options else options
        it = Scheduler(ram / "run" / "s.sock", **spoken)
        await it.server.start()
        assert code is await asyncio.wait_for(_ended(it), 20)
        await it.server.stop()

    loop.run(run())
