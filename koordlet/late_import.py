"""Modules that are executed at their first use, though whoever imports asyncio imports them.

Covers: ssl, asyncio's half of TLS, and hashlib: 4 MB of libcrypto and 1 MB of Python that an agent
without an API server does not call; secrets, which maps the same for pydantic's secret strings;
the package prometheus_client, whose modules are imported without what it gathers from them.
Does not cover: our own imports: those stand inside of the function that needs them.

A socket that asyncio itself connects executes ssl: asyncio asks whether it is an ssl.SSLSocket.
importlib.util.LazyLoader does not serve: in Python 3.11 a second ``import`` of such a module looks
at its ``__spec__``, and that executes it.
"""

from __future__ import annotations

import sys
import threading
import typing
from collections.abc import Sequence
from importlib import machinery
from types import ModuleType

if typing.TYPE_CHECKING:
    from importlib import abc  # it loads tempfile, random and a dozen more

NAMES = ("asyncio.sslproto", "hashlib", "prometheus_client", "secrets", "ssl")

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
            # Names of the import system are asked for by whoever looks through sys.modules.
            if not attribute.startswith("__"):
                with _lock:
                    real = _pending.pop(name, None)
                    if real is not None:
                        try:
                            real.exec_module(module)
                        except BaseException:
                            _pending[name] = real  # the next use says the same, or succeeds
                            raise
                if attribute in vars(module):
                    return vars(module)[attribute]
            msg = f"module {name!r} has no attribute {attribute!r}"
            raise AttributeError(msg, name=attribute, obj=module)

        vars(module)["__getattr__"] = load
