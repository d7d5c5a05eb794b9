"""The kernel image that QEMU starts, and the first file system it sees.

Covers: the ELF file inside a bzImage, the newc archive format, the order in which modules load.
Does not cover: the root disk (``root``), what runs in the guest (``guest/``).
"""

from __future__ import annotations

import dataclasses
import lzma
import pathlib
import stat
import struct
from collections.abc import Iterable, Mapping

from tests.vm import packages, tool

#: Offsets in the boot sector, named as in the kernel's Documentation/arch/x86/boot.rst.
SETUP_SECTS, PAYLOAD_OFFSET = 0x1F1, 0x248
SECTOR = 512
XZ_MAGIC = b"\xfd7zXZ\0"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
#: Where arm64's image says that it is one: Documentation/arm64/booting.rst. It is not packed.
ARM64_MAGIC = slice(0x38, 0x3C), b"ARMd"


def bootable(image: bytes) -> bytes:
    """What QEMU starts of a package's kernel: of arm64 the image itself."""
    place, magic = ARM64_MAGIC
    return image if image[place] == magic else vmlinux(image)


def vmlinux(bzimage: bytes) -> bytes:
    """The ELF kernel packed into a bzImage.

    QEMU starts an ELF kernel at its PVH entry, and no unpacking is done by emulated instructions:
    that saves 5 s and more of each boot.
    """
    sectors = bzimage[SETUP_SECTS] or 4
    offset, length = struct.unpack_from("<II", bzimage, PAYLOAD_OFFSET)
    start = (sectors + 1) * SECTOR + offset
    payload = bzimage[start : start + length]
    packed = payload[:-4]  # the last four bytes are the unpacked size
    if packed.startswith(XZ_MAGIC):
        return lzma.decompress(packed)
    if packed.startswith(ZSTD_MAGIC):
        return tool.filter_through(["zstd", "-dcq"], packed)
    raise ValueError("the kernel's payload is neither xz nor zstd")


def load_order(modules: pathlib.Path, wanted: Iterable[str]) -> list[pathlib.Path]:
    """The files of the wanted modules, each after all it needs; ``modules.dep`` has the truth."""
    needs: dict[str, list[str]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        name, _, rest = line.partition(":")
        needs[name] = rest.split()
    by_name = {_module_name(path): path for path in needs}
    order: list[str] = []
    for module in wanted:
        path = by_name.get(module.replace("-", "_"))
        # A module that is not there is part of the kernel itself.
        for file in [*reversed(needs[path]), path] if path else []:
            if file not in order:
                order.append(file)
    return [modules / path for path in order]


def initramfs(busybox: pathlib.Path, script: pathlib.Path, modules: pathlib.Path) -> bytes:
    """The archive that loads the modules and mounts the root disk, as ``script`` says."""
    applets = ("sh", "insmod", "mkdir", "mount", "switch_root", "poweroff", "cat")
    entries = {
        "init": Entry(stat.S_IFREG | 0o755, script.read_bytes()),
        "bin/busybox": Entry(stat.S_IFREG | 0o755, busybox.read_bytes()),
        **{f"bin/{applet}": Entry(stat.S_IFLNK | 0o777, b"busybox") for applet in applets},
        "dev/console": Entry(stat.S_IFCHR | 0o600, device=(5, 1)),
    }
    entries |= module_entries(modules)
    for folder in ("bin", "dev", "modules", "proc", "root", "run", "sys"):
        entries[folder] = Entry(stat.S_IFDIR | 0o755)
    return newc(entries)


def module_entries(modules: pathlib.Path) -> dict[str, Entry]:
    """The modules that mount the root disk, unpacked, and the file that says in which order."""
    order = load_order(modules, (*packages.BOOT_MODULES, *packages.BOOT_MODULES_LATE))
    entries = {}
    for path in order:
        content = path.read_bytes()
        unpacked = lzma.decompress(content) if path.suffix == ".xz" else content
        name = path.name.removesuffix(".xz")
        entries[f"modules/{name}"] = Entry(stat.S_IFREG | 0o644, unpacked)
    names = "".join(f"/{name}\n" for name in entries)
    return {**entries, "modules/order": Entry(stat.S_IFREG | 0o644, names.encode())}


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive."""

    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def newc(entries: Mapping[str, Entry]) -> bytes:
    """A cpio archive in the "newc" format, which is what the kernel unpacks.

    Sorted by name, so a folder comes before what is in it and equal input gives equal bytes.
    """
    archive = bytearray()
    for number, name in enumerate(sorted(entries), start=1):
        _put(archive, number, name, entries[name])
    _put(archive, 0, "TRAILER!!!", Entry(0))
    return bytes(archive)


def _put(archive: bytearray, number: int, name: str, entry: Entry) -> None:
    path = name.encode() + b"\0"
    fields = (
        *(number, entry.mode, 0, 0, 1, 0, len(entry.content)),  # .., uid, gid, links, mtime, size
        *(0, 0, *entry.device, len(path), 0),  # device it is on, device it is, .., checksum
    )
    archive += b"070701" + b"".join(b"%08x" % field for field in fields)
    for block in (path, entry.content):
        archive += block
        archive += bytes(-len(archive) % 4)


def _module_name(path: str) -> str:
    return pathlib.PurePath(path).name.partition(".ko")[0].replace("-", "_")
