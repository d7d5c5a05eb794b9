"""Credentials and address of the API server, read in a thread.

Covers: when to read again: rotation, refusal, plugins whose answer runs out; errors for people.
Does not cover: what is read (``server_settings``, ``kubeconfig``, ``credential_plugin``), requests.

Rules:
1. Reading files and running plugins blocks, so one thread does it, and the loop waits with a
   deadline. A plugin that hangs costs the API server as a source, nothing else; the end of the
   process waits for none.
2. What is on disk is looked at every ``CHECK_SECONDS``: a token or certificate that rotated is used
   from then on, without waiting for a 401; a plugin is asked again before its answer runs out.
   After a 401 everything is read anew at once.
3. Nothing of it is ever logged.
4. What can never work, such as a file that is not there, is an error before anything starts
   (``check``). What breaks later, and a plugin that fails, is tried again; until its end, what that
   plugin gave before is used.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path

from koordlet.http import certificates, client
from koordlet.kube import credential_plugin, kubeconfig
from koordlet.kube.server_settings import ServerSettings, service_account
from koordlet.kubeapi import refusals
from koordlet.model import errors
from koordlet.model.record import dataclass

CHECK_SECONDS = 30.0
#: A plugin may ask somebody else, but not for ever.
DEADLINE = 60.0
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """Address and credentials of the API server."""

    endpoint: client.HttpEndpoint
    #: Before every path, for servers behind a gateway; usually empty.
    prefix: str
    headers: client.Headers = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialSource:
    """Origin of the credentials; with nothing set, the service account of this pod."""

    #: Path, or several with a colon between them.
    kubeconfig: str = ""
    #: A context of it; empty: the current one.
    context: str = ""
    token: Path = _ACCOUNT / "token"
    ca: Path = _ACCOUNT / "ca.crt"


def check(source: CredentialSource) -> None:
    """``ConfigError`` where they cannot be used as they are. Nobody is asked, no plugin is run."""
    try:
        settings = _load(source, plugins=False)
        settings.through()
        if settings.parts.scheme == "https":
            settings.tls()
    except Exception as error:  # a broken file may make any
        raise errors.ConfigError(_why(error), culprit=_name(source), fix=_fix(source)) from error


class Credentials:
    """Reads them, keeps them, and reads them again."""

    def __init__(
        self, source: CredentialSource, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._clock = clock
        #: What the thread reads, or has read last.
        self._read: concurrent.futures.Future[ServerAccess] | None = None
        self._closed = False
        self._reading = asyncio.Lock()
        self._settings: ServerSettings | None = None
        self._access: ServerAccess | None = None
        self._tls: ssl.SSLContext | None = None
        self._marks: Mapping[Path, object] = {}
        self._checked = float("-inf")

    async def access(self) -> ServerAccess:
        """Current access to the server; re-reads what may have changed."""
        if self._access is not None and not self._is_due() and not self._reading.locked():
            return self._access  # nearly every request
        async with self._reading:
            if self._access is None or self._is_due():
                self._access = await self._in_thread()
                self._checked = self._clock()
            return self._access

    def _is_due(self) -> bool:
        """Whether it is time to look whether anything has changed."""
        return self._clock() - self._checked > CHECK_SECONDS

    async def reload(self, refused: ServerAccess) -> ServerAccess:
        """Read everything anew, because these were refused; once for all who saw it."""
        async with self._reading:
            if self._access is refused:
                self._settings = None
                self._access = await self._in_thread()
                self._checked = self._clock()
            assert self._access is not None  # noqa: S101 - only access() gives one to be refused
            return self._access

    def close(self) -> None:
        """Read nothing more."""
        self._closed = True

    async def _in_thread(self) -> ServerAccess:
        try:
            if self._read is None or self._read.done():
                self._read = self._begin()
            read = asyncio.wrap_future(self._read)
            return await asyncio.wait_for(asyncio.shield(read), DEADLINE)
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

    def _begin(self) -> concurrent.futures.Future[ServerAccess]:
        """Have a thread read them, for which no end of the process waits."""
        if self._closed:
            msg = "closed"
            raise RuntimeError(msg)
        read: concurrent.futures.Future[ServerAccess] = concurrent.futures.Future()

        def work() -> None:
            try:
                read.set_result(self._check())
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                read.set_exception(error)

        threading.Thread(target=work, name="credentials", daemon=True).start()
        return read

    # In the thread.

    @property
    def _name(self) -> str:
        return _name(self._source)

    def _check(self) -> ServerAccess:
        try:
            settings = self._settings
            if settings is None or not self._lasts(settings, 2 * CHECK_SECONDS):
                # Before they are read: what changes meanwhile is seen at the next look.
                before = _marks(_files(self._source))
                settings = self._settings = _load(self._source)
                self._tls = None
                self._marks = {**_marks(settings.files), **before}
            return self._made(settings)
        except Exception as error:  # a broken file may make any
            former = self._settings
            if former is not None and former.expires is not None and self._lasts(former):
                return self._made(former)
            raise refusals.Unauthorized(
                _why(error), culprit=self._name, fix=_fix(self._source)
            ) from error

    def _lasts(self, settings: ServerSettings, seconds: float = 0.0) -> bool:
        """Whether they are good for so long, as far as is known."""
        ends = settings.expires is not None and settings.expires - time.time() < seconds
        return not ends and _marks(settings.files) == self._marks

    def _made(self, settings: ServerSettings) -> ServerAccess:
        parts = settings.parts
        if parts.scheme == "https" and self._tls is None:
            self._tls = settings.tls()
        endpoint = client.HttpEndpoint(
            host=parts.hostname or "",
            port=parts.port or (443 if parts.scheme == "https" else 80),
            tls=self._tls,
            server_name=settings.server_name,
            proxy=settings.through(),
        )
        made = ServerAccess(endpoint, parts.path, settings.headers)
        return self._access if made == self._access and self._access is not None else made


def _load(source: CredentialSource, *, plugins: bool = True) -> ServerSettings:
    """Credentials on disk or from a plugin, with the files they come from."""
    if source.kubeconfig:
        context = kubeconfig.load(_files(source), source.context)
        settings = context.settings
        if credential_plugin.named(context.user) and plugins:
            settings = credential_plugin.ask(context, DEADLINE)
    else:
        settings = service_account(source.token, source.ca)
    for name, value in settings.headers:
        if not value.isascii() or not value.isprintable() or value != value.strip():
            what = "the token" if name == "authorization" else f"what {name} is to say"
            msg = f"{what} has several lines, or characters that HTTP takes in no header"
            raise ValueError(msg)
    return settings


def _name(source: CredentialSource) -> str:
    return source.kubeconfig or str(source.token)


def _fix(source: CredentialSource) -> str:
    if source.kubeconfig:
        return "use a kubeconfig that works with kubectl"
    return "mount the service account's token into the pod, or set a kubeconfig"


def _why(error: Exception) -> str:
    """Errors that quote no file; others may, and a token with it."""
    quotes_nothing = isinstance(error, OSError | ValueError)
    why = str(error)[:300] if quotes_nothing else type(error).__name__
    return f"no usable credentials: {why}"


def _files(source: CredentialSource) -> tuple[Path, ...]:
    """Those that it names itself."""
    if not source.kubeconfig:
        return source.token, source.ca
    return tuple(Path(name).expanduser() for name in source.kubeconfig.split(":") if name)


def _marks(files: Iterable[Path]) -> dict[Path, object]:
    """Identity of the content of files; ``None`` for one that is not there."""
    identities: dict[Path, object] = {}
    for file in files:
        try:
            identities[file] = certificates.stamp(file)
        except OSError:
            identities[file] = None
    return identities
