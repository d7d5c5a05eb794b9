"""A kubeconfig as kubectl reads it: several files as one, and one context of it.

Covers: merging, contexts, tokens, client certificates, passwords, whom to act as, TLS and proxy of
a cluster.
Does not cover: running a credential plugin (``credential_plugin``), what is done with the settings
(``credentials``).

Rules:
1. The first file that has an entry of a name has it for all, and so has the first that has a
   ``current-context``.
2. Relative paths are relative to the file that they are in.
3. ``…-data`` counts before the file of the same name, and ``tokenFile`` before ``token``:
   as with kubectl, ``token`` counts while that file cannot be read.
4. An error names files, keys and entries, and never quotes a value: it may be a secret.
"""

from __future__ import annotations

import base64
import functools
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from koordlet.kube.server_settings import PemSource, ServerSettings
from koordlet.model import documents
from koordlet.model.record import dataclass

_BESIDE_AS = ("as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """A cluster, context or user, and the file that has it."""

    name: str
    fields: Mapping[str, Any]
    file: Path

    def text(self, key: str) -> str:
        """The text of a key; empty where there is none."""
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            msg = f"{self.name}: {key} is not a text"
            raise ValueError(msg)
        return value

    def path(self, key: str) -> Path | None:
        """The path of a key (rule 2)."""
        spelled = self.text(key)
        return self.file.absolute().parent / spelled if spelled else None

    def pem(self, key: str) -> PemSource:
        """Certificates or a key, from the file itself or from the one that it names (rule 3)."""
        encoded = self.text(f"{key}-data")
        if not encoded:
            return PemSource(path=self.path(key))
        try:
            # Comments may be in any alphabet, which ssl does not take.
            return PemSource(text=base64.b64decode(encoded).decode("ascii", "ignore"))
        except ValueError:  # the error would show a part of it
            msg = f"{self.name}: {key}-data is not PEM in base64"
            raise ValueError(msg) from None


@dataclass(frozen=True, slots=True)
class Context:
    """One context: the settings that it makes, without a plugin, and what they are made of."""

    settings: ServerSettings
    cluster: KubeconfigEntry
    user: KubeconfigEntry


def load(files: Sequence[Path], context: str = "") -> Context:
    """A context; an empty name is the current one."""
    there = [file for file in files if file.exists()]
    if not there:
        msg = "there is no such file"
        raise ValueError(msg)
    contents = [(file, _read(file)) for file in there]
    currents = [content.get("current-context") for _, content in contents]
    name = context or str(next(filter(None, currents), ""))
    if not name:
        msg = "it has no current-context"
        raise ValueError(msg)
    entry = functools.partial(_entry, contents)
    chosen = entry("contexts", name)
    cluster = entry("clusters", chosen.text("cluster"))
    user_name = chosen.text("user")
    user = entry("users", user_name) if user_name else KubeconfigEntry("user", {}, cluster.file)
    return Context(_settings(files, cluster, user), cluster, user)


def _read(file: Path) -> Mapping[str, Any]:
    try:
        contents = documents.load(file.read_text())
    except ValueError:  # the error would show a part of it
        msg = f"{file} is neither JSON nor YAML"
        raise ValueError(msg) from None
    content = (contents[0] if contents else None) or {}
    if not isinstance(content, Mapping):
        msg = f"{file} is no kubeconfig"
        raise ValueError(msg)
    return content


def _entry(
    contents: Sequence[tuple[Path, Mapping[str, Any]]], kind: str, name: str
) -> KubeconfigEntry:
    """The first entry of a name (rule 1)."""
    for file, content in contents:
        for item in content.get(kind) or ():
            if isinstance(item, Mapping) and item.get("name") == name:
                fields = item.get(kind.removesuffix("s")) or {}
                if isinstance(fields, Mapping):
                    return KubeconfigEntry(f"{kind}[{name}]", fields, file)
    msg = f"it has no entry {name[:80]!r} in {kind}"
    raise ValueError(msg)


def _settings(
    files: Sequence[Path], cluster: KubeconfigEntry, user: KubeconfigEntry
) -> ServerSettings:
    token_file = user.path("tokenFile")
    authority = cluster.pem("certificate-authority")
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    named = (token_file, authority.path, certificate.path, key.path)
    return ServerSettings(
        server=cluster.text("server"),
        authorization=_authorization(user, token_file),
        impersonation=tuple(_impersonation(user)),
        authority=authority,
        certificate=certificate,
        key=key,
        verifies=cluster.fields.get("insecure-skip-tls-verify") is not True,
        server_name=cluster.text("tls-server-name"),
        proxy=cluster.text("proxy-url"),
        files=(*files, *(path for path in named if path is not None)),
    )


def _authorization(user: KubeconfigEntry, token_file: Path | None) -> str:
    """The header of who asks, without a plugin."""
    token = user.text("token")
    if token_file is not None:
        try:
            token = token_file.read_text()
        except OSError:
            if not token:
                raise
    if token.strip():
        return f"Bearer {token.strip()}"
    if user.text("username"):
        pair = f"{user.text('username')}:{user.text('password')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return ""


def _impersonation(user: KubeconfigEntry) -> Iterator[tuple[str, str]]:
    """The headers of whom the server is to take us for."""
    name = user.text("as")
    if not name:
        beside = [key for key in _BESIDE_AS if user.fields.get(key)]
        if beside:
            msg = f"{user.name}: {beside[0]} without as"
            raise ValueError(msg)
        return
    yield "impersonate-user", name
    if user.text("as-uid"):
        yield "impersonate-uid", user.text("as-uid")
    groups = user.fields.get("as-groups") or []
    if not _are_texts(groups):
        msg = f"{user.name}: as-groups is no list of texts"
        raise ValueError(msg)
    yield from (("impersonate-group", group) for group in groups)
    extra = user.fields.get("as-user-extra") or {}
    if not isinstance(extra, Mapping) or not all(map(_are_texts, extra.values())):
        msg = f"{user.name}: as-user-extra has no lists of texts"
        raise ValueError(msg)
    for key, values in extra.items():
        # Of a header's name, which has no case, the server takes the small letters.
        spelled = f"impersonate-extra-{urllib.parse.quote(str(key), safe='')}".lower()
        yield from ((spelled, value) for value in values)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
