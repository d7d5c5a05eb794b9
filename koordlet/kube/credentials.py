"""Credentials and address of the API server, read by the ``kubernetes`` package in a thread.

Covers: in-cluster and kubeconfig (contexts, client certificates, tokens and their files, exec
plugins), rotation, TLS, proxies. Does not cover: requests.

Rules:
1. Reading files and running plugins blocks, so one thread does it, and the loop waits with a
   deadline. A plugin that hangs costs the API server as a source, nothing else.
2. What is on disk is looked at every ``CHECK_SECONDS``: a token or certificate that rotated is used
   from then on, without waiting for a 401. After a 401 everything is read anew at once.
3. Nothing of it is ever logged.
4. What can never work, such as a file that is not there, is an error before anything starts
   (``check``). What breaks later, and a plugin that fails, is tried again.

The package re-reads the in-cluster token each minute and runs a plugin again before its token
expires. It never re-reads a ``tokenFile`` of a kubeconfig, does not trim the in-cluster token, and
goes on without credentials where a plugin fails; all three are made good here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from kubernetes.client import rest
from kubernetes.client.configuration import Configuration
from kubernetes.config import config_exception, incluster_config, kube_config

from koordlet.http import certificates, client
from koordlet.kubeapi import refusals
from koordlet.model import errors
from koordlet.model.record import dataclass

_Result = TypeVar("_Result")

CHECK_SECONDS = 30.0
#: A plugin may ask somebody else, but not for ever.
DEADLINE = 60.0
#: Of a user in a kubeconfig: whom else the package asks.
_PLUGINS = frozenset({"exec", "auth-provider"})


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """Address and credentials of the API server."""

    endpoint: client.HttpEndpoint
    #: Before every path, for servers behind a gateway; usually empty.
    prefix: str
    headers: client.Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialSource:
    """Origin of the credentials; with nothing set, the service account of this pod."""

    #: Path, or several with a colon between them.
    kubeconfig: str = ""
    #: A context of it; empty: the current one.
    context: str = ""
    token: Path = Path(incluster_config.SERVICE_TOKEN_FILENAME)
    ca: Path = Path(incluster_config.SERVICE_CERT_FILENAME)


def check(source: CredentialSource) -> None:
    """``ConfigError`` where they cannot be used as they are. Nobody is asked, no plugin is run."""
    try:
        configuration, _ = _load(source, plugins=False)
        _clean(configuration.auth_settings().get("BearerToken"))
        _parts(configuration)
        _proxy(configuration)
        _tls(configuration)
    except Exception as error:  # the package lets through whatever a broken file makes
        raise errors.ConfigError(_why(error), culprit=_name(source), fix=_fix(source)) from error


class Credentials:
    """Reads them, keeps them, and reads them again."""

    def __init__(
        self, source: CredentialSource, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._clock = clock
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "credentials")
        self._reading = asyncio.Lock()
        self._configuration: Configuration | None = None
        self._access: ServerAccess | None = None
        self._tls: ssl.SSLContext | None = None
        self._files: tuple[Path, ...] = ()
        self._marks: tuple[object, ...] = ()
        self._checked = float("-inf")

    async def access(self) -> ServerAccess:
        """Current access to the server; re-reads what may have changed."""
        async with self._reading:
            if self._access is None or self._clock() - self._checked > CHECK_SECONDS:
                self._access = await self._in_thread(self._check)
                self._checked = self._clock()
            return self._access

    async def reload(self, refused: ServerAccess) -> ServerAccess:
        """Read everything anew, because these were refused; once for all who saw it."""
        async with self._reading:
            if self._access is refused:
                self._configuration = None
                self._access = await self._in_thread(self._check)
                self._checked = self._clock()
            assert self._access is not None  # noqa: S101 - only access() gives one to be refused
            return self._access

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        try:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
            return await asyncio.wait_for(asyncio.shield(future), DEADLINE)
        except TimeoutError:
            raise refusals.Unavailable(
                f"reading the credentials took over {DEADLINE:.0f} s",
                culprit=self._name,
                fix="check whether the credential plugin hangs",
            ) from None
        except RuntimeError as error:
            raise refusals.Unavailable(
                f"the credentials cannot be read: {error}", culprit=self._name
            ) from error

    # In the thread.

    @property
    def _name(self) -> str:
        return _name(self._source)

    def _check(self) -> ServerAccess:
        try:
            if self._configuration is None or _marks(self._files) != self._marks:
                self._configuration, self._files = _load(self._source)
                self._tls = None
                self._marks = _marks(self._files)
            return self._made(self._configuration)
        except Exception as error:  # the package lets through whatever a broken file makes
            raise refusals.Unauthorized(
                _why(error), culprit=self._name, fix=_fix(self._source)
            ) from error

    def _made(self, configuration: Configuration) -> ServerAccess:
        # Here the package looks whether its token is still good, and fetches another one if not.
        token = _clean(configuration.auth_settings().get("BearerToken"))
        endpoint, prefix = self._endpoint(configuration)
        headers = (("authorization", token),) if token else ()
        made = ServerAccess(endpoint, prefix, headers)
        return self._access if made == self._access and self._access is not None else made

    def _endpoint(self, configuration: Configuration) -> tuple[client.HttpEndpoint, str]:
        parts = _parts(configuration)
        if parts.scheme == "https" and self._tls is None:
            self._tls = _tls(configuration)
        endpoint = client.HttpEndpoint(
            host=parts.hostname or "",
            port=parts.port or (443 if parts.scheme == "https" else 80),
            tls=self._tls,
            server_name=configuration.tls_server_name or "",
            proxy=_proxy(configuration),
        )
        return endpoint, parts.path.rstrip("/")


def _load(
    source: CredentialSource, *, plugins: bool = True
) -> tuple[Configuration, tuple[Path, ...]]:
    """Credentials on disk or from a plugin, with the files they come from."""
    configuration = Configuration()
    if not source.kubeconfig:
        incluster_config.InClusterConfigLoader(
            token_filename=str(source.token), cert_filename=str(source.ca)
        ).load_and_set(configuration)
        return configuration, (source.token, source.ca)
    paths = [Path(name).expanduser() for name in source.kubeconfig.split(":") if name]
    merged = _merged(paths)
    user = _user(merged, source.context)
    if not plugins:
        for asking in _PLUGINS & user.keys():
            del user[asking]
    loader = kube_config.KubeConfigLoader(
        merged, active_context=source.context or None, config_base_path=None
    )
    loader.load_and_set(configuration)
    if "exec" in user and not configuration.api_key and not configuration.cert_file:
        raise ValueError("the credential plugin failed, or returned neither token nor certificate")
    named = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    files = [*paths, *(Path(name) for name in named if name)]
    if user.get("tokenFile"):
        files.append(paths[0].parent / str(user["tokenFile"]))
    return configuration, tuple(files)


def _merged(paths: list[Path]) -> kube_config.ConfigNode:
    """The files as one; those that are not there are skipped, as kubectl skips them."""
    merger = kube_config.KubeConfigMerger(":".join(map(str, paths)))
    merged: kube_config.ConfigNode | None = merger.config
    if merged is None:
        there = any(path.exists() for path in paths)
        msg = "it is empty" if there else "there is no such file"
        raise ValueError(msg)
    return merged


def _name(source: CredentialSource) -> str:
    return source.kubeconfig or str(source.token)


def _fix(source: CredentialSource) -> str:
    if source.kubeconfig:
        return "use a kubeconfig that works with kubectl"
    return "mount the service account's token into the pod, or set a kubeconfig"


def _why(error: Exception) -> str:
    """The package's errors; others may quote the file, and a token with it."""
    told = isinstance(error, OSError | ValueError | config_exception.ConfigException)
    mark = getattr(error, "problem_mark", None)
    unread = f"it cannot be read ({type(error).__name__})"
    other = unread if mark is None else f"it is not YAML (line {mark.line + 1})"
    why = str(error)[:300] if told else other
    return f"no usable credentials: {why}"


def _clean(entry: Mapping[str, object] | None) -> str:
    token = str(entry["value"]).strip() if entry else ""
    if any(character in token for character in "\r\n\0"):
        raise ValueError("the token has several lines")
    return token


def _parts(configuration: Configuration) -> urllib.parse.SplitResult:
    parts = urllib.parse.urlsplit(configuration.host)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"not a server address: {configuration.host!r}")
    return parts


def _user(config: kube_config.ConfigNode, context: str) -> dict[str, object]:
    """User entry of a kubeconfig's context; the very object that the package reads."""
    name = context or config["current-context"]
    user_name = config["contexts"].get_with_name(name)["context"].safe_get("user")
    for node in config.safe_get("users") or ():
        # Merging several files wraps the entries, so that each knows its file.
        entry = node.value if isinstance(node, kube_config.ConfigNode) else node
        if entry.get("name") == user_name:
            user: dict[str, object] = entry.get("user") or {}
            return user
    return {}


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _proxy(configuration: Configuration) -> tuple[str, int] | None:
    if not configuration.proxy:
        return None
    if configuration.no_proxy and rest.should_bypass_proxies(
        configuration.host, configuration.no_proxy
    ):
        return None
    parts = urllib.parse.urlsplit(configuration.proxy)
    if parts.scheme != "http" or not parts.hostname or parts.username:
        msg = f"only plain http proxies without a password are supported, not {parts.scheme}://"
        raise ValueError(msg)
    return parts.hostname, parts.port or 80


def _marks(files: tuple[Path, ...]) -> tuple[object, ...]:
    """Identity of the content of files; ``None`` for one that is not there."""
    identities: list[object] = []
    for file in files:
        try:
            identities.append(certificates.stamp(file))
        except OSError:
            identities.append(None)
    return tuple(identities)
