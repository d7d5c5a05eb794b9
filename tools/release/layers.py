"""Layers of an image: a folder as a tar archive that has the same bytes in every build.

Covers: names in order, one owner, one time, modes of the folder, links; gzip without a date.
Does not cover: what is in the folder (``environment``, ``debian``), the image (``image``).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from pathlib import Path

from koordlet.model.record import dataclass
from tools.release import environment


@dataclass(frozen=True, slots=True)
class Layer:
    """A compressed archive and the two digests that an image names it by."""

    data: bytes
    #: Of the archive as it is, and of what is in it.
    digest: str
    diff_id: str


def layer(tree: Path, epoch: int) -> Layer:
    """The content of a folder."""
    plain = archive(tree, epoch)
    data = gzip.compress(plain, compresslevel=6, mtime=0)
    return Layer(data, digest(data), digest(plain))


def digest(data: bytes) -> str:
    """As images write it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def archive(tree: Path, epoch: int, *, below: str = "", follow: bool = False) -> bytes:
    """Root owns everything; two builds differ in nothing.

    ``below``: a folder that everything is in; ``follow``: what a link names, in place of the link.
    """
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as tar:

        def add(name: str, status: os.stat_result, path: Path) -> None:
            entry = tarfile.TarInfo(f"{below}/{name}" if below else name)
            entry.mtime = epoch
            entry.mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISLNK(status.st_mode):
                entry.type, entry.linkname, entry.mode = (
                    tarfile.SYMTYPE,
                    str(path.readlink()),
                    0o777,
                )
                tar.addfile(entry)
            elif stat.S_ISDIR(status.st_mode):
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            else:
                entry.size = status.st_size
                with path.open("rb") as file:
                    tar.addfile(entry, file)

        environment.walk(tree, add, follow=follow)
    return written.getvalue()
