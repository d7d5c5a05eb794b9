"""The kubelet's socket of a DRA driver: registration, preparing and unpreparing of claims.

Covers: ``pluginregistration.Registration``, ``DRAPlugin`` v1 and v1beta1, and the stream of the
devices' health, on one Unix socket in the kubelet's plugin directory.
Does not cover: what preparing means (``agent.dra_driver``).

Rules:
1. One socket serves both: a plugin without an endpoint of its own is called where it registered.
   The kubelet, whose directories may be elsewhere for us, needs no path of ours.
2. The kubelet finds the socket by itself, also when it starts later, and asks again whenever it
   has restarted.
3. Each claim of a request has an answer, good or bad; one that fails costs itself. All of them
   wait at the same time: the kubelet has one deadline for the request.
4. A kubelet calls the first version of the list that it knows; the messages of all are the same. So
   it is with the health of devices, which kubelets before 1.37 ask for without looking there.
5. Health is sent in full every 10 seconds: a kubelet forgets it after 30.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import grpc
import grpc.aio

from koordlet import log
from koordlet.model import errors, prepared_claim
from koordlet.model.record import dataclass
from koordlet.rpc import services, unix_socket
from koordlet.rpc.gen import dra_health_pb2, dra_pb2, pluginregistration_pb2

_REGISTRATION = "pluginregistration.Registration"
_PLUGIN = "k8s.io.kubelet.pkg.apis.dra"
_TYPE, _VERSIONS = "DRAPlugin", ("v1.DRAPlugin", "v1beta1.DRAPlugin")
_HEALTH = ("v1beta1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
#: Seconds that running calls have when the socket is closed.
_PATIENCE = 2.0
#: Seconds between two reports of health (rule 5).
_HEALTH_SECONDS = 10.0
_SETTING = "kubelet.directory"


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """One claim as the kubelet names it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class PluginBackend(Protocol):
    """What the socket asks. ``KoordletError`` says why a claim fails."""

    async def prepare(self, ref: ClaimRef) -> Sequence[prepared_claim.Share]:
        """Prepare a claim, and give its shares; the same again where it is prepared."""

    async def unprepare(self, ref: ClaimRef) -> None:
        """Give back what a claim has; nothing where it has nothing."""

    def registered(self, problem: str) -> None:
        """The kubelet has taken the driver, or says why it has not."""

    def health(self) -> Mapping[str, str]:
        """Map each device to what is wrong with it; empty where nothing is."""


class DraPlugin:
    """The socket of one driver."""

    def __init__(self, directory: Path, name: str, pool: str, driver: PluginBackend) -> None:
        self.name = name
        self._pool = pool
        self._path = directory / f"{name}-reg.sock"
        self._driver = driver
        self._server: grpc.aio.Server | None = None
        self._stopping = asyncio.Event()
        #: Of the socket that was made.
        self._inode: tuple[int, int] | None = None

    async def start(self) -> None:
        """Listen; ``HostError`` where it cannot."""
        services.ensure_threads()
        if not self._path.parent.is_dir():
            raise errors.HostError(
                "the kubelet's directory of plugins does not exist",
                culprit=str(self._path.parent),
                fix="mount it into the agent's container, writable, or set kubelet.directory",
            )
        unix_socket.prepare(self._path, _SETTING)
        server = grpc.aio.server()
        for service, methods in self._services():
            handlers = grpc.method_handlers_generic_handler(service, methods)
            server.add_generic_rpc_handlers((handlers,))
        try:
            with unix_socket.private():
                server.add_insecure_port(f"unix:{self._path}")
            await server.start()
        except RuntimeError as error:
            await server.stop(None)
            fix = "mount the directory into the agent's container, writable"
            raise errors.HostError("cannot listen", culprit=str(self._path), fix=fix) from error
        self._server, self._inode = server, _inode(self._path)

    def listening(self) -> bool:
        """Whether the kubelet can find the socket: its path is still the one that was made."""
        return self._server is not None and _inode(self._path) == self._inode

    async def stop(self) -> None:
        """Let running calls end, then close: the kubelet forgets the driver."""
        if self._server is not None:
            self._stopping.set()
            server, self._server = self._server, None
            ours = _inode(self._path) == self._inode
            await server.stop(_PATIENCE)
            if ours:
                with contextlib.suppress(OSError):
                    self._path.unlink(missing_ok=True)

    def _services(self) -> Iterable[tuple[str, dict[str, services.Handler]]]:
        yield (
            _REGISTRATION,
            {
                "GetInfo": services.unary(pluginregistration_pb2.InfoRequest, self._info),
                "NotifyRegistrationStatus": services.unary(
                    pluginregistration_pb2.RegistrationStatus, self._notified
                ),
            },
        )
        calls = {
            "NodePrepareResources": services.unary(
                dra_pb2.NodePrepareResourcesRequest, self._prepare
            ),
            "NodeUnprepareResources": services.unary(
                dra_pb2.NodeUnprepareResourcesRequest, self._unprepare
            ),
        }
        for version in _VERSIONS:
            yield f"{_PLUGIN}.{version}", calls
        watch = services.streamed(dra_health_pb2.NodeWatchResourcesRequest, self._watch)
        for version in _HEALTH:
            yield version, {"NodeWatchResources": watch}

    async def _info(
        self, _request: pluginregistration_pb2.InfoRequest
    ) -> pluginregistration_pb2.PluginInfo:
        return pluginregistration_pb2.PluginInfo(
            type=_TYPE, name=self.name, supported_versions=(*_VERSIONS, *_HEALTH)
        )

    async def _notified(
        self, status: pluginregistration_pb2.RegistrationStatus
    ) -> pluginregistration_pb2.RegistrationStatusResponse:
        taken = status.plugin_registered
        self._driver.registered("" if taken else status.error or "no reason given")
        return pluginregistration_pb2.RegistrationStatusResponse()

    async def _prepare(
        self, request: dra_pb2.NodePrepareResourcesRequest
    ) -> dra_pb2.NodePrepareResourcesResponse:
        answer = dra_pb2.NodePrepareResourcesResponse()
        for claim, shares, why in await _each(self._driver.prepare, request.claims):
            entry = dra_pb2.NodePrepareResourceResponse(
                devices=map(self._device, shares or ()), error=why
            )
            answer.claims[claim.uid].CopyFrom(entry)
        return answer

    def _device(self, share: prepared_claim.Share) -> dra_pb2.Device:
        # Of ``request/subrequest`` the kubelet knows the first half.
        names = [share.request.partition("/")[0]]
        return dra_pb2.Device(
            request_names=names,
            pool_name=self._pool,
            device_name=share.device,
            share_id=share.share_id or None,
        )

    async def _unprepare(
        self, request: dra_pb2.NodeUnprepareResourcesRequest
    ) -> dra_pb2.NodeUnprepareResourcesResponse:
        answer = dra_pb2.NodeUnprepareResourcesResponse()
        for claim, _, why in await _each(self._driver.unprepare, request.claims):
            entry = dra_pb2.NodeUnprepareResourceResponse(error=why)
            answer.claims[claim.uid].CopyFrom(entry)
        return answer

    async def _watch(
        self, _request: dra_health_pb2.NodeWatchResourcesRequest
    ) -> AsyncIterator[dra_health_pb2.NodeWatchResourcesResponse]:
        while not self._stopping.is_set():
            answer = dra_health_pb2.NodeWatchResourcesResponse()
            for name, why in self._driver.health().items():
                answer.devices.add(
                    device=dra_health_pb2.DeviceIdentifier(pool_name=self._pool, device_name=name),
                    health=dra_health_pb2.UNHEALTHY if why else dra_health_pb2.HEALTHY,
                    last_updated_time=int(time.time()),
                    message=why,
                )
            yield answer
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _HEALTH_SECONDS)


def _inode(path: Path) -> tuple[int, int] | None:
    """The identity of a file; ``None`` where there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


async def _each(
    call: Callable[[ClaimRef], Awaitable[services.AnswerT]], claims: Iterable[dra_pb2.Claim]
) -> Sequence[tuple[dra_pb2.Claim, services.AnswerT | None, str]]:
    """Rule 3: each claim with its answer, and why there is none."""
    return await asyncio.gather(*(_guarded(call, claim) for claim in claims))


async def _guarded(
    call: Callable[[ClaimRef], Awaitable[services.AnswerT]], claim: dra_pb2.Claim
) -> tuple[dra_pb2.Claim, services.AnswerT | None, str]:
    try:
        return claim, await call(ClaimRef(claim.namespace, claim.name, claim.uid)), ""
    except errors.KoordletError as error:
        return claim, None, str(error)
    except Exception as error:  # noqa: BLE001 -- rule 3
        log.get().error("dra_driver.failed", claim=claim.name, exc_info=error)
        return claim, None, f"{type(error).__name__}: {error}"
