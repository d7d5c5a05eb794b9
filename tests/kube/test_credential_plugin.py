"""Credential plugins: what they are told, what counts of their answer, when they are asked."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from koordlet.http import client
from koordlet.kube import credential_plugin, credentials, kubeconfig
from koordlet.kube.server_settings import ServerSettings
from koordlet.kubeapi import refusals
from koordlet.model import moment
from tests.kit import clocks

_API = "client.authentication.k8s.io/v1"


def context(path: Path, script: str, **plugin: Any) -> kubeconfig.Context:
    """One whose user is a plugin that runs this in a shell."""
    authority = base64.b64encode(b"PEM").decode()
    own = {"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}
    cluster = {"server": "http://api", "certificate-authority-data": authority}
    body = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {**cluster, "extensions": [own]}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"exec": {"apiVersion": _API, **plugin}}}],
    }
    program = path / "plugin"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (path / "config").write_text(json.dumps(body).replace("PLUGIN", str(program)))
    return kubeconfig.load([path / "config"])


def answered(path: Path, **status: str) -> ServerSettings:
    """The settings after this answer."""
    answer = json.dumps({"apiVersion": _API, "kind": "ExecCredential", "status": status})
    (path / "answer").write_text(answer)
    return credential_plugin.ask(context(path, f"cat {path}/answer", command="PLUGIN"), 60)


def test_what_a_plugin_is_told(tmp_path: Path) -> None:
    """Its arguments and variables, and of the cluster where it wants to know."""
    script = f'printf %s "$1 $WHO" >{tmp_path}/words; printf %s "$KUBERNETES_EXEC_INFO" >info'
    asked = context(
        tmp_path,
        f"{script}; exit 1",
        command="PLUGIN",
        args=["get-token"],
        env=[{"name": "WHO", "value": "me"}],
        provideClusterInfo=True,
    )

    with pytest.raises(ValueError, match="failed with status 1"):
        credential_plugin.ask(asked, 60)

    info = json.loads((tmp_path / "info").read_text())
    assert (tmp_path / "words").read_text() == "get-token me"
    assert (info["apiVersion"], info["spec"]["interactive"]) == (_API, False)
    authority = base64.b64encode(b"PEM").decode()
    assert info["spec"]["cluster"] == {
        "server": "http://api",
        "certificate-authority-data": authority,
        "config": {"a": 1},
    }


def test_what_a_plugin_answers(tmp_path: Path) -> None:
    """A token until some time, a certificate with its key, or both."""
    until = "2026-01-01T00:00:00Z"
    token = answered(tmp_path, token="secret", expirationTimestamp=until)
    pair = answered(tmp_path, clientCertificateData="A", clientKeyData="B")

    assert (token.authorization, token.expires) == ("Bearer secret", 1767225600.0)
    assert (pair.authorization, pair.certificate.read(), pair.key.read()) == ("", "A", "B")
    with pytest.raises(ValueError, match="neither token nor certificate"):
        answered(tmp_path)


def test_no_text_of_them_shows_what_is_secret(tmp_path: Path) -> None:
    """Errors of asyncio may name a result."""
    spelled = "sesame"
    settings = answered(tmp_path, token=spelled, clientCertificateData="A", clientKeyData=spelled)
    access = credentials.ServerAccess(client.HttpEndpoint("api", 6443), "", settings.headers)

    assert spelled not in f"{settings} {settings.key} {access}"


def test_a_plugin_that_hangs_is_ended(tmp_path: Path) -> None:
    """The error says how long it had."""
    asked = context(tmp_path, "exec sleep 600", command="PLUGIN")

    with pytest.raises(ValueError, match="took over 0 s"):
        credential_plugin.ask(asked, 0.1)


@pytest.mark.parametrize(("seconds", "lasts"), [(45.0, True), (-1.0, False)])
async def test_a_plugin_that_fails_later(tmp_path: Path, seconds: float, lasts: bool) -> None:
    """What it gave is used until its end."""
    status = {"token": "secret", "expirationTimestamp": moment.spell(time.time() + seconds)}
    answer = json.dumps({"apiVersion": _API, "status": status})
    context(tmp_path, f"mkdir {tmp_path}/ran && echo '{answer}'", command="PLUGIN")
    source = credentials.CredentialSource(kubeconfig=str(tmp_path / "config"))
    clock = clocks.Clock()
    who = credentials.Credentials(source, clock)
    access = await who.access()
    clock.now += credentials.CHECK_SECONDS + 1
    if lasts:
        assert await who.access() is access
    with pytest.raises(refusals.Unauthorized, match="failed with status 1"):
        await (who.reload(access) if lasts else who.access())
    who.close()


def test_nobody_waits_for_a_plugin_at_the_end(tmp_path: Path) -> None:
    """The process ends while the plugin still waits for an answer of its own."""
    os.mkfifo(tmp_path / "gate")
    context(tmp_path, f"echo >{tmp_path}/gate; exec cat {tmp_path}/gate", command="PLUGIN")
    source = f"credentials.CredentialSource(kubeconfig={str(tmp_path / 'config')!r})"
    lines = (
        "import asyncio",
        "from koordlet.kube import credentials",
        "async def body():",
        f"    asking = asyncio.ensure_future(credentials.Credentials({source}).access())",
        f"    await asyncio.to_thread(lambda: open({str(tmp_path / 'gate')!r}).read())",
        "    asking.cancel()",
        "asyncio.run(body())",
    )

    try:
        subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=30)
    finally:
        (tmp_path / "gate").write_text("")


@pytest.mark.parametrize(("seconds", "asked"), [(credentials.CHECK_SECONDS, 2), (3600.0, 1)])
def test_a_plugin_is_asked_again_before_its_answer_runs_out(
    tmp_path: Path, seconds: float, asked: int
) -> None:
    """At the last look before, and not earlier."""
    until = moment.spell(time.time() + seconds)
    status = {"token": "secret", "expirationTimestamp": until}
    answer = json.dumps({"apiVersion": _API, "kind": "ExecCredential", "status": status})
    context(tmp_path, f"echo >>{tmp_path}/runs; echo '{answer}'", command="PLUGIN")
    source = credentials.CredentialSource(kubeconfig=str(tmp_path / "config"))

    async def body() -> None:
        clock = clocks.Clock()
        who = credentials.Credentials(source, clock)
        await who.access()
        clock.now += credentials.CHECK_SECONDS + 1
        await who.access()
        who.close()

    asyncio.run(body())
    assert len((tmp_path / "runs").read_text()) == asked


def test_a_kubeconfig_that_changes_while_its_plugin_runs(tmp_path: Path) -> None:
    """The plugin may log somebody in: the next look reads what it wrote."""
    answer = json.dumps({"apiVersion": _API, "status": {"token": "first"}})
    context(tmp_path, f"cp {tmp_path}/fresh {tmp_path}/config; echo '{answer}'", command="PLUGIN")
    body = json.loads((tmp_path / "config").read_text())
    body["users"][0]["user"] = {"token": "second"}
    (tmp_path / "fresh").write_text(json.dumps(body))
    source = credentials.CredentialSource(kubeconfig=str(tmp_path / "config"))

    async def tokens() -> list[str]:
        clock = clocks.Clock()
        who = credentials.Credentials(source, clock)
        before = await who.access()
        clock.now += credentials.CHECK_SECONDS + 1
        after = await who.access()
        who.close()
        return [access.headers[0][1] for access in (before, after)]

    assert asyncio.run(tokens()) == ["Bearer first", "Bearer second"]


def test_a_plugin_that_is_not_installed(tmp_path: Path) -> None:
    """Its kubeconfig says how to come by it."""
    asked = context(tmp_path, "", command="no-such-plugin", installHint="Install it with magic.")

    with pytest.raises(ValueError, match=r"no-such-plugin: No such file.*Install it with magic\."):
        credential_plugin.ask(asked, 60)


def test_whom_to_act_as_beside_a_plugin(tmp_path: Path) -> None:
    """The plugin says who asks; whom the server is to take that for, the kubeconfig says."""
    answer = json.dumps({"apiVersion": _API, "status": {"token": "secret"}})
    context(tmp_path, f"echo '{answer}'", command="PLUGIN")
    body = json.loads((tmp_path / "config").read_text())
    body["users"][0]["user"]["as"] = "jane"
    (tmp_path / "config").write_text(json.dumps(body))
    source = credentials.CredentialSource(kubeconfig=str(tmp_path / "config"))

    async def headers() -> client.Headers:
        who = credentials.Credentials(source)
        access = await who.access()
        who.close()
        return access.headers

    shown = (("authorization", "Bearer secret"), ("impersonate-user", "jane"))
    assert asyncio.run(headers()) == shown


def test_half_a_certificate(tmp_path: Path) -> None:
    """A token beside it does not make it whole."""
    with pytest.raises(ValueError, match="without the other"):
        answered(tmp_path, token="secret", clientKeyData="B")


@pytest.mark.parametrize(
    ("mode", "why"),
    [("Always", "it wants a terminal"), ("Sometimes", "interactiveMode is none of Never,")],
)
def test_a_mode_that_cannot_be(tmp_path: Path, mode: str, why: str) -> None:
    """It is known before the plugin is run."""
    asked = context(tmp_path, f"touch {tmp_path}/ran", command="PLUGIN", interactiveMode=mode)

    with pytest.raises(ValueError, match=why):
        credential_plugin.named(asked.user)
    with pytest.raises(ValueError, match=why):
        credential_plugin.ask(asked, 60)
    assert not (tmp_path / "ran").exists()


def test_what_is_no_plugin(tmp_path: Path) -> None:
    """One without a command, and what kubectl has forgotten."""
    with pytest.raises(ValueError, match="exec needs command and apiVersion"):
        credential_plugin.named(context(tmp_path, "").user)
    user = kubeconfig.KubeconfigEntry("users[u]", {"auth-provider": {"name": "gcp"}}, tmp_path)
    with pytest.raises(ValueError, match="use an exec plugin"):
        credential_plugin.named(user)
