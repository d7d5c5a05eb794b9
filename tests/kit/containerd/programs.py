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
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SUITE = "bookworm"
_NEXT = "trixie"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: A download of 36 MB may be slow; a mirror that hangs is given up.
_PATIENCE = 300.0


class FetchError(Exception):
    """The programs cannot be had; the text says why."""


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
        packages=(f"containerd/{_NEXT}", f"runc/{_SUITE}", f"busybox-static/{_SUITE}"),
        says={
            "usr/bin/containerd": " 1.7.24",
            "usr/sbin/runc": "runc version 1.",
            "bin/busybox": "",
        },
    ),
    "docker": Bundle(
        name="docker-20.10.24",
        packages=tuple(f"{n}/{_SUITE}" for n in ("docker.io", "libdevmapper1.02.1", "libselinux1")),
        says={"usr/sbin/dockerd": " 20.10.24"},
    ),
    "crun": Bundle(
        name="crun-1.8.1",
        packages=(f"crun/{_SUITE}", f"libyajl2/{_SUITE}"),
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
        return ":".join(str(self.folder / one / "x86_64-linux-gnu") for one in ("usr/lib", "lib"))

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
    found, bundle = kept(name), BUNDLES[name]
    found.folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(found.folder.parent / f"{bundle.name}.lock"):
        if not found.there:
            with tempfile.TemporaryDirectory(prefix=f"{name}-new-", dir=found.folder.parent) as w:
                fresh = Programs(Path(w) / "root")
                _download(Path(w) / "apt", bundle.packages)
                for archive in sorted((Path(w) / "apt").glob("*.deb")):
                    _run("dpkg-deb", "-x", str(archive), str(fresh.folder))
                _check(fresh, bundle.says)
                fresh.folder.rename(found.folder)
    return found


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(folder: Path, packages: tuple[str, ...]) -> None:
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
    _run(*get, "download", *packages, folder=folder)


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


def _check(found: Programs, says: Mapping[str, str]) -> None:
    """That what came is what was meant, and runs here."""
    for path, wanted in says.items():
        program = found.folder / path
        if not program.is_file():
            raise FetchError(f"the packages bring no {program.name}")
        if wanted and wanted not in (said := _run(str(program), "--version", more=found.libraries)):
            raise FetchError(f"{program.name} is not {wanted}: {said[:200]}")


def _run(*words: str, folder: Path | None = None, more: str = "") -> str:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C", **({"LD_LIBRARY_PATH": more} if more else {})},
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
