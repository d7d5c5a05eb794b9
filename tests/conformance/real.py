"""A real API server: etcd and kube-apiserver, started for the session.

Covers: ``KUBEBUILDER_ASSETS``, start, definition of the custom kind, stop.
Does not cover: controllers; none run, so nothing but the tests writes.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from koordlet.kube import adapter, credentials
from koordlet.kubeapi import kinds, objects, refusals
from tests.kit.apiserver import server

#: Skipped on CI as well: no package that its set-up may install has a kube-apiserver.
WHY_NOT = (
    "conformance: not run against a real API server"
    " (KUBEBUILDER_ASSETS names no directory with etcd and kube-apiserver)"
)

#: Both programs on a busy machine.
START_SECONDS = 180.0

_TOKEN = "conformance"
#: Bears the name of the agents' account, and so has the rights that its role gives.
AGENT_TOKEN = "agent"
_AGENT = "system:serviceaccount:koordlet-system:koordlet"

#: The custom kind of the suite: anything is allowed in it, and it is selected by its node.
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": str(kinds.RESERVATIONS)},
    "spec": {
        "group": kinds.RESERVATIONS.group,
        "scope": "Cluster",
        "names": {
            "plural": kinds.RESERVATIONS.plural,
            "singular": "reservation",
            "kind": kinds.RESERVATIONS.name,
            "listKind": "ReservationList",
        },
        "versions": [
            {
                "name": kinds.RESERVATIONS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".status.nodeName"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                                "properties": {"nodeName": {"type": "string"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def assets() -> Path | None:
    """The directory of the programs, where there is one."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if not named:
        return None
    folder = Path(named)
    return (
        folder
        if all((folder / program).exists() for program in ("etcd", "kube-apiserver"))
        else None
    )


@contextmanager
def running(
    folder: Path, state: Path, definitions: Sequence[Mapping[str, Any]] = (DEFINITION,)
) -> Iterator[Path]:
    """An API server with these custom kinds, Reservation among them; the kubeconfig for it."""
    ports = free_ports(3)
    etcd = _start(state / "etcd.log", _etcd(folder, state, ports))
    try:
        apiserver = _start(state / "apiserver.log", _apiserver(folder, state, ports))
        try:
            config = _kubeconfig(state, ports[2])
            try:
                asyncio.run(_define(config, definitions))
            except refusals.ObjectsError as error:
                log = (state / "apiserver.log").read_text(errors="replace")[-3000:]
                msg = f"the API server did not start: {error}\n{log}"
                raise AssertionError(msg) from error
            yield config
        finally:
            _stop(apiserver)
    finally:
        _stop(etcd)


def _etcd(folder: Path, state: Path, ports: list[int]) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in ports[:2])
    return [
        str(folder / "etcd"),
        *("--data-dir", str(state / "etcd"), "--unsafe-no-fsync"),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--initial-cluster", f"default={peer}"),
    ]


def _apiserver(folder: Path, state: Path, ports: list[int]) -> list[str]:
    key = state / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    tokens = state / "tokens.csv"
    tokens.write_text(f'{_TOKEN},tester,1,"system:masters"\n{AGENT_TOKEN},{_AGENT},2\n')
    return [
        str(folder / "kube-apiserver"),
        *("--etcd-servers", f"http://127.0.0.1:{ports[0]}", "--cert-dir", str(state / "certs")),
        *("--bind-address", "127.0.0.1", "--secure-port", str(ports[2])),
        *("--advertise-address", "127.0.0.1", "--service-cluster-ip-range", "10.0.0.0/24"),
        *("--service-account-issuer", "https://127.0.0.1", "--token-auth-file", str(tokens)),
        *("--service-account-key-file", str(key), "--service-account-signing-key-file", str(key)),
        # Pods need no service account here: nothing would make one.
        *("--disable-admission-plugins", "ServiceAccount", "--authorization-mode", "RBAC"),
    ]


def _kubeconfig(state: Path, port: int) -> Path:
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    config = server.kubeconfig(cluster, {"token": _TOKEN})
    path = state / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


async def _define(config: Path, definitions: Sequence[Mapping[str, Any]]) -> None:
    """Wait for the server, and define the custom kinds."""
    client = adapter.KubeStore(
        credentials.Credentials(credentials.CredentialSource(kubeconfig=str(config)))
    )
    loop = asyncio.get_running_loop()
    end = loop.time() + START_SECONDS

    async def until(kind: kinds.Kind) -> None:
        while True:
            try:
                await objects.collect(client.list(kind))
            except refusals.ObjectsError:
                if loop.time() > end:
                    raise
                await asyncio.sleep(0.2)
            else:
                return

    try:
        await until(kinds.NAMESPACES)
        for definition in definitions:
            await client.create(kinds.CUSTOM_RESOURCES, definition)
        await until(kinds.RESERVATIONS)
    finally:
        await client.close()


def _start(log: Path, command: list[str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_ports(number: int) -> list[int]:
    """So many ports that nobody listens at now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports: list[int] = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports
