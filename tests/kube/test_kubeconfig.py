"""Kubeconfigs: which entry of which file counts, and whether errors keep secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import kubeconfig


def config(path: Path, name: str, *, current: str = "", **user: str) -> Path:
    """A file with one cluster, context and user of a name."""
    body = {
        "current-context": current,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443/base/"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": user}],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(body))
    return path


def changed(path: Path, kind: str, **fields: Any) -> Path:
    """The same file, where the only entry of a kind has these fields, too."""
    body: Mapping[str, Any] = json.loads(path.read_text())
    body[f"{kind}s"][0][kind].update(fields)
    path.write_text(json.dumps(body))
    return path


def test_several_files_are_one(tmp_path: Path) -> None:
    """The first has the entries of its names for all, and the first says what is current."""
    first = config(tmp_path / "a", "one", token="first")
    again = config(tmp_path / "b", "one", current="two", token="second")
    last = config(tmp_path / "c", "two", current="one", token="third")
    files = [tmp_path / "gone", first, again, last]

    current, named = kubeconfig.load(files).settings, kubeconfig.load(files, "one").settings

    assert (current.authorization, named.authorization) == ("Bearer third", "Bearer first")
    parts = current.parts
    assert (parts.hostname, parts.port, parts.path) == ("two", 6443, "/base")
    assert set(files) <= set(current.files)


def test_paths_are_relative_to_the_file_that_has_them(tmp_path: Path) -> None:
    """Wherever koordlet was started."""
    file = config(tmp_path / "there" / "config", "one", current="one", tokenFile="token")
    changed(file, "cluster", **{"certificate-authority": "ca.crt"})
    (tmp_path / "there" / "token").write_text(" secret\n")

    settings = kubeconfig.load([file]).settings

    assert settings.authorization == "Bearer secret"
    assert settings.authority.path == tmp_path / "there" / "ca.crt"
    assert {tmp_path / "there" / name for name in ("token", "ca.crt")} <= set(settings.files)


def test_what_is_within_the_file_counts_first(tmp_path: Path) -> None:
    """But a token in a file, which somebody renews, before the one within."""
    file = config(tmp_path / "config", "one", current="one", token="old", tokenFile="token")
    data = base64.b64encode(b"PEM").decode()
    changed(file, "user", **{"client-key": "gone.key", "client-key-data": data})
    (tmp_path / "token").write_text("new")

    settings = kubeconfig.load([file]).settings

    assert settings.authorization == "Bearer new"
    assert settings.key.read() == "PEM"


def test_a_token_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The token within the kubeconfig serves meanwhile; without one the error names the file."""
    file = config(tmp_path / "config", "one", current="one", token="old", tokenFile="token")
    settings = kubeconfig.load([file]).settings
    assert settings.authorization == "Bearer old"
    assert tmp_path / "token" in settings.files

    alone = config(tmp_path / "alone", "one", current="one", tokenFile="token")
    with pytest.raises(FileNotFoundError, match="token"):
        kubeconfig.load([alone])


def test_a_password(tmp_path: Path) -> None:
    """As every HTTP server takes it."""
    file = config(tmp_path / "config", "one", current="one", username="me", password="secret")

    assert kubeconfig.load([file]).settings.authorization == "Basic bWU6c2VjcmV0"


def test_whom_to_act_as(tmp_path: Path) -> None:
    """What was asked of the server in somebody's name is asked in theirs, never in ours."""
    file = config(tmp_path / "config", "one", current="one", token="secret", **{"as": "jane"})
    several = {"as-groups": ["dev", "ops"], "as-user-extra": {"acme.com/Project": ["a", "b"]}}
    changed(file, "user", **{"as-uid": "7"}, **several)

    settings = kubeconfig.load([file]).settings

    assert settings.headers == (
        ("authorization", "Bearer secret"),
        ("impersonate-user", "jane"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-acme.com%2fproject", "a"),
        ("impersonate-extra-acme.com%2fproject", "b"),
    )


def test_an_empty_file_beside_others(tmp_path: Path) -> None:
    """It says nothing, as one that is not there."""
    (tmp_path / "empty").touch()
    good = config(tmp_path / "config", "one", current="one")

    assert kubeconfig.load([tmp_path / "empty", good]).settings.parts.hostname == "one"


def test_a_cluster_says_how_it_is_reached(tmp_path: Path) -> None:
    """Name of the certificate, proxy, and whether to verify at all."""
    file = config(tmp_path / "config", "one", current="one")
    more = {"tls-server-name": "kubernetes", "proxy-url": "http://proxy:3128"}
    changed(file, "cluster", **more, **{"insecure-skip-tls-verify": True})

    settings = kubeconfig.load([file]).settings

    assert (settings.server_name, settings.through({})) == ("kubernetes", ("proxy", 3128))
    assert settings.tls().verify_mode == 0


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        ("user", {"token": ["secret"]}, r"users\[one\]: token is not a text"),
        ("user", {"client-key-data": "secret"}, r"users\[one\]: client-key-data is not PEM"),
        ("user", {"as-groups": ["secret"]}, r"users\[one\]: as-groups without as"),
        (
            "user",
            {"as": "x", "as-groups": "secret"},
            r"users\[one\]: as-groups is no list of texts",
        ),
        ("user", {"as": "x", "as-user-extra": ["secret"]}, "as-user-extra has no lists of texts"),
        ("context", {"user": "other"}, "no entry 'other' in users"),
        ("context", {"cluster": None}, "no entry '' in clusters"),
    ],
)
def test_errors_name_the_entry_and_show_no_value(
    tmp_path: Path, kind: str, fields: dict[str, Any], why: str
) -> None:
    """The value may be a secret."""
    file = changed(config(tmp_path / "config", "one", current="one"), kind, **fields)

    with pytest.raises(ValueError, match=why) as caught:
        kubeconfig.load([file])
    assert "secret" not in str(caught.value)
