"""The driver's socket, spoken to as the kubelet does: over gRPC, where it finds it."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from koordlet.model import errors, prepared_claim
from koordlet.rpc import dra_plugin, services
from koordlet.rpc.gen import dra_health_pb2, dra_pb2, pluginregistration_pb2
from tests.kit import prepared_claims
from tests.kit.prepared_claims import cpus

NAME, POOL = "koordlet.cpu", "n1"
PLUGIN = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
OLDER = "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"
HEALTH = "/%s.DRAResourceHealth/NodeWatchResources"
REGISTRATION = "/pluginregistration.Registration"


class Backend:
    """Prepares what it knows."""

    def __init__(self) -> None:
        self.known = {"u1": prepared_claims.claim("a", replace(cpus("0-3", 2), share_id="s1"))}
        self.gone: list[str] = []
        self.told: list[str] = []

    async def prepare(self, ref: dra_plugin.ClaimRef) -> Sequence[prepared_claim.Share]:
        """One is unknown, one breaks us."""
        if ref.uid == "broken":
            raise RuntimeError("a bug")
        if ref.uid not in self.known:
            raise errors.HostError("no such claim", culprit=f"{ref.namespace}/{ref.name}")
        shares: Sequence[prepared_claim.Share] = self.known[ref.uid].shares
        return shares

    async def unprepare(self, ref: dra_plugin.ClaimRef) -> None:
        """Whatever it is."""
        self.gone.append(ref.uid)

    def registered(self, problem: str) -> None:
        """The kubelet's word."""
        self.told.append(problem)

    def health(self) -> Mapping[str, str]:
        """One device is well, one is not."""
        return {"numa-0": "", "numa-1": "claim t/a: 1 of its 2 CPUs could be given"}


async def ask(folder: Path, method: str, request: Any, answer: Any) -> Any:
    """What the socket answers."""
    path = str(folder / f"{NAME}-reg.sock")
    return answer.FromString(await services.ask(path, method, request, 30.0))


def play(
    folder: Path,
    body: Callable[[Backend], Awaitable[None]],
    after: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """With a socket that serves; ``after``: once it does no longer."""

    async def run() -> None:
        backend = Backend()
        plugin = dra_plugin.DraPlugin(folder, NAME, POOL, backend)
        await plugin.start()
        try:
            await body(backend)
        finally:
            await plugin.stop()
        if after is not None:
            await after()

    asyncio.run(run())


def test_a_kubelet_learns_who_serves_what(tmp_path: Path) -> None:
    """Type, name and version; no endpoint, so that the same socket is called; then how it went."""

    async def body(backend: Backend) -> None:
        info = await ask(
            tmp_path,
            f"{REGISTRATION}/GetInfo",
            pluginregistration_pb2.InfoRequest(),
            pluginregistration_pb2.PluginInfo,
        )
        assert (info.type, info.name, info.endpoint) == ("DRAPlugin", NAME, "")
        # Newer kubelets look for the health of devices here; older ones skip what they do not know.
        assert list(info.supported_versions) == [
            *("v1.DRAPlugin", "v1beta1.DRAPlugin"),
            *("v1beta1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"),
        ]
        for status in (
            pluginregistration_pb2.RegistrationStatus(plugin_registered=True),
            pluginregistration_pb2.RegistrationStatus(error="bad version"),
        ):
            await ask(
                tmp_path,
                f"{REGISTRATION}/NotifyRegistrationStatus",
                status,
                pluginregistration_pb2.RegistrationStatusResponse,
            )
        assert backend.told == ["", "bad version"]

    play(tmp_path, body)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_a_kubelet_hears_how_the_devices_are(tmp_path: Path, version: str) -> None:
    """All of them, with what is wrong in words; the stream ends with the driver, not by force."""
    path = tmp_path / f"{NAME}-reg.sock"
    options = [("grpc.default_authority", "localhost")]
    streams: list[Any] = []

    async def body(_: Backend) -> None:
        services.ensure_threads()
        channel: Any = grpc.aio.insecure_channel(f"unix:{path}", options=options)
        stream = channel.unary_stream(HEALTH % version)(b"")
        streams.extend((channel, stream))
        answer = dra_health_pb2.NodeWatchResourcesResponse.FromString(await stream.read())
        seen = {d.device.device_name: (d.health, d.message) for d in answer.devices}
        assert seen == {
            "numa-0": (dra_health_pb2.HEALTHY, ""),
            "numa-1": (dra_health_pb2.UNHEALTHY, "claim t/a: 1 of its 2 CPUs could be given"),
        }
        assert {d.device.pool_name for d in answer.devices} == {POOL}

    async def after() -> None:
        channel, stream = streams
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK
        await channel.close()

    play(tmp_path, body, after)


@pytest.mark.parametrize("version", [PLUGIN, OLDER])
def test_every_claim_has_an_answer(tmp_path: Path, version: str) -> None:
    """Devices, a refusal in words, and a bug: none costs the others."""

    async def body(_: Backend) -> None:
        request = dra_pb2.NodePrepareResourcesRequest()
        for uid in ("u1", "u2", "broken"):
            request.claims.add(namespace="t", name=f"name-{uid}", uid=uid)
        answer = await ask(
            tmp_path,
            f"{version}/NodePrepareResources",
            request,
            dra_pb2.NodePrepareResourcesResponse,
        )
        [device] = answer.claims["u1"].devices
        assert list(device.request_names) == ["cpus"]
        assert (device.pool_name, device.device_name) == (POOL, "numa-0")
        assert (device.HasField("share_id"), device.share_id) == (True, "s1")
        assert not device.cdi_device_ids
        assert {uid: entry.error for uid, entry in answer.claims.items()} == {
            "u1": "",
            "u2": "t/name-u2: no such claim",
            "broken": "RuntimeError: a bug",
        }

    play(tmp_path, body)


def test_unpreparing_answers_for_every_claim(tmp_path: Path) -> None:
    """Also for one that nobody knows: the kubelet would ask for ever."""

    async def body(backend: Backend) -> None:
        request = dra_pb2.NodeUnprepareResourcesRequest()
        request.claims.add(namespace="t", name="a", uid="u1")
        request.claims.add(namespace="t", name="b", uid="u9")
        answer = await ask(
            tmp_path,
            f"{PLUGIN}/NodeUnprepareResources",
            request,
            dra_pb2.NodeUnprepareResourcesResponse,
        )
        assert {uid: entry.error for uid, entry in answer.claims.items()} == {"u1": "", "u9": ""}
        assert backend.gone == ["u1", "u9"]

    play(tmp_path, body)


def test_the_socket_is_roots_alone_and_goes_with_the_driver(tmp_path: Path) -> None:
    """0600, and no file is left for a kubelet to call; that of a killed agent is replaced."""
    path = tmp_path / f"{NAME}-reg.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))

    async def body(_: Backend) -> None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    play(tmp_path, body)
    assert not path.exists()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    """With what to do about it."""

    async def run() -> None:
        await dra_plugin.DraPlugin(tmp_path / "none", NAME, POOL, Backend()).start()

    with pytest.raises(errors.HostError) as caught:
        asyncio.run(run())
    assert str(tmp_path / "none") in str(caught.value)
    assert "mount it" in str(caught.value)
