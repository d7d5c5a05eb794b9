"""Runs the credential plugin that a kubeconfig names, as kubectl does.

Covers: ``exec`` of a user: its environment, one run, its answer (``ExecCredential``).
Does not cover: when to run it again (``credentials``).

A plugin of version ``v1`` without ``interactiveMode`` is taken as one of ``v1beta1``: it may ask
where there is a terminal. kubectl refuses it.

An error says what the plugin did and never what it printed: that may be a secret.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kube.kubeconfig import Context, KubeconfigEntry
from koordlet.kube.server_settings import PemSource, ServerSettings
from koordlet.kubeapi import objects
from koordlet.model import moment

#: Of a cluster, for a plugin that asks for it.
_OF_CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
#: Of ``interactiveMode``; the second where none is named.
_MODES = ("Never", "IfAvailable", "Always")
_EXTENSION = "client.authentication.k8s.io/exec"


def named(user: KubeconfigEntry) -> bool:
    """Whether a plugin speaks for a user; ``ValueError`` for one that can never work."""
    if "auth-provider" in user.fields:
        msg = f"{user.name}: auth-provider is no part of Kubernetes since 1.26: use an exec plugin"
        raise ValueError(msg)
    if "exec" not in user.fields:
        return False
    plugin = objects.part(user.fields, "exec")
    if not plugin.get("command") or not plugin.get("apiVersion"):
        msg = f"{user.name}: exec needs command and apiVersion"
        raise ValueError(msg)
    mode = plugin.get("interactiveMode") or _MODES[1]
    if mode not in _MODES:
        msg = f"{user.name}: interactiveMode is none of {', '.join(_MODES)}"
        raise ValueError(msg)
    if mode == "Always" and not _terminal():
        msg = f"{user.name}: interactiveMode is Always: it wants a terminal, and there is none"
        raise ValueError(msg)
    return True


def ask(context: Context, seconds: float) -> ServerSettings:
    """The settings of a context with what its plugin answers; it has so many seconds."""
    user = context.user
    plugin = objects.part(user.fields, "exec") if named(user) else {}
    command, version = str(plugin.get("command")), str(plugin.get("apiVersion"))
    interactive = plugin.get("interactiveMode") != "Never" and _terminal()
    spec = {"interactive": interactive, **_cluster(plugin, context)}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    added = {str(row.get("name")): str(row.get("value")) for row in objects.parts(plugin, "env")}
    environment = {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    words = [command, *map(str, plugin.get("args") or ())]
    try:
        printed = _run(words, environment, user, seconds, interactive=interactive)
    except OSError as error:
        hint = str(plugin.get("installHint") or "install it, or name its path").strip()
        msg = f"the credential plugin {command}: {error.strerror}: {hint}"
        raise ValueError(msg) from None
    return _answered(context.settings, version, printed)


def _terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _cluster(plugin: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
    """What a plugin is told of the server, where it wants to know."""
    if plugin.get("provideClusterInfo") is not True:
        return {}
    fields = context.cluster.fields
    cluster = {key: fields[key] for key in _OF_CLUSTER if key in fields}
    authority = context.settings.authority
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority.read().encode()).decode()
    for extension in objects.parts(fields, "extensions"):
        if extension.get("name") == _EXTENSION:
            cluster["config"] = extension.get("extension")
    return {"cluster": cluster}


def _run(
    words: Sequence[str],
    environment: Mapping[str, str],
    user: KubeconfigEntry,
    seconds: float,
    *,
    interactive: bool,
) -> bytes:
    """What a plugin prints; at a terminal it may ask."""
    try:
        done = subprocess.run(
            words,
            env=environment,
            cwd=user.file.absolute().parent,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        msg = f"the credential plugin took over {seconds:.0f} s"
        raise ValueError(msg) from None
    if done.returncode:
        msg = f"the credential plugin failed with status {done.returncode}"
        raise ValueError(msg)
    return done.stdout


def _answered(settings: ServerSettings, version: str, printed: bytes) -> ServerSettings:
    try:
        answer = json.loads(printed)
    except ValueError:
        answer = None
    if not isinstance(answer, Mapping) or answer.get("apiVersion") != version:
        msg = f"the credential plugin printed no ExecCredential of {version[:80]}"
        raise ValueError(msg)
    status = objects.part(answer, "status")
    token, certificate, key = (
        str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key):
        msg = "the credential plugin returned a certificate or its key without the other"
        raise ValueError(msg)
    if not token and not certificate:
        msg = "the credential plugin returned neither token nor certificate"
        raise ValueError(msg)
    if certificate:
        settings = dataclasses.replace(
            settings, certificate=PemSource(text=certificate), key=PemSource(text=key)
        )
    stamp = status.get("expirationTimestamp")
    return dataclasses.replace(
        settings,
        authorization=f"Bearer {token}" if token else "",
        expires=moment.parse(stamp) if stamp else None,
    )
