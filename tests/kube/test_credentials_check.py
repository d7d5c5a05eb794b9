"""Credentials that can never work are found before anything starts; nobody is asked for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import credentials
from koordlet.model import errors


def written(path: Path, *, user: Any = None, **cluster: str) -> credentials.CredentialSource:
    """A kubeconfig."""
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
    }
    (path / "config").write_text(json.dumps(body))
    return credentials.CredentialSource(kubeconfig=str(path / "config"))


def refused(source: credentials.CredentialSource) -> errors.ConfigError:
    """Why they cannot be used."""
    with pytest.raises(errors.ConfigError) as caught:
        credentials.check(source)
    return caught.value


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "words", '{"current-context": "x"}', "token: secret: ["]
)
def test_what_is_no_kubeconfig(ram: Path, text: str | None) -> None:
    """Whose fault it is and what to do; the file is not quoted, it may hold a token."""
    if text is not None:
        (ram / "config").write_text(text)
    error = refused(credentials.CredentialSource(kubeconfig=str(ram / "config")))

    assert (str(ram / "config"), 2) == (error.culprit, error.status)
    assert "no usable credentials" in error.message
    assert "kubectl" in error.fix
    assert "secret" not in str(error)


def test_no_service_account(ram: Path) -> None:
    """Where nobody named a file: which one is missing, and what to do."""
    error = refused(credentials.CredentialSource(token=ram / "token", ca=ram / "ca"))

    assert str(ram / "token") == error.culprit
    assert "service account" in error.fix


def test_what_it_names(ram: Path) -> None:
    """Server, certificates, context, token."""
    gone = str(ram / "gone.crt")

    assert "gone.crt" in refused(written(ram, **{"certificate-authority": gone})).message
    assert "'not a url'" in refused(written(ram, server="not a url")).message
    source = credentials.CredentialSource(kubeconfig=written(ram).kubeconfig, context="other")
    assert "other" in refused(source).message
    for token in ("se\ncret", "\ufeffsecret", "se\x7fcret"):
        refusal = refused(written(ram, user={"token": token}))
        assert "the token has several lines, or characters that" in refusal.message
        assert "cret" not in str(refusal)


def test_what_can_be_used(ram: Path) -> None:
    """No server is asked for it, and no plugin is run: both may be away for a while."""
    program = ram / "plugin"
    program.write_text(f"#!/bin/sh\necho >>{ram}/runs\nexit 1\n")
    program.chmod(0o755)
    api = "client.authentication.k8s.io/v1"
    plugin = {"exec": {"apiVersion": api, "command": str(program), "interactiveMode": "Never"}}

    credentials.check(written(ram))
    credentials.check(written(ram, user=plugin))
    assert not (ram / "runs").exists()
