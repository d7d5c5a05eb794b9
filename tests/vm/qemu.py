"""The emulator's command line.

Covers: which QEMU is started, with which processor model, devices and kernel command line.
Does not cover: processors and memory (``shape``), running it (``machine``).

Software emulation always (``-accel tcg``): the same on every host, whether or not it has KVM.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Literal

from tests.vm import board, image, kernels, root, shape, tool

Cgroup = Literal["v2", "v1", "hybrid"]

#: Names the folder of a QEMU that emulates resctrl; and how that QEMU is told what to have.
RDT_FOLDER, RDT_WISH = "KOORDLET_RDT_QEMU", "KOORDLAB_RDT"

#: Processor models by vendor. TCG lacks some of their features and says so; none matters here.
MODELS = {"intel": "Icelake-Server-v4", "amd": "EPYC-Rome"}

#: Kernel words that make a short life under emulation faster and steadier.
QUIET = "quiet loglevel=4"
FAST = (
    "mitigations=off audit=0 lsm=capability nowatchdog no_timer_check cryptomgr.notests "
    "random.trust_cpu=on rcupdate.rcu_cpu_stall_suppress=1 panic=-1"
)
#: On kernels after 6.1 the timers of an idle machine fire late by tens of seconds there; ticks that
#: come by themselves never do.
NEWER = "nohz=off highres=off"
#: systemd's words for the three ways to mount cgroups.
SYSTEMD_CGROUP = {
    "v2": "systemd.unified_cgroup_hierarchy=1",
    "v1": "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1",
    "hybrid": "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=0",
}


class NotAvailableError(RuntimeError):
    """The host lacks something that the wanted machine needs; tests skip on it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What machine is wanted."""

    shape: shape.Shape
    cgroup: Cgroup = "v2"
    #: Boot systemd instead of the small init.
    systemd: bool = False
    #: More words for the kernel command line, such as ``isolcpus=2-3``.
    append: tuple[str, ...] = ()
    #: Resource control to emulate: ``intel`` or ``amd``, with options such as ``intel,cdp,cbm=20``.
    rdt: str | None = None
    board: board.Board = board.X86
    #: Another kernel than that of the image.
    kernel: kernels.Kernel | None = None
    #: Folders of the host, mounted read-only, by mount point; live, but slow to import from.
    shares: Mapping[str, pathlib.Path] = dataclasses.field(default_factory=dict)
    #: Disks that are mounted read-only, by mount point.
    disks: Mapping[str, pathlib.Path] = dataclasses.field(default_factory=dict)


def emulator(rdt: str | None, wanted: board.Board) -> tuple[list[str], dict[str, str]]:
    """The program with its first arguments, and the environment it is started in."""
    environment = {k: v for k, v in tool.environment().items() if k != RDT_WISH}
    if rdt is None:
        program = shutil.which(wanted.emulator)
        if program is None:
            raise NotAvailableError(str(tool.missing(wanted.emulator, wanted.package)))
        return [program], environment
    named = os.environ.get(RDT_FOLDER)
    if not named:
        raise NotAvailableError(
            f"rdt={rdt} is not available: plain QEMU has no resource control; set {RDT_FOLDER} "
            "to a folder that holds a qemu-system-x86_64 which has, and its share/"
        )
    folder = pathlib.Path(named)
    if not (folder / "qemu-system-x86_64").is_file():
        raise NotAvailableError(f"rdt={rdt} is not available: no qemu-system-x86_64 in {folder}")
    environment[RDT_WISH] = rdt
    return [str(folder / "qemu-system-x86_64"), "-L", str(folder / "share")], environment


def arguments(options: Options, files: image.Image, run: pathlib.Path) -> list[str]:
    """All arguments but the program. ``run`` holds the console and the folder ``control``.

    Commands reach the guest through QEMU's standard input; its end is the end of the machine.
    """
    vendor = "amd" if "amd" in (options.rdt or "").split(",") else "intel"
    model = ("-cpu", MODELS[vendor]) if options.board is board.X86 else ()
    return [
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *options.board.arguments,
        *model,
        *options.shape.qemu(),
        *("-kernel", str(files.kernel), "-initrd", str(files.initramfs)),
        *("-append", command_line(options)),
        *("-serial", f"file:{run / 'console'}"),
        *("-device", "virtio-rng-pci"),
        *("-device", "virtio-serial-pci", "-chardev", "stdio,id=jobs,signal=off"),
        *("-device", "virtserialport,nr=1,chardev=jobs"),
        *_disk(0, files.disk, "snapshot=on"),
        *(word for i, disk in enumerate(options.disks.values(), 1) for word in _ro_disk(i, disk)),
        *_share("control", run / "control", "readonly=off"),
        *(
            word
            for i, folder in enumerate(options.shares.values())
            for word in _share(f"share{i}", folder.resolve(), "readonly=on")
        ),
    ]


def command_line(options: Options) -> str:
    """The kernel's command line."""
    words = [QUIET, FAST, options.board.words, *options.shape.append()]
    if options.kernel is not None and options.kernel.disks:
        words.append(NEWER)
    mounts = [f"ext4,/dev/vd{'bcdefgh'[i]},{at}" for i, at in enumerate(options.disks)]
    mounts += [f"9p,share{i},{at}" for i, at in enumerate(options.shares)]
    words += [f"vm.mount={mount}" for mount in mounts]
    if options.systemd:
        words += ["vm.init=/sbin/init systemd.unit=vm.target systemd.show_status=0"]
        words += [SYSTEMD_CGROUP[options.cgroup]]
    else:
        words += ["vm.init=/run/vm/init.sh"]
    return " ".join([*words, *options.append])


def guest_scripts() -> list[pathlib.Path]:
    """Scripts that the guest runs out of the control folder."""
    return [root.GUEST_FILES / name for name in ("init.sh", "agent.sh")]


def _disk(number: int, path: pathlib.Path, mode: str) -> list[str]:
    drive = f"file={_escaped(path)},format=raw,if=none,id=disk{number},{mode}"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive=disk{number}"]


def _ro_disk(number: int, path: pathlib.Path) -> list[str]:
    return _disk(number, path, "readonly=on")


def _share(tag: str, folder: pathlib.Path, mode: str) -> list[str]:
    option = f"local,path={_escaped(folder)},mount_tag={tag},id={tag},security_model=none,{mode}"
    return ["-virtfs", f"{option},multidevs=remap"]


def _escaped(path: pathlib.Path) -> str:
    """QEMU ends a value at a comma unless there are two."""
    return str(path).replace(",", ",,")
