"""containerd, runc, crun, busybox, Docker: fetched by the machine's own apt, unpacked, kept.

Covers: which packages, from which suite, where they are kept, that they are what they should be.
Does not cover: starting them (``runtime``).

Debian 12 has containerd 1.6, which knows no NRI; the next suite has 1.7, and its programs run on
the older C library (its crun does not). So apt gets lists of its own: the mirror that this
machine uses, with both suites. apt checks the signatures; the machine's own lists, packages and
sources stay as they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kit import debian


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Packages that are fetched and kept together."""

    #: Of the folder: the main program and upstream's version; Debian's revision may move on.
    name: str
    #: As ``apt-get download`` takes them.
    packages: tuple[str, ...]
    #: Each program that must come, and what it must say to ``--version``; empty: it is not asked.
    says: Mapping[str, str]


BUNDLES = {
    "containerd": Bundle(
        name="containerd-1.7.24",
        packages=(
            f"containerd/{debian.NEXT}",
            f"runc/{debian.SUITE}",
            f"busybox-static/{debian.SUITE}",
        ),
        says={
            "usr/bin/containerd": " 1.7.24",
            "usr/sbin/runc": "runc version 1.",
            "bin/busybox": "",
        },
    ),
    "docker": Bundle(
        name="docker-20.10.24",
        packages=tuple(
            f"{n}/{debian.SUITE}" for n in ("docker.io", "libdevmapper1.02.1", "libselinux1")
        ),
        says={"usr/sbin/dockerd": " 20.10.24"},
    ),
    "crun": Bundle(
        name="crun-1.8.1",
        packages=(f"crun/{debian.SUITE}", f"libyajl2/{debian.SUITE}"),
        says={"usr/bin/crun": "crun version 1.8.1"},
    ),
}


@dataclass(frozen=True, slots=True)
class Programs:
    """One bundle's unpacked packages."""

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
    def crun(self) -> Path:
        return self.bin / "crun"

    @property
    def dockerd(self) -> Path:
        return self.folder / "usr/sbin/dockerd"

    @property
    def busybox(self) -> Path:
        return self.folder / "bin/busybox"

    @property
    def libraries(self) -> str:
        """What the dynamic linker must be told of."""
        return ":".join(
            str(self.folder / folder / "x86_64-linux-gnu") for folder in ("usr/lib", "lib")
        )

    @property
    def there(self) -> bool:
        """Whether they have been fetched."""
        return self.folder.is_dir()


def kept(name: str = "containerd") -> Programs:
    """Where a bundle is kept, fetched or not."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Programs(Path(home) / "koordlet" / BUNDLES[name].name)


def fetch(name: str = "containerd") -> Programs:
    """A bundle; fetched where it is not there. Whoever comes second waits for the first."""
    programs, bundle = kept(name), BUNDLES[name]
    programs.folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(programs.folder.parent / f"{bundle.name}.lock"):
        if not programs.there:
            with tempfile.TemporaryDirectory(
                prefix=f"{name}-new-", dir=programs.folder.parent
            ) as w:
                fresh = Programs(Path(w) / "root")
                apt = debian.Archive(Path(w) / "apt", debian.SUITE, debian.NEXT)
                apt.download(Path(w), *bundle.packages)
                for archive in sorted(Path(w).glob("*.deb")):
                    debian.run("dpkg-deb", "-x", str(archive), str(fresh.folder))
                _check(fresh, bundle.says)
                fresh.folder.rename(programs.folder)
    return programs


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _check(programs: Programs, says: Mapping[str, str]) -> None:
    """That what came is what was meant, and runs here."""
    for path, wanted in says.items():
        program = programs.folder / path
        if not program.is_file():
            raise debian.FetchError(f"the packages bring no {program.name}")
        if wanted and wanted not in (
            version := debian.run(str(program), "--version", more=programs.libraries)
        ):
            raise debian.FetchError(f"{program.name} is not {wanted}: {version[:200]}")


def why_not(oci: str = "runc") -> str:
    """Why no container can be started here, by runc or crun; empty when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if platform.machine() != "x86_64":
        return f"not tried on {platform.machine()}"
    if shutil.which("unshare") is None:
        return "needs unshare"
    for name in ("containerd", *((oci,) if oci in BUNDLES else ())):
        if not kept(name).there:
            return f"{name} is not here: python -m tests.kit.containerd fetch {name}"
    return ""
