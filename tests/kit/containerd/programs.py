"""containerd, runc and busybox: fetched by the machine's own apt, unpacked, looked at, kept.

Covers: which packages, from which suite, where they are kept, that they are what they should be.
Does not cover: starting them (``runtime``).

Debian 12 has containerd 1.6, which knows no NRI; the next suite has 1.7, and its programs run on
the older C library. So apt gets lists of its own: the mirror that this machine uses, with both
suites. apt checks the signatures; the machine's own lists, packages and sources stay as they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Upstream's version; Debian's revision behind it may move on.
VERSION = "1.7.24"
_SUITE = "bookworm"
_NEXT = "trixie"
#: As ``apt-get download`` takes them.
_PACKAGES = (f"containerd/{_NEXT}", f"runc/{_SUITE}", f"busybox-static/{_SUITE}")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: A download of 36 MB may be slow; a mirror that hangs is given up.
_PATIENCE = 300.0


class FetchError(Exception):
    """The programs cannot be had; the text says why."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The unpacked packages."""

    folder: Path

    @property
    def bin(self) -> Path:
        """containerd, its shim, ctr."""
        return self.folder / "usr/bin"

    @property
    def containerd(self) -> Path:
        return self.bin / "containerd"

    @property
    def ctr(self) -> Path:
        return self.bin / "ctr"

    @property
    def runc(self) -> Path:
        return self.folder / "usr/sbin/runc"

    @property
    def busybox(self) -> Path:
        return self.folder / "bin/busybox"

    @property
    def there(self) -> bool:
        """Whether they have been fetched."""
        return self.folder.is_dir()


def kept() -> Programs:
    """Where they are kept, fetched or not."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Programs(Path(home) / "koordlet" / f"containerd-{VERSION}")


def fetch() -> Programs:
    """The programs; fetched where they are not there. Whoever comes second waits for the first."""
    found = kept()
    found.folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(found.folder.with_suffix(".lock")):
        if not found.there:
            with tempfile.TemporaryDirectory(
                prefix="containerd-new-", dir=found.folder.parent
            ) as w:
                fresh = Programs(Path(w) / "root")
                _download(Path(w) / "apt")
                for archive in sorted((Path(w) / "apt").glob("*.deb")):
                    _run("dpkg-deb", "-x", str(archive), str(fresh.folder))
                _check(fresh)
                fresh.folder.rename(found.folder)
    return found


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(folder: Path) -> None:
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    mirror = _mirror()
    sources = folder / "sources.list"
    sources.write_text(
        "".join(f"deb [signed-by={_KEYRING}] {mirror} {s} main\n" for s in (_SUITE, _NEXT))
    )
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "",
        "Acquire::Retries": 3,
        "Acquire::Languages": "none",
    }
    get = [
        "apt-get",
        "-q",
        *(w for key, value in settings.items() for w in ("-o", f"{key}={value}")),
    ]
    _run(*get, "update")
    _run(*get, "download", *_PACKAGES, folder=folder)


def _mirror() -> str:
    """Where this machine's apt gets Debian's main archive from."""
    form = "$(SITE) $(RELEASE) $(COMPONENT)"
    for line in _run("apt-get", "indextargets", "--format", form, "Created-By: Packages").split(
        "\n"
    ):
        words = line.split()
        if words[1:] in ([_SUITE, "main"], [_NEXT, "main"]):
            return words[0]
    raise FetchError(f"apt's sources name no mirror with {_SUITE} main or {_NEXT} main")


def _check(found: Programs) -> None:
    """That what came is what was meant, and runs here."""
    for program, wanted in (
        (found.containerd, f" {VERSION}"),
        (found.runc, "runc version 1."),
        (found.busybox, ""),
    ):
        if not program.is_file():
            raise FetchError(f"the packages bring no {program.name}")
        words = [] if program == found.busybox else ["--version"]
        if wanted not in (said := _run(str(program), *words)):
            raise FetchError(f"{program.name} is not{wanted}: {said[:200]}")


def _run(*words: str, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{words[0]}: {error}") from error
    if done.returncode:
        raise FetchError(f"{words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def why_not() -> str:
    """Why no container can be started here; empty when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if platform.machine() != "x86_64":
        return f"not tried on {platform.machine()}"
    if shutil.which("unshare") is None:
        return "needs unshare"
    if not kept().there:
        return "containerd is not here: python -m tests.kit.containerd fetch"
    return ""
