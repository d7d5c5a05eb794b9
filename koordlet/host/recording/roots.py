"""Resolves the ``--root`` option to a machine.

Covers: this host, a directory, an archive, and where in them the recorded root is.
Does not cover: reading archives (``tarindex``).

The recorded root is, in this order: the top if it has ``sys`` or ``proc``; its ``root`` folder if
that has them (``koordlet record`` writes such archives); a single top folder, looked at alike.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Mapping
from typing import TypeVar

from koordlet.host.fs import live_host, root
from koordlet.host.recording import directory
from koordlet.model import errors

if typing.TYPE_CHECKING:
    from koordlet.host.recording import tarindex

_Place = TypeVar("_Place")

_MARKS = ("sys", "proc")
_MAX_TOPS = 3
_FIX = "give a directory with sys/ and proc/, or a .tar or .tar.gz of one"


def open_root(spec: str | None) -> root.HostRoot:
    """The machine that ``spec`` names; this one for ``None`` or nothing."""
    if not spec:
        return live_host.LiveHost()
    if os.path.isdir(spec):
        return directory.DirHost(_recorded_root(spec, spec, _folders))
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


def inside(name: str, top: tarindex.ArchiveEntry) -> tarindex.ArchiveEntry:
    """The recorded root in the tree of an archive of that name."""

    def below(entry: tarindex.ArchiveEntry) -> dict[str, tarindex.ArchiveEntry | None]:
        kinds = entry.children.items()
        return {n: e if e.kind is root.FileKind.DIRECTORY else None for n, e in kinds}

    return _recorded_root(name, top, below)


def _folders(path: str) -> dict[str, str | None]:
    """What is in a directory, with the path of each folder.

    A link is not followed here: it could lead anywhere.
    """
    try:
        paths = {name: os.path.join(path, name) for name in os.listdir(path)}
    except OSError as error:
        why = f"cannot be listed: {error.strerror}"
        raise errors.ConfigError(why, culprit=path, fix=_FIX) from None
    plain = {name for name, at in paths.items() if os.path.isdir(at) and not os.path.islink(at)}
    return {name: at if name in plain else None for name, at in paths.items()}


def _recorded_root(
    name: str, here: _Place, below: Callable[[_Place], Mapping[str, _Place | None]]
) -> _Place:
    """The recorded root; ``below`` are the names in a place, and the place of each folder."""
    for _ in range(_MAX_TOPS):
        names = below(here)
        if any(mark in names for mark in _MARKS):
            return here
        folders = {folder: place for folder, place in names.items() if place is not None}
        if "root" in folders and any(mark in below(folders["root"]) for mark in _MARKS):
            here = folders["root"]
        elif len(folders) == 1:
            [here] = folders.values()
        else:
            break
    raise errors.ConfigError("holds neither sys/ nor proc/", culprit=name, fix=_FIX)
