"""Modules that are executed at their first use, though whoever imports asyncio imports them.

Covers: ssl, asyncio's half of TLS, and hashlib: 4 MB of libcrypto and 1 MB of Python that an agent
without an API server does not call; secrets, which maps the same for pydantic's secret strings;
1.7 MB of messages in Python that nobody calls where those in C are there; parts of structlog;
the package prometheus_client, whose modules are imported without what it gathers from them;
1.4 MB that the standard library imports for what an agent does not call: signatures and sources of
functions, addresses in URLs, compressed archives.
Does not cover: our own imports: those stand inside of the function that needs them.

Rules:
1. asyncio asks of a socket whether it is an ssl.SSLSocket. While ssl waits, none is, and the
   question does not execute it. Nor does asyncio's question for a coroutine function, of each
   function that a signal calls: what it is stands in its code. Nor uuid's, for the system's name.
2. hashlib takes the interpreter's own functions where it has them all, so that it maps no
   libcrypto, unless that is there already. What only OpenSSL has (scrypt) is missing then.

importlib.util.LazyLoader does not serve: in Python 3.11 a second ``import`` of such a module looks
at its ``__spec__``, and that executes it.
"""

from __future__ import annotations

import os
import sys
import threading
import typing
from collections.abc import Sequence
from importlib import machinery
from types import FunctionType, ModuleType

if typing.TYPE_CHECKING:
    from importlib import abc  # it loads tempfile, random and a dozen more

#: Protocol Buffers in Python, which stands beside the one in C that does the work.
_MESSAGES = "google.protobuf.internal.python_message"
#: Other people's loggers, which structlog wraps, too.
_WRAPPERS = ("structlog.stdlib", "structlog.threadlocal")
#: Imported by shutil; asyncio and dataclasses; urllib.parse; shutil; uuid; linecache.
_SELDOM = ("bz2", "inspect", "ipaddress", "lzma", "platform", "tokenize")
NAMES = (
    *("asyncio.sslproto", _MESSAGES, "hashlib", "prometheus_client", "secrets", "ssl"),
    *(*_WRAPPERS, *_SELDOM),
)

#: inspect.CO_COROUTINE.
_CO_COROUTINE = 0x80


def _is_coroutine_function(function: object) -> bool:
    plain = getattr(function, "__func__", function)
    if isinstance(plain, FunctionType) and not vars(plain):
        return bool(plain.__code__.co_flags & _CO_COROUTINE)
    # What wraps one, or is marked as one.
    return bool(sys.modules["inspect"].iscoroutinefunction(function))


#: Who asks which module for what, and its answer while that waits (rule 1).
_MEANWHILE: dict[tuple[str | None, str, str], object] = {
    ("asyncio.base_events", "ssl", "SSLSocket"): type("SSLSocket", (), {}),
    ("uuid", "platform", "system"): lambda: os.uname().sysname,
    ("asyncio.coroutines", "inspect", "iscoroutinefunction"): _is_coroutine_function,
}
#: The interpreter's own functions (rule 2); _sha2 has both since Python 3.12.
_SHA2 = ("_sha2",) if sys.version_info >= (3, 12) else ("_sha256", "_sha512")
_HASHES = ("_blake2", "_md5", "_sha1", *_SHA2, "_sha3")

#: Held while a module is executed: whoever asks for more of it waits.
_lock = threading.RLock()
#: Of modules that wait, who executes them.
_pending: dict[str, abc.Loader] = {}


def install() -> None:
    """From now on the first attribute of such a module executes it, not its import."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def pending() -> frozenset[str]:
    """Modules that were imported and not executed."""
    return frozenset(_pending)


class _Finder:
    """Finds what the path finder finds, with a loader that waits."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        if fullname not in NAMES:
            return None
        spec = machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]  # a loader by its methods
        return spec


class _Loader:
    """Gives a module ``__getattr__`` (PEP 562) in place of its content."""

    def __init__(self, real: abc.Loader) -> None:
        self._real = real

    def create_module(self, spec: machinery.ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        _pending[name] = self._real

        def load(attribute: str) -> object:
            asks = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001 -- rule 1
            meanwhile = _MEANWHILE.get((asks, name, attribute))
            if meanwhile is not None and name in _pending:
                return meanwhile
            # Names of the import system are asked for by whoever looks through sys.modules.
            if not attribute.startswith("__"):
                with _lock:
                    real = _pending.pop(name, None)
                    if real is not None:
                        try:
                            _execute(real, module)
                        except BaseException:
                            _pending[name] = real  # the next use says the same, or succeeds
                            raise
                if attribute in vars(module):
                    return vars(module)[attribute]
            msg = f"module {name!r} has no attribute {attribute!r}"
            raise AttributeError(msg, name=attribute, obj=module)

        vars(module)["__getattr__"] = load


def _execute(real: abc.Loader, module: ModuleType) -> None:
    if (
        module.__name__ != "hashlib"
        or "_hashlib" in sys.modules
        or not all(map(_is_there, _HASHES))
    ):
        real.exec_module(module)
        return
    # A name that maps to None makes that import fail (rule 2).
    sys.modules["_hashlib"] = None  # type: ignore[assignment]  # as the import system has it
    try:
        real.exec_module(module)
    finally:
        del sys.modules["_hashlib"]


def _is_there(name: str) -> bool:
    finders = (machinery.BuiltinImporter, machinery.PathFinder)
    return any(finder.find_spec(name) is not None for finder in finders)
