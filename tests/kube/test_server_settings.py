"""What is known of a server: its address, its proxy, a pod's account."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import server_settings
from koordlet.kube.server_settings import ServerSettings
from tests.kit.apiserver import pki

_PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environment", "through"),
    [
        ("https://api:6443", {}, None),
        ("https://api:6443", {"HTTPS_PROXY": _PROXY}, ("proxy", 3128)),
        ("https://api:6443", {"https_proxy": "http://small", "HTTPS_PROXY": _PROXY}, ("small", 80)),
        ("https://api:6443", {"http_proxy": _PROXY}, None),
        ("http://api:8080", {"http_proxy": _PROXY}, ("proxy", 3128)),
        ("https://api:6443", {"https_proxy": "", "HTTPS_PROXY": _PROXY}, ("proxy", 3128)),
        ("https://api:6443", {"ALL_PROXY": "socks5://proxy", "all_proxy": "socks5://proxy"}, None),
        ("https://api:6443", {"https_proxy": _PROXY, "no_proxy": "*"}, None),
        ("https://api.example:6443", {"https_proxy": _PROXY, "NO_PROXY": "x, .example"}, None),
        ("https://api.example:6443", {"https_proxy": _PROXY, "NO_PROXY": "ample"}, ("proxy", 3128)),
        ("https://api:6443", {"https_proxy": _PROXY, "no_proxy": "api:6443"}, None),
        ("https://10.1.2.3", {"https_proxy": _PROXY, "no_proxy": "10.0.0.0/8"}, None),
        ("https://api:6443", {"https_proxy": "proxy:3128"}, ("proxy", 3128)),
        ("https://localhost:6443", {"https_proxy": _PROXY}, None),
        ("https://127.0.0.1:6443", {"https_proxy": _PROXY}, None),
        ("https://[::1]:6443", {"https_proxy": _PROXY}, None),
        ("https://11.1.2.3", {"https_proxy": _PROXY, "no_proxy": "10.0.0.0/8"}, ("proxy", 3128)),
    ],
)
def test_the_proxy_of_the_environment(
    server: str, environment: dict[str, str], through: tuple[str, int] | None
) -> None:
    """That of the scheme, but for whom ``no_proxy`` spares; as with kubectl, no one for all."""
    assert ServerSettings(server=server).through(environment) == through


def test_a_proxy_of_its_own() -> None:
    """Whoever names one for a server wants it, whatever the environment spares."""
    settings = ServerSettings(server="https://127.0.0.1", proxy=_PROXY)

    assert settings.through({"no_proxy": "*"}) == ("proxy", 3128)


@pytest.mark.parametrize("proxy", ["http://me:secret@proxy", "http://me:secret/1@proxy:3128"])
def test_a_proxy_that_we_cannot_speak_to(proxy: str) -> None:
    """The error says so, and shows no password."""
    settings = ServerSettings(server="https://api", proxy=proxy)

    with pytest.raises(ValueError, match="only plain http proxies") as caught:
        settings.through({})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("server", ["https://api:port", "https://api:70000", "https://[api"])
def test_an_address_that_is_none(server: str) -> None:
    """Before anything is started."""
    with pytest.raises(ValueError, match="not a server address"):
        _ = ServerSettings(server=server).parts


def account(path: Path, token: str, **environment: str) -> ServerSettings:
    """Those of a pod."""
    (path / "token").write_text(token)
    (path / "ca.crt").write_text("PEM")
    named = {f"KUBERNETES_SERVICE_{key}": value for key, value in environment.items()}
    return server_settings.service_account(path / "token", path / "ca.crt", named)


def test_a_service_account(tmp_path: Path) -> None:
    """The token without its line end, and an address of either family."""
    settings = account(tmp_path, "secret\n", HOST="fd00::1", PORT="443")

    assert (settings.server, settings.authorization) == ("https://[fd00::1]:443", "Bearer secret")
    assert settings.files == (tmp_path / "token", tmp_path / "ca.crt")


def test_no_service_account(tmp_path: Path) -> None:
    """Outside of a pod, and with an empty token."""
    with pytest.raises(ValueError, match="KUBERNETES_SERVICE_PORT name no server"):
        account(tmp_path, "secret", HOST="10.0.0.1")
    with pytest.raises(ValueError, match="is empty"):
        account(tmp_path, "\n", HOST="10.0.0.1", PORT="443")


def test_an_authority_with_a_comment(tmp_path: Path) -> None:
    """Files of authorities say whose they are, in any alphabet."""
    authority = pki.Authority(tmp_path)
    commented = tmp_path / "commented.crt"
    commented.write_text(
        f"# Zertifizierungsstelle für München\n{authority.certificate.read_text()}"
    )
    source = server_settings.PemSource(path=commented)

    assert len(ServerSettings(server="https://api", authority=source).tls().get_ca_certs()) == 1


def test_certificates_as_clusters_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many name no key of their authority: kubectl takes those, Python 3.13 does not by itself."""
    usual = ssl.create_default_context

    def strict(**trusted: Any) -> ssl.SSLContext:
        context = usual(**trusted)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    context = ServerSettings(server="https://api").tls()

    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_a_certificate_that_is_in_no_file(tmp_path: Path) -> None:
    """It is shown as if it were in one; a key of another is an error."""
    authority = pki.Authority(tmp_path)
    (certificate, key), (_, other) = authority.sign("agent"), authority.sign("other")
    texts = {path: pem(path) for path in (certificate, key, other)}

    ServerSettings(server="https://api", certificate=texts[certificate], key=texts[key]).tls()
    with pytest.raises(OSError, match="KEY_VALUES_MISMATCH"):
        ServerSettings(server="https://api", certificate=texts[certificate], key=texts[other]).tls()


def test_a_key_with_a_password(tmp_path: Path) -> None:
    """Nobody is asked for it: whoever has a terminal would wait for an answer, for ever."""
    certificate, plain = pki.Authority(tmp_path).sign("agent")
    key = tmp_path / "locked.key"
    locking = ("-aes128", "-passout", "pass:secret", "-out", str(key))
    subprocess.run(["openssl", "pkey", "-in", str(plain), *locking], check=True, timeout=60)

    in_files = [server_settings.PemSource(path=path) for path in (certificate, key)]
    for pair in (in_files, [pem(certificate), pem(key)]):
        shown = ServerSettings(server="https://api", certificate=pair[0], key=pair[1])
        with pytest.raises(ValueError, match="the client key has a password"):
            shown.tls()


def pem(path: Path) -> server_settings.PemSource:
    """What a file has, as if it were in none."""
    return server_settings.PemSource(text=path.read_text())
