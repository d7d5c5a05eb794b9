"""The feed and reports over TCP: mutual TLS, names with rights, rotation without a restart."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet import client
from koordlet.model import errors, nodereport
from koordlet.rpc import access, ingest, node_feed, permissions, reporting, server, services, tls
from tests.kit import deadline, loops, views
from tests.kit.apiserver import pki

Trio = tuple[Path, Path, Path]


class Hall:
    """An authority, certificates by name, and listeners."""

    def __init__(self, folder: Path, loop: loops.LoopThread) -> None:
        self.folder = folder
        self.loop = loop
        self.authority = pki.Authority(folder)
        self.running: list[server.RpcServer] = []

    def certificate(self, name: str, *names: str, by: pki.Authority | None = None) -> Trio:
        """A certificate with these subject alternative names."""
        alternatives = ",".join(names or (f"DNS:{name}",))
        made = (by or self.authority).sign_for(name, alternatives)
        return (*made, self.authority.certificate)

    def listen(self, offered: services.RpcService, **rights: permissions.Right) -> server.RpcServer:
        """A server on loopback; keywords are client names, dots as double underscores."""
        certificate, key, authority = self.certificate("server", "IP:127.0.0.1")
        it = server.RpcServer(
            self.folder / "run" / f"{len(self.running)}.sock",
            (offered,),
            remote=server.RemoteListener(
                address="127.0.0.1:0",
                files=tls.TlsFiles(certificate=certificate, key=key, authority=authority),
                rules=[
                    access.AccessRule(name=name.replace("__", "."), rights=frozenset({right}))
                    for name, right in rights.items()
                ],
            ),
        )
        self.loop.run(it.start())
        self.running.append(it)
        return it


@pytest.fixture
def hall(ram: Path, loop: loops.LoopThread) -> Iterator[Hall]:
    """Everything; what listens is stopped."""
    made = Hall(ram, loop)
    yield made
    for started in made.running:
        loop.run(started.stop())


def feed(hall: Hall) -> node_feed.NodeFeed:
    """A feed that has published."""
    made = node_feed.NodeFeed("1")
    hall.loop.call(lambda: made.publish(views.view()))
    return made


def ask(port: int | None, certificates: Trio | None) -> str:
    """The name of the node."""
    with client.connect(f"127.0.0.1:{port}", certificates) as node:
        return str(node.get(timeout=10).summary.name)


def test_names_have_rights(hall: Hall) -> None:
    """A name of the list reads; another name, another right, another authority do not."""
    right = permissions.Right
    it = hall.listen(feed(hall), console=right.READ, reporter=right.REPORT, chief=right.ADMIN)

    assert ask(it.port, hall.certificate("console")) == "n1"
    assert ask(it.port, hall.certificate("chief")) == "n1"
    for name in ("reporter", "stranger"):
        with pytest.raises(client.RefusedError, match=f"{name} lacks the right to read"):
            ask(it.port, hall.certificate(name))
    other = pki.Authority(hall.folder, "other")
    certificate, key, _ = hall.certificate("console2", "DNS:console", by=other)
    with pytest.raises(client.NoAnswerError):
        ask(it.port, (certificate, key, hall.authority.certificate))
    with pytest.raises(client.NoAnswerError):
        ask(it.port, None)
    assert it.counts["refused"] == 2


def test_a_rotated_certificate_is_used(hall: Hall) -> None:
    """New files serve the next connection; half a rotation leaves the old ones in force."""
    it = hall.listen(feed(hall), console=permissions.Right.READ)
    me = hall.certificate("console")
    before = _serial(it.port)
    certificate, key = hall.folder / "server.crt", hall.folder / "server.key"
    kept = certificate.read_bytes()
    certificate.unlink()
    assert ask(it.port, me) == "n1", "half a rotation"
    certificate.write_bytes(kept)
    hall.certificate("server", "IP:127.0.0.1")

    assert key.exists()
    assert ask(it.port, me) == "n1"
    assert before != _serial(it.port)


def _serial(port: int | None) -> bytes:
    """Of the certificate that is shown."""
    shown = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}"],
        input=b"",
        capture_output=True,
        check=False,
        timeout=30,
    ).stdout
    assert b"BEGIN CERTIFICATE" in shown
    return shown[shown.index(b"-----BEGIN") : shown.index(b"-----END")]


def test_an_agent_reports_for_its_own_node(hall: Hall) -> None:
    """Its certificate names the node; with another one it is refused, and says why."""
    reports: list[nodereport.NodeReport] = []
    it = hall.listen(ingest.Ingest(reports.append), n1=permissions.Right.REPORT,
                     n2=permissions.Right.REPORT)  # fmt: skip

    async def problem(name: str, *names: str) -> str:
        files = tls.TlsFiles(*hall.certificate(name, *names))
        pace = reporting.ReportPace(first_seconds=0.01, most_seconds=0.05)
        reporter = reporting.Reporting(f"127.0.0.1:{it.port}", "1", files=files, pace=pace)
        reporter.publish(views.view())
        reporter.start()
        try:
            await deadline.comes(lambda: reports or "PERMISSION" in reporter.problem, seconds=20)
            return reporter.problem
        finally:
            await reporter.stop()

    assert "not of node n1" in hall.loop.run(problem("n2"))
    assert reports == []
    assert hall.loop.run(problem("n1")) == ""
    assert reports[0].node == "n1"


def test_files_that_are_not_there(ram: Path) -> None:
    """One error that names the file."""
    files = tls.TlsFiles(certificate=ram / "a", key=ram / "b", authority=ram / "c")

    with pytest.raises(errors.HostError, match="cannot load the certificate") as caught:
        tls.server_credentials(files)
    assert str(ram / "a") in caught.value.culprit
