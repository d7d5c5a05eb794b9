"""Kubeconfigs, read by the Kubernetes project's own package for Python and by us.

Where the two differ we do as kubectl does: a token's file counts before a token beside it, and of
several files the first that has a ``current-context`` says what is current.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client.configuration import Configuration
from kubernetes.config import kube_config

from koordlet.kube import kubeconfig, server_settings

_PEM = base64.b64encode(b"PEM\n").decode()
_CLUSTERS: dict[str, dict[str, Any]] = {
    "plain": {"server": "https://one:6443"},
    "behind a gateway": {"server": "https://one/k8s/clusters/c-1/"},
    "not verified": {"server": "https://10.0.0.1", "insecure-skip-tls-verify": True},
    "another name": {"server": "https://[::1]:6443", "tls-server-name": "kubernetes"},
    "authority within": {"server": "https://one", "certificate-authority-data": _PEM},
    "authority in a file": {"server": "https://one", "certificate-authority": "pem"},
}
_USERS: dict[str, dict[str, Any]] = {
    "nobody": {},
    "token": {"token": "secret"},
    "token in a file": {"tokenFile": "token"},
    "password": {"username": "me", "password": "a:b"},
    "certificate within": {"client-certificate-data": _PEM, "client-key-data": _PEM},
    "certificate in a file": {"client-certificate": "pem", "client-key": "pem"},
}


@pytest.mark.parametrize("user", _USERS)
@pytest.mark.parametrize("cluster", _CLUSTERS)
def test_who_asks_whom_is_the_same(tmp_path: Path, cluster: str, user: str) -> None:
    """Address, authority, name of the certificate, and what shows who asks."""
    (tmp_path / "token").write_text("renewed\n")
    (tmp_path / "pem").write_text("PEM\n")
    body = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": _CLUSTERS[cluster]}],
        "users": [{"name": "me", "user": _USERS[user]}],
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(body))
    theirs = Configuration()
    kube_config.load_kube_config(str(file), client_configuration=theirs)

    ours = kubeconfig.load([file]).settings

    assert ours.server.rstrip("/") == theirs.host.rstrip("/")
    assert ours.verifies == theirs.verify_ssl
    assert ours.server_name == (theirs.tls_server_name or "")
    assert ours.authorization == _authorization(theirs)
    pems = (theirs.ssl_ca_cert, theirs.cert_file, theirs.key_file)
    assert list(map(_content, (ours.authority, ours.certificate, ours.key))) == [
        Path(path).read_text() if path else "" for path in pems
    ]


def _authorization(theirs: Configuration) -> str:
    entries = theirs.auth_settings()
    return str(entries["BearerToken"]["value"]).strip() if "BearerToken" in entries else ""


def _content(pem: server_settings.PemSource) -> str:
    return pem.read() if pem else ""
