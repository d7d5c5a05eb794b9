"""Credentials: every way to come by them, rotation, refusal, and what never blocks the loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import adapter as kube
from koordlet.kube import credentials
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.store import adapter
from tests.kit import clocks, deadline, watches
from tests.kit.apiserver import pki, server

NODE = objects.Ref(kinds.NODES, "n1")


@asynccontextmanager
async def serving(
    path: Path, authority: pki.Authority | None = None
) -> AsyncGenerator[server.Server]:
    """A server with one node."""
    store = adapter.Store(path / "store.db")
    await store.open()
    await store.create(kinds.NODES, {"metadata": {"name": "n1"}})
    made = server.Server(store, tls=None if authority is None else authority.serving())
    await made.start()
    yield made
    await made.stop()
    await store.close()


@asynccontextmanager
async def asking(
    source: credentials.CredentialSource, clock: Callable[[], float] | None = None
) -> AsyncGenerator[kube.KubeStore]:
    """A client with these credentials."""
    who = credentials.Credentials(source, *([clock] if clock is not None else []))
    client = kube.KubeStore(who)
    yield client
    await client.close()


async def name(client: kube.KubeStore) -> str:
    """Whether it works."""
    return objects.text(await client.get(NODE), "name")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> pki.Authority:
    """One CA for all tests."""
    return pki.Authority(tmp_path_factory.mktemp("pki"))


def in_cluster(
    path: Path, at: server.Server, monkeypatch: pytest.MonkeyPatch, ca: Path
) -> credentials.CredentialSource:
    """What a pod finds of its service account."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(at.port))
    (path / "token").write_text("secret\n")
    return credentials.CredentialSource(token=path / "token", ca=ca)


async def test_in_cluster(
    ram: Path, authority: pki.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token of the service account, trimmed, over TLS that we verify."""
    async with serving(ram, authority) as at:
        source = in_cluster(ram, at, monkeypatch, authority.certificate)
        async with asking(source) as client:
            assert await name(client) == "n1"
        assert at.seen[0].headers["authorization"].lower() == "bearer secret"


async def test_a_token_that_rotates(
    ram: Path, authority: pki.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new token in the file is used without a 401; a 401 makes it used at once."""
    async with serving(ram, authority) as at:
        source, clock = in_cluster(ram, at, monkeypatch, authority.certificate), clocks.Clock()
        async with asking(source, clock) as client:
            await name(client)
            replace(ram / "token", "second")
            clock.now += credentials.CHECK_SECONDS + 1
            at.tokens |= {"second", "third"}
            await name(client)
            assert [request.headers["authorization"][7:] for request in at.seen] == [
                "secret",
                "second",
            ]

            replace(ram / "token", "third")
            at.tokens = {"third"}
            assert await name(client) == "n1"
            assert [request.headers["authorization"][7:] for request in at.seen[2:]] == [
                "second",
                "third",
            ]


def replace(path: Path, text: str) -> None:
    """Write a file as the kubelet does: a new one in its place."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


async def test_a_refused_token_is_tried_twice(ram: Path) -> None:
    """Read anew once, then the refusal is the answer."""
    async with serving(ram) as at:
        config = at.kubeconfig(ram / "config", token="wrong")
        async with asking(credentials.CredentialSource(kubeconfig=str(config))) as client:
            with pytest.raises(refusals.Unauthorized):
                await name(client)
        assert len(at.seen) == 2


async def test_client_certificates(ram: Path, authority: pki.Authority) -> None:
    """A kubeconfig with a client certificate needs no token."""
    async with serving(ram, authority) as at:
        certificate, key = map(str, authority.sign("agent"))
        user = {"client-certificate": certificate, "client-key": key}
        config = at.kubeconfig(ram / "config", ca=authority.certificate, **user)
        async with asking(credentials.CredentialSource(kubeconfig=str(config))) as client:
            assert await name(client) == "n1"
        assert "authorization" not in at.seen[0].headers


async def test_a_server_that_we_do_not_trust(ram: Path, authority: pki.Authority) -> None:
    """Another CA is an error that says so, and no request is sent."""
    async with serving(ram, authority) as at:
        other = pki.Authority(ram, "other")
        config = at.kubeconfig(ram / "config", ca=other.certificate)
        async with asking(credentials.CredentialSource(kubeconfig=str(config))) as client:
            with pytest.raises(refusals.Unavailable, match="TLS verification failed"):
                await name(client)
        assert at.seen == []


async def watches_from_now(client: kube.KubeStore) -> None:
    """Whether a watch begins."""
    async with contextlib.aclosing(client.watch(kinds.NODES, "")) as changes:
        await anext(changes)


@pytest.mark.parametrize("works", [name, watches_from_now])
async def test_an_authority_that_was_replaced(
    ram: Path, authority: pki.Authority, works: Callable[[kube.KubeStore], Awaitable[object]]
) -> None:
    """The first request after the change fails, the next one trusts the new CA; watches alike."""
    async with serving(ram, authority) as at:
        trusted = ram / "trusted.crt"
        trusted.write_bytes(pki.Authority(ram, "other").certificate.read_bytes())
        config = at.kubeconfig(ram / "config", ca=trusted)
        async with asking(credentials.CredentialSource(kubeconfig=str(config))) as client:
            with pytest.raises(refusals.Unavailable):
                await works(client)
            trusted.write_bytes(authority.certificate.read_bytes())
            with pytest.raises(refusals.Unavailable):
                await works(client)
            await works(client)


async def test_a_rotation_cuts_nothing(ram: Path, authority: pki.Authority) -> None:
    """A watch goes on over its connection while requests come with the new certificate."""
    async with serving(ram, authority) as at:
        mine = [ram / "my.crt", ram / "my.key"]
        for target, source in zip(mine, authority.sign("first"), strict=True):
            target.write_bytes(source.read_bytes())
        user = {"client-certificate": str(mine[0]), "client-key": str(mine[1])}
        config = at.kubeconfig(ram / "config", ca=authority.certificate, **user)
        clock = clocks.Clock()
        async with asking(credentials.CredentialSource(kubeconfig=str(config)), clock) as client:
            since = (await objects.collect(client.list(kinds.NODES))).revision
            watch = client.watch(kinds.NODES, since)
            change = asyncio.ensure_future(watches.news(watch))
            await deadline.comes(lambda: at.asked("GET", watch=True))
            for target, source in zip(mine, authority.sign("second"), strict=True):
                replace(target, source.read_text())
            clock.now += credentials.CHECK_SECONDS + 1
            await client.patch(NODE, objects.Merge({"metadata": {"labels": {"a": "b"}}}))
            assert (await change).object["metadata"]["labels"] == {"a": "b"}
            await watch.aclose()
        assert len({request.connection for request in at.seen}) == 3


async def test_a_token_file_that_rotates(ram: Path) -> None:
    """``tokenFile`` of a kubeconfig is read again when it changes."""
    async with serving(ram) as at:
        (ram / "token").write_text("secret")
        config, clock = (
            at.kubeconfig(ram / "config", tokenFile=str(ram / "token")),
            clocks.Clock(),
        )
        async with asking(credentials.CredentialSource(kubeconfig=str(config)), clock) as client:
            await name(client)
            replace(ram / "token", "second")
            at.tokens = {"second"}
            clock.now += credentials.CHECK_SECONDS + 1
            assert await name(client) == "n1"
        assert len(at.seen) == 2


def plugin(path: Path, script: str) -> dict[str, Any]:
    """A user whose credentials come from a program."""
    program = path / "plugin"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}


def with_plugin(at: server.Server, path: Path, script: str) -> credentials.CredentialSource:
    """A kubeconfig with such a user."""
    config = at.kubeconfig(path / "config")
    body = json.loads(config.read_text())
    body["users"][0]["user"] = {"exec": plugin(path, script)}
    config.write_text(json.dumps(body))
    return credentials.CredentialSource(kubeconfig=str(config))


_CREDENTIAL = """cat <<END
{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {"token": "secret"}}
END"""


async def test_a_plugin(ram: Path) -> None:
    """Its token is used, and it is not run for every request."""
    async with serving(ram) as at:
        source = with_plugin(at, ram, f"echo >>{ram}/runs\n{_CREDENTIAL}")
        async with asking(source) as client:
            assert await name(client) == "n1"
            assert await name(client) == "n1"
        assert (ram / "runs").read_text() == "\n"


@pytest.mark.parametrize("script", ["exit 3", "echo nonsense", "echo '{}'"])
async def test_a_plugin_that_fails(ram: Path, script: str) -> None:
    """We do not go on as nobody: the error names the kubeconfig."""
    async with serving(ram) as at:
        async with asking(with_plugin(at, ram, script)) as client:
            with pytest.raises(refusals.Unauthorized, match="plugin") as caught:
                await name(client)
            assert caught.value.culprit.endswith("config")
        assert at.seen == []


async def test_a_plugin_that_hangs_does_not_hold_the_loop(ram: Path) -> None:
    """While it runs, everything else in the loop goes on."""
    os.mkfifo(ram / "gate")
    async with serving(ram) as at:
        source = with_plugin(at, ram, f"read word <{ram}/gate\n{_CREDENTIAL}")
        async with asking(source) as client:
            waiting = asyncio.create_task(name(client))
            # Opening blocks until the plugin reads, so the loop runs while the plugin waits.
            await asyncio.to_thread((ram / "gate").write_text, "go\n")
            assert await waiting == "n1"


@pytest.mark.parametrize("text", ["", "{", "[]", "words", '{"current-context": "x"}', "a: [1"])
async def test_a_kubeconfig_that_makes_no_sense(ram: Path, text: str) -> None:
    """One clear error with the file's name, whatever is in it."""
    (ram / "config").write_text(text)
    async with asking(credentials.CredentialSource(kubeconfig=str(ram / "config"))) as client:
        with pytest.raises(refusals.Unauthorized) as caught:
            await name(client)
        assert caught.value.culprit == str(ram / "config")


@pytest.mark.parametrize("missing", ["token", "config"])
async def test_files_that_are_not_there(ram: Path, missing: str) -> None:
    """No service account and no kubeconfig: the error says where it looked."""
    source = (
        credentials.CredentialSource(token=ram / "token", ca=ram / "ca")
        if missing == "token"
        else credentials.CredentialSource(kubeconfig=str(ram / "config"))
    )
    async with asking(source) as client:
        with pytest.raises(refusals.Unauthorized) as caught:
            await name(client)
        assert caught.value.culprit == str(ram / missing)


async def test_through_a_proxy(
    ram: Path, authority: pki.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy connects us, sees nothing of what we say, and its refusal is told."""
    monkeypatch.setenv("NO_PROXY", "")
    asked: list[bytes] = []
    open_to: list[int] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.partition(b"\r\n")[0])
        if not open_to:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            writer.close()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", open_to[0])
        await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer))

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()

    listening = await asyncio.start_server(proxy, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with serving(ram, authority) as at:
        config = at.kubeconfig(ram / "config", ca=authority.certificate)
        content = json.loads(config.read_text())
        content["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{port}"
        config.write_text(json.dumps(content))
        async with asking(credentials.CredentialSource(kubeconfig=str(config))) as client:
            with pytest.raises(refusals.Unavailable, match="403"):
                await name(client)
            open_to.append(at.port)
            assert await name(client) == "n1"
        assert asked[0] == f"CONNECT 127.0.0.1:{at.port} HTTP/1.1".encode()
    listening.close()
