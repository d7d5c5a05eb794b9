"""The kernel, the first file system and the root disk of the guest, built once.

Covers: fetching Debian packages with the machine's own apt settings, and putting the three files
together. Does not cover: the project's own disks (``project``), booting (``machine``).

The packages come in whatever version apt knows when the image is built; an image that exists is
used until the list of packages or a source file of the harness changes.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import tempfile
from collections.abc import Sequence

from tests.vm import board, cache, kernel, packages, root, tool
from tools.release import debian

#: Room of the root disk: a sparse file, so only what is used takes space.
ROOT_SIZE = "2G"
#: No journal and no checksums: the disk is thrown away after each run.
EXT4_FEATURES = "^has_journal,^metadata_csum,^resize_inode"


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """Paths of the built files."""

    kernel: pathlib.Path
    initramfs: pathlib.Path
    disk: pathlib.Path


def image(wanted: board.Board = board.X86) -> Image:
    """The image, built if this version of it is not in the cache (about a minute)."""
    sources = (*pathlib.Path(__file__).parent.glob("*.py"), *root.GUEST_FILES.iterdir())
    own = ("image.py", "kernel.py", "root.py", "packages.py", "stage1.sh")
    key = cache.digest(
        wanted.kernel,
        *sorted(p for p in sources if p.name in own or p.suffix in (".service", ".target")),
    )
    kind = "base" if wanted == board.X86 else f"base_{wanted.machine}"
    folder = cache.once(kind, key, functools.partial(_build, wanted))
    return Image(folder / "vmlinux", folder / "initramfs", folder / "root.img")


def make_disk(tree: pathlib.Path, disk: pathlib.Path, size: str) -> None:
    """An ext4 image with the content of a folder; needs no mount, and root owns all in it."""
    command = ["mke2fs", "-q", "-t", "ext4", "-m", "0", "-O", EXT4_FEATURES, "-d", str(tree)]
    if os.geteuid():
        command = ["unshare", "--map-root-user", *command]
    tool.run([*command, str(disk), size])


def _build(wanted: board.Board, into: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(prefix="work-", dir=into.parent) as work:
        archives, tree, boot = (pathlib.Path(work) / name for name in ("debs", "root", "boot"))
        for folder in (archives, tree, boot):
            folder.mkdir()
        with cache.step("fetched Debian packages"):
            linux = _fetch(wanted, archives)
        with cache.step("unpacked them"):
            root.unpack([p for p in sorted(archives.glob("*.deb")) if p != linux], tree)
        with cache.step("unpacked the kernel"):
            modules = root.add_modules(linux, tree, boot)
            (bzimage,) = (boot / "boot").glob("vmlinuz-*")
            (into / "vmlinux").write_bytes(kernel.bootable(bzimage.read_bytes()))
        with cache.step("finished the root file system"):
            root.finish(tree)
            busybox, script = tree / "usr/bin/busybox", root.GUEST_FILES / "stage1.sh"
            (into / "initramfs").write_bytes(kernel.initramfs(busybox, script, modules))
        with cache.step("made the root disk"):
            make_disk(tree, into / "root.img", ROOT_SIZE)


def _fetch(wanted: board.Board, archives: pathlib.Path) -> pathlib.Path:
    """Downloads all packages, refreshing apt's lists once if they are absent or too old."""
    options = debian.apt_options(archives, wanted.machine)
    try:
        return _download(wanted, archives, options)
    except tool.ToolError:
        cache.say("apt cannot get all packages: refreshing its lists")
        tool.run(["apt-get", "update", "-q", *options])
        return _download(wanted, archives, options)


def _download(wanted: board.Board, archives: pathlib.Path, options: Sequence[str]) -> pathlib.Path:
    """Downloads the guest's packages with all they need, and the kernel; the kernel's file.

    apt is told that nothing is installed, so it names everything; nothing is installed on the host.
    """
    (archives / "partial").mkdir(exist_ok=True)
    nothing = archives / "status"
    nothing.touch()
    tool.run(
        [
            *("apt-get", "-q", *options),
            *("-y", "--no-install-recommends", "--download-only"),
            *("-o", f"Dir::State::status={nothing}", "-o", f"Dir::Cache::archives={archives}"),
            *("-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="),
            *("install", *packages.GUEST),
        ]
    )
    shown = tool.run(["apt-cache", *options, "depends", "--important", wanted.kernel])
    name = next(line.split()[1] for line in shown.splitlines() if "Depends:" in line)
    tool.run(["apt-get", "-q", *options, "download", name], archives)
    return next(archives.glob(f"{name}_*.deb"))
