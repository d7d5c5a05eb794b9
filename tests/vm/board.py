"""The boards that machines have: what differs between processors, as data.

Covers: Debian's name of the machine, its kernel, the emulator, processor and clock, the console.
Does not cover: how many processors (``shape``), devices (``qemu``).

Emulated x86 processors have no performance counters. An emulated arm64 one has, where the emulator
counts instructions (``-icount``): cycles are the nanoseconds of its own time, and each instruction
takes ``2**shift`` of them, so cycles per instruction are known. Such a machine skips all time in
which it has nothing to do.
"""

from __future__ import annotations

import dataclasses

from tests.vm import tool
from tools.release import environment


@dataclasses.dataclass(frozen=True, slots=True)
class Board:
    """One kind of machine."""

    #: Debian's name of the machine.
    machine: str
    #: The package whose first dependency is the kernel to boot.
    kernel: str
    emulator: str
    #: What it is installed by.
    package: str
    #: Arguments of the emulator for board and accelerator; the kernel's words that go with them.
    arguments: tuple[str, ...]
    words: str


#: TCG's cycle counter is the host's, which jumps ahead of QEMU's own clock when the host is busy;
#: timers then fire as fast as they are set, and about one boot in a hundred never ends. So time
#: comes from a clock that QEMU keeps; boots take as long as before.
_STEADY = "tsc=unstable clocksource=acpi_pm"

X86 = Board(
    environment.AMD64,
    "linux-image-amd64",
    "qemu-system-x86_64",
    tool.PACKAGES,
    ("-machine", "q35,hpet=off", "-accel", "tcg,thread=multi"),
    f"console=ttyS0 8250.nr_uarts=1 {_STEADY}",
)


def arm64(shift: int | None) -> Board:
    """One that counts, on which an instruction takes ``2**shift`` cycles; None: one that cannot."""
    counters = ("-icount", f"shift={shift},sleep=off")
    return Board(
        environment.ARM64,
        "linux-image-arm64",
        "qemu-system-aarch64",
        "qemu-system-arm",
        (
            *("-machine", "virt,gic-version=3", "-accel", "tcg"),
            *("-cpu", "cortex-a57" if shift is not None else "cortex-a57,pmu=off"),
            *(counters if shift is not None else ()),
            # Programs may ask for a character, and wait for it for ever.
            *("-chardev", "null,id=never"),
            *("-semihosting-config", "enable=on,userspace=on,target=native,chardev=never"),
        ),
        "console=ttyAMA0",
    )
