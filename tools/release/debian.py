"""The base of the image: packages of Debian, unpacked into a folder by somebody who is not root.

Covers: fetching them by the machine's own apt, which checks signatures; merging ``/lib`` into
``/usr/lib``; leaving out manuals; the licence of each package, which stays.
Does not cover: the program (``environment``), the image (``image``).
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tools.release import commands, environment, parts

#: What an interpreter and the program's compiled modules need, and openssl, which makes a
#: certificate where nobody else does (components/scraped). No shell, no package manager.
PACKAGES = (
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libffi8", "libssl3", "libuuid1"),
    *("libbz2-1.0", "liblzma5", "libcrypt1", "libsqlite3-0", "libtirpc3", "libtirpc-common"),
    *("libnsl2", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal"),
    *("media-types", "openssl"),
)
_MERGED = ("bin", "sbin", "lib", "lib64")
_LEFT_OUT = (
    *("usr/share/man", "usr/share/lintian", "usr/share/locale", "usr/share/info", "usr/share/bug"),
    *("usr/share/python3", "usr/share/binfmts", "usr/share/applications", "usr/share/pixmaps"),
    # Modules of other character sets, and what a person uses at a prompt.
    *("usr/lib/*-linux-gnu/gconv", "usr/lib/python3.11/pydoc_data"),
    *("usr/lib/python3.11/lib2to3", "usr/lib/python3.11/idlelib", "usr/lib/python3.11/turtledemo"),
)
#: Who runs: root on nodes, and somebody without rights beside the control plane.
_FILES = {
    "etc/passwd": (
        "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
    ),
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
    "etc/os-release": 'PRETTY_NAME="koordlet on Debian 12"\nID=debian\nVERSION_ID=12\n',
}


def build(into: Path, machine: str) -> list[parts.Part]:
    """Fill a folder as if it were ``/`` of a machine; what it is made of."""
    for name in _MERGED:
        (into / "usr" / name).mkdir(parents=True)
        (into / name).symlink_to(f"usr/{name}")
    packages = []
    with tempfile.TemporaryDirectory() as work:
        fetched = Path(work)
        _fetch(fetched, machine)
        for archive in sorted(fetched.glob("*.deb")):
            tree = fetched / "tree"
            commands.run("dpkg-deb", "-x", archive, tree)
            _merge(tree, into)
            status = commands.run("dpkg-deb", "-f", archive)
            packages.append(parts.of_debian(status, commands.sha256(archive)))
    for pattern in _LEFT_OUT:
        for folder in into.glob(pattern):
            shutil.rmtree(folder)
    _only_licences(into / "usr/share/doc")
    for name, text in _FILES.items():
        (into / name).parent.mkdir(exist_ok=True)
        (into / name).write_text(text)
    (into / "tmp").mkdir()
    (into / "tmp").chmod(0o1777)
    environment.compiled(into / "usr/lib/python3.11", "/usr/lib/python3.11")
    return packages


def _fetch(into: Path, machine: str) -> None:
    options = apt_options(into, machine)
    if options:
        commands.run("apt-get", "-q", *options, "update")
    words = ("apt-get", "-q", "-o", "APT::Sandbox::User=", *options, "download")
    commands.run(*words, *PACKAGES, folder=into)


def apt_options(into: Path, machine: str) -> list[str]:
    """Words for apt to get packages of another machine; none for packages of this one.

    They are of the same archives. Their lists are kept in the folder: this machine's stay as they
    are.
    """
    if machine == commands.run("dpkg", "--print-architecture").strip():
        return []
    for name in ("lists/partial", "cache/archives/partial"):
        (into / name).mkdir(parents=True, exist_ok=True)
    settings = [f"APT::Architecture={machine}", f"APT::Architectures::={machine}"]
    settings += [f"Dir::State::lists={into}/lists", f"Dir::Cache={into}/cache"]
    settings += ["Acquire::Languages=none", "APT::Sandbox::User="]
    return [word for setting in settings for word in ("-o", setting)]


def _merge(tree: Path, into: Path) -> None:
    """Move a package's files to where they are on a merged system."""
    for name in _MERGED:
        if (tree / name).is_dir():
            shutil.copytree(tree / name, into / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(tree / name)
    shutil.copytree(tree, into, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(tree)


def _only_licences(documents: Path) -> None:
    for path in sorted(documents.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.name != "copyright" and not (path.is_symlink() and path.parent == documents):
            path.unlink()
