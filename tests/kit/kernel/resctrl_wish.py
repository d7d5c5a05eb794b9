"""What a stand-in processor has of resource control, and the resources that come of it.

Covers: the words of a wish, the table of resources after a mount, the files of ``info``.
Does not cover: groups (``resctrl``), the rules of a value (``resctrl_values``).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.resctrl_values import Resource


@dataclasses.dataclass(frozen=True)
class Wish:
    """What the processor has, in the words that the emulator takes (``KOORDLAB_RDT``)."""

    amd: bool = False
    l3: bool = True
    l2: bool = False
    #: The processor can do CDP; the mount option switches it on.
    cdp: bool = False
    mba: bool = True
    mon: bool = True
    ways: int = 12
    classes: int = 16
    #: The most that Intel throttles, in percent.
    throttle: int = 90
    rmids: int = 64

    @classmethod
    def parse(cls, text: str) -> Wish:
        """``intel,cdp,l2,cbm=20``."""
        words = text.split(",")
        numbers = dict(word.split("=") for word in words if "=" in word)
        amd = "amd" in words
        return cls(
            amd=amd,
            l3="nol3" not in words,
            l2="l2" in words,
            cdp="cdp" in words,
            mba="nomba" not in words,
            mon="nomon" not in words,
            ways=int(numbers.get("cbm", 16 if amd else 12)),
            classes=int(numbers.get("cos", 16)),
            throttle=int(numbers.get("mba", 90)),
            rmids=int(numbers.get("rmids", 64)),
        )

    @property
    def vendor(self) -> str:
        """``vendor_id`` of ``/proc/cpuinfo``."""
        return "AuthenticAMD" if self.amd else "GenuineIntel"

    @property
    def flags(self) -> str:
        """``flags`` of ``/proc/cpuinfo``."""
        names = {"cat_l3": self.l3, "cat_l2": self.l2, "cdp_l3": self.cdp, "mba": self.mba}
        return " ".join(["fpu", *(name for name, has in names.items() if has)])

    @property
    def alloc(self) -> bool:
        """Anything to allocate."""
        return self.l3 or self.l2 or self.mba


def resources(wish: Wish, l3: Mapping[int, CPUSet], options: tuple[str, ...]) -> Iterator[Resource]:
    """In the order of the file."""
    cdp = "cdp" in options
    widths = [-(-wish.ways // 4) if wish.l3 else 0, 2 if wish.l2 else 0]
    widths.append((4 if wish.amd else 3) if wish.mba else 0)
    width = max(widths)
    if wish.mba:
        yield Resource(
            "MB",
            wish.classes if wish.amd else 8,
            l3,
            2048 if wish.amd else 100,
            minimum=0 if wish.amd else 100 - wish.throttle,
            gran=1 if wish.amd else 100 - wish.throttle,
            width=width,
            mbps="mba_MBps" in options,
        )
    if wish.l2:
        cores = [CPUSet.of([cpu, cpu + 1]) for cpus in l3.values() for cpu in list(cpus)[::2]]
        yield Resource("L2", 8, dict(enumerate(cores)), 0xFF, width=width)
    if wish.l3:
        names = ("L3DATA", "L3CODE") if cdp else ("L3",)
        shareable = 0 if wish.amd else 3 << max(0, wish.ways - 2)
        for name in names:
            yield Resource(
                name,
                wish.classes // len(names),
                l3,
                (1 << wish.ways) - 1,
                shareable=shareable & ((1 << wish.ways) - 1),
                min_bits=0 if wish.amd else 1,
                sparse=wish.amd,
                width=width,
            )


def facts(
    resource: Resource, wish: Wish, online: Callable[[], CPUSet], modes: Callable[[str], str]
) -> dict[str, Callable[[], str]]:
    """``info/NAME``."""
    texts: dict[str, str] = {"num_closids": str(resource.num_closids)}
    if resource.cache:
        texts |= {
            "cbm_mask": f"{resource.full:x}",
            "min_cbm_bits": str(resource.min_bits),
            "shareable_bits": f"{resource.shareable:x}",
        }
    else:
        texts |= {
            "bandwidth_gran": str(resource.gran),
            "min_bandwidth": str(resource.minimum),
            "delay_linear": "0" if wish.amd else "1",
        }
        if not wish.amd:
            texts["thread_throttle_mode"] = "max"
    reads: dict[str, Callable[[], str]] = {}
    for name, text in texts.items():
        reads[name] = functools.partial(str, f"{text}\n")
    if resource.cache:
        reads["bit_usage"] = lambda: _usage(resource, online(), modes)
    return reads


def _usage(resource: Resource, online: CPUSet, modes: Callable[[str], str]) -> str:
    """``X`` hardware and software, ``H`` hardware, ``S`` shared, ``E`` exclusive, ``0`` unused."""

    def letter(domain: int, bit: int) -> str:
        sharings = [modes(key) for key, v in resource.values.items() if v[domain] >> bit & 1]
        if resource.shareable >> bit & 1:
            return "X" if sharings else "H"
        return "E" if "exclusive" in sharings else "S" if sharings else "0"

    bits = range(resource.full.bit_length() - 1, -1, -1)
    domains = resource.up(online)
    return ";".join(f"{d}=" + "".join(letter(d, b) for b in bits) for d in domains) + "\n"
