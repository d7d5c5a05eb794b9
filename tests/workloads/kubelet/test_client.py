"""A kubelet that is ill costs one answer, within its deadline, and is named."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.workloads.kubelet import client
from tests.kit.apiserver import pki
from tests.kit.kubelet import server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> pki.Authority:
    """Who signs kubelets here."""
    return pki.Authority(tmp_path_factory.mktemp("pki"))


@asynccontextmanager
async def opened(
    authority: pki.Authority, tmp_path: Path
) -> AsyncGenerator[tuple[server.Kubelet, client.KubeletEndpoint]]:
    """A kubelet, and where a client finds it."""
    kubelet = server.Kubelet(authority.serving())
    await kubelet.start()
    token = tmp_path / "token"
    token.write_text("secret\n")
    where = client.KubeletEndpoint(
        host="127.0.0.1", port=kubelet.port, ca=str(authority.certificate), token=str(token)
    )
    try:
        yield kubelet, where
    finally:
        await kubelet.stop()


async def test_an_answer(authority: pki.Authority, tmp_path: Path) -> None:
    """The body, with the token shown and the certificate checked."""
    async with opened(authority, tmp_path) as (kubelet, where):
        body = await client.KubeletClient(where).get("/pods")

        assert (kubelet.folder / "pods.json").read_bytes() == body


async def test_how_long_answers_took(authority: pki.Authority, tmp_path: Path) -> None:
    """By path and status, whatever came of it; what was no answer is counted as such."""
    async with opened(authority, tmp_path) as (kubelet, where):
        clock = itertools.count(0.0, 0.5)
        asker = client.KubeletClient(where, clock.__next__)
        await asker.get("/pods")
        await asker.get("/pods")
        with pytest.raises(client.Unreachable, match="404"):
            await asker.get("/nowhere")
        await kubelet.stop()
        with pytest.raises(client.Unreachable):
            await asker.get("/pods")

        assert {key: spread.counts[-1] for key, spread in asker.took.items()} == {
            ("/pods", "200"): 2,
            ("/nowhere", "404"): 1,
            ("/pods", "<error>"): 1,
        }
        assert asker.took["/pods", "200"].total == 1.0


async def test_a_token_that_rotates(authority: pki.Authority, tmp_path: Path) -> None:
    """The new one is shown with the next request."""
    async with opened(authority, tmp_path) as (kubelet, where):
        asker = client.KubeletClient(where)
        await asker.get("/pods")
        kubelet.token = "rotated"
        with pytest.raises(client.Unreachable, match="returned 401"):
            await asker.get("/pods")
        (tmp_path / "token").write_text("rotated")

        assert await asker.get("/pods")


@pytest.mark.parametrize(
    ("manner", "why"),
    [
        (server.Manner.HANG, "no answer within"),
        (server.Manner.DRIP, "no answer within"),
        (server.Manner.HTML, "text/html"),
        (server.Manner.CUT, "connection was closed|ended|garbled|incomplete"),
        (server.Manner.HUGE, "exceeds 4 MiB"),
        (server.Manner.FLOOD, "exceeds 4 MiB"),
        (server.Manner.NOISE, "connection was closed"),
    ],
)
async def test_an_ill_kubelet(
    authority: pki.Authority, tmp_path: Path, manner: server.Manner, why: str
) -> None:
    """What is wrong, and with whom; never more than the limits."""
    async with opened(authority, tmp_path) as (kubelet, where):
        kubelet.manner = manner
        seconds = 0.2 if manner in (server.Manner.HANG, server.Manner.DRIP) else 20.0
        asker = client.KubeletClient(replace(where, seconds=seconds, max_bytes=4 << 20))
        with pytest.raises(client.Unreachable, match=why) as caught:
            await asker.get("/pods")
        assert f"https://127.0.0.1:{kubelet.port}/pods" in caught.value.culprit
        kubelet.manner = server.Manner.WELL

        assert await asker.get("/configz")


async def test_another_authority_is_not_believed(authority: pki.Authority, tmp_path: Path) -> None:
    """Unless it is told to believe anybody; a CA that is replaced counts at once."""
    async with opened(authority, tmp_path) as (_, where):
        other = pki.Authority(tmp_path, "other")
        ca = tmp_path / "used.crt"
        ca.write_bytes(other.certificate.read_bytes())
        asker = client.KubeletClient(replace(where, ca=str(ca)))
        with pytest.raises(client.Unreachable, match="TLS verification failed"):
            await asker.get("/pods")

        assert await client.KubeletClient(replace(where, ca=str(ca), verify=False)).get("/pods")
        ca.unlink()
        with pytest.raises(client.Unreachable, match=r"used\.crt"):
            await asker.get("/pods")
        ca.write_bytes(authority.certificate.read_bytes())
        assert await asker.get("/pods")


def own_certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """A server with the certificate that a kubelet makes for itself, and the file with it.

    Two certificates: the leaf for the name of the host, and the authority that signed it and
    nothing else (client-go's ``GenerateSelfSignedCertKey``).
    """
    authority = pki.Authority(folder, f"{name}-ca")
    certificate, key = authority.sign_for(name, f"DNS:{name}")
    file = folder / "kubelet.crt"
    file.write_bytes(certificate.read_bytes() + authority.certificate.read_bytes())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key)
    return context, file


@pytest.mark.parametrize("name", ["node-1", "host-1"])
async def test_a_certificate_that_the_kubelet_made_for_itself(
    authority: pki.Authority, tmp_path: Path, name: str
) -> None:
    """Its own file is believed beside the CA, for the node's or the host's name; made anew, too."""
    async with opened(authority, tmp_path) as (_, where):
        tls, file = own_certificate(tmp_path, name)
        kubelet = server.Kubelet(tls)
        await kubelet.start()
        names = ("127.0.0.1", "node-1", "host-1")
        mine = replace(where, port=kubelet.port, own=str(file), names=names)
        try:
            asker = client.KubeletClient(mine)
            assert all(await asyncio.gather(*(asker.get("/pods") for _ in range(3))))
            assert kubelet.seen == ["/pods"] * 3
            kept = file.read_bytes()
            file.unlink()
            with pytest.raises(client.Unreachable, match="TLS verification failed"):
                await asker.get("/pods")
            file.write_bytes(kept)
            assert await asker.get("/pods")
        finally:
            await kubelet.stop()


async def test_a_certificate_of_nobody_known(authority: pki.Authority, tmp_path: Path) -> None:
    """Both settings that help are named, and what was believed and tried; a broken file is none."""
    async with opened(authority, tmp_path) as (_, where):
        tls, file = own_certificate(tmp_path, "elsewhere")
        kubelet = server.Kubelet(tls)
        await kubelet.start()
        mine = replace(where, port=kubelet.port, own=str(file), names=("127.0.0.1", "node-1"))
        try:
            for text in (file.read_text(), "-----BEGIN CERTIFICATE-----\n"):
                file.write_text(text)
                with pytest.raises(client.Unreachable, match="TLS verification failed") as caught:
                    await client.KubeletClient(mine).get("/pods")
                for word in ("kubelet.caFile", "kubelet.serverName", str(file), where.ca, "node-1"):
                    assert word in caught.value.fix
            assert kubelet.seen == []
        finally:
            await kubelet.stop()


def test_nobody_there(tmp_path: Path) -> None:
    """And a token file without a token."""
    empty = tmp_path / "token"
    empty.write_text("\n")
    closed = client.KubeletEndpoint(host="127.0.0.1", port=1, secure=False)
    with pytest.raises(client.Unreachable, match=":1/pods"):
        asyncio.run(client.KubeletClient(closed).get("/pods"))
    with pytest.raises(client.Unreachable, match="contains no token"):
        asyncio.run(
            client.KubeletClient(client.KubeletEndpoint(host="h", port=1, token=str(empty))).get(
                "/pods"
            )
        )
