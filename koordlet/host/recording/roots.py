"""Resolves the ``--root`` option to a machine.

Covers: this host, a directory, an archive, and where in them the recorded root is.
Does not cover: reading archives (``tarindex``).

The recorded root is, in this order: the top if it has ``sys`` or ``proc``; its ``root`` folder if
that has them (``koordlet record`` writes such archives); a single top folder, looked at alike.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Container, Sequence

from koordlet.host.fs import root
from koordlet.host.recording import directory
from koordlet.model import errors

if typing.TYPE_CHECKING:
    from koordlet.host.recording import tarindex

_MARKS = ("sys", "proc")
_MAX_TOPS = 3
_FIX = "give a directory with sys/ and proc/, or a .tar or .tar.gz of one"


def open_root(spec: str | None) -> root.HostRoot:
    """The machine that ``spec`` names; this one for ``None`` or nothing."""
    if not spec:
        return root.LiveHost()
    if os.path.isdir(spec):
        return directory.DirHost(_inside_directory(spec))
    if os.path.isfile(spec):
        from koordlet.host.recording import archive, tarindex  # noqa: PLC0415 -- the agent never reads one

        return archive.ArchiveHost(inside(spec, tarindex.load(spec)))
    try:
        os.stat(spec)
        why = "is neither a file nor a directory"
    except FileNotFoundError:
        why = "does not exist"
    except (OSError, ValueError) as error:
        why = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise errors.ConfigError(why, culprit=spec, fix=_FIX)


def _inside_directory(top: str) -> str:
    here = top
    for _ in range(_MAX_TOPS):
        names = _names(here)
        if any(mark in names for mark in _MARKS):
            return here
        # A link is not followed here: it could lead anywhere.
        paths = {name: os.path.join(here, name) for name in names}
        folders = [
            folder
            for folder, path in paths.items()
            if os.path.isdir(path) and not os.path.islink(path)
        ]
        step = _next(folders, _names(paths["root"]) if "root" in folders else [])
        if step is None:
            break
        here = paths[step]
    raise _no_machine(top)


def inside(name: str, here: tarindex.ArchiveEntry) -> tarindex.ArchiveEntry:
    """The recorded root in the tree of an archive of that name."""
    for _ in range(_MAX_TOPS):
        below = here.children
        if any(mark in below for mark in _MARKS):
            return here
        folders = [
            folder for folder, entry in below.items() if entry.kind is root.FileKind.DIRECTORY
        ]
        step = _next(folders, below["root"].children if "root" in folders else [])
        if step is None:
            break
        here = below[step]
    raise _no_machine(name)


def _next(folders: Sequence[str], in_root: Container[str]) -> str | None:
    """The folder to look into, ``None`` when none suggests itself."""
    if any(mark in in_root for mark in _MARKS):
        return "root"
    return folders[0] if len(folders) == 1 else None


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError as error:
        why = f"cannot be listed: {error.strerror}"
        raise errors.ConfigError(why, culprit=path, fix=_FIX) from None


def _no_machine(name: str) -> errors.ConfigError:
    return errors.ConfigError("holds neither sys/ nor proc/", culprit=name, fix=_FIX)
