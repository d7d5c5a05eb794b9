"""Other kernels than that of the image: Debian's of another suite, or one with all built in.

Covers: which kernel is wanted, fetching and unpacking it, its modules for the first file system and
as a disk that is mounted over those of the image. Does not cover: the rest of the guest, which
stays as it is (``image``).

``KOORDLET_VM_KERNEL`` names the kernel of every machine that asks for no other: a suite of
Debian's (``trixie``, ``trixie-backports``, ``sid``), or the path of an ELF file.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping

from tests.kit import debian
from tests.vm import board, cache, image, kernel, packages, root, tool

VARIABLE = "KOORDLET_VM_KERNEL"
#: Where the guest has its modules.
MODULES = "/usr/lib/modules"
#: What makes cpuset and memory controllers of cgroup v1; older kernels had no choice.
_LEGACY = ("CPUSETS_V1", "MEMCG_V1")
#: What belongs to one kernel, of all that its package needs. Some suites have it in four parts.
_PARTS = re.compile(r"linux-(image|binary|modules|base)-\d")


@dataclasses.dataclass(frozen=True, slots=True)
class Kernel:
    """One that takes the place of the image's."""

    vmlinux: pathlib.Path
    #: What the first file system has in place of the image's modules.
    entries: Mapping[str, kernel.Entry]
    #: Mounted over the image's modules.
    disks: Mapping[str, pathlib.Path]
    #: Whether cgroup v1 has all of its controllers; newer kernels of Debian's have not.
    legacy: bool = True


def chosen(suite: str | None = None, built: pathlib.Path | None = None) -> Kernel | None:
    """The kernel that a machine shall have; None for the image's own."""
    named = os.environ.get(VARIABLE, "") if suite is None else suite
    if built is None and "/" in named:
        built = pathlib.Path(named)
    if built is not None:
        order = kernel.Entry(stat.S_IFREG | 0o644)
        return Kernel(built, {"modules/order": order}, {})
    return of_suite(named) if named and named != debian.SUITE else None


@functools.cache
def of_suite(suite: str) -> Kernel:
    """Debian's kernel of a suite, in the version of the day when it was fetched first."""
    own = [
        pathlib.Path(__file__).with_name(f"{module}.py")
        for module in ("kernels", "packages", "root")
    ]
    folder = cache.once("kernel", cache.digest(suite, *own), functools.partial(_build, suite))
    (modules,) = (folder / "boot").iterdir()
    config = (folder / "config").read_text()
    return Kernel(
        folder / "vmlinux",
        kernel.module_entries(modules),
        {MODULES: folder / "modules.img"},
        legacy=not any(f"# CONFIG_{name} is not set" in config for name in _LEGACY),
    )


def _build(suite: str, into: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(prefix="work-", dir=into.parent) as work:
        archives, unpacked, tree = (pathlib.Path(work) / name for name in ("debs", "all", "tree"))
        for folder in (archives, unpacked, tree / "usr/lib"):
            folder.mkdir(parents=True)
        (tree / "lib").symlink_to("usr/lib")
        with cache.step(f"fetched the kernel of {suite}"):
            _fetch(suite, archives)
        with cache.step("unpacked it"):
            for archive in sorted(archives.glob("*.deb")):
                root.extract(archive, unpacked)
            (source,) = (unpacked / "usr/lib/modules").iterdir()
            modules = root.copy_modules(source, tree)
            (bzimage,) = (*unpacked.glob("boot/vmlinuz-*"), *source.glob("vmlinuz"))
            (into / "vmlinux").write_bytes(kernel.vmlinux(bzimage.read_bytes()))
            (config,) = (*unpacked.glob("boot/config-*"), *source.glob("config"))
            (into / "config").write_bytes(config.read_bytes())
        image.make_disk(tree / "usr/lib/modules", into / "modules.img", "256M")
        _keep_for_boot(modules, into / "boot" / modules.name)


def _fetch(suite: str, into: pathlib.Path) -> None:
    try:
        apt = debian.Archive(into / "apt", suite)
        wanted = parts(apt.needs, suite)
        apt.download(into, *(f"{name}/{suite}" for name in sorted(wanted)))
    except debian.FetchError as error:
        raise tool.ToolError(str(error)) from error


def parts(needs: Callable[[str], Iterable[str]], suite: str) -> set[str]:
    """The packages that make the suite's kernel, of what the packages say that they need."""
    wanted, needed = [board.X86.kernel], set[str]()
    while wanted:
        fresh = {name for name in needs(f"{wanted.pop()}/{suite}") if _PARTS.match(name)} - needed
        needed |= fresh
        wanted += sorted(fresh)
    if not needed:
        raise debian.FetchError(f"{board.X86.kernel} of {suite} needs no kernel")
    return needed


def _keep_for_boot(modules: pathlib.Path, into: pathlib.Path) -> None:
    """The few modules that the first file system needs, where ``modules.dep`` says they are."""
    names = (*packages.BOOT_MODULES, *packages.BOOT_MODULES_LATE)
    wanted = [path.relative_to(modules) for path in kernel.load_order(modules, names)]
    for path in (pathlib.Path("modules.dep"), *wanted):
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_bytes((modules / path).read_bytes())
