"""Files that say on which CPUs the kernel's own work runs: interrupts, unbound work queues.

Covers: finding and reading them. Does not cover: what they shall say (``policy.cpu.housekeeping``).

Kernel facts: Documentation/core-api/irq/irq-affinity.rst; Documentation/core-api/workqueue.rst. An
interrupt whose CPUs the kernel manages itself (each queue of an NVMe disk) cannot be written: its
file is read-only on newer kernels, on older ones a write is answered with EIO.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from koordlet.host.fs import root

_WRITABLE = 0o200
_NONE: Mapping[str, str] = MappingProxyType({})


def read(host: root.HostRoot, last: Mapping[str, str] = _NONE) -> Mapping[str, str]:
    """Path to text, as far as it can be written; interrupts first, in their order.

    What gets no answer says what it said ``last``.
    """
    texts: dict[str, str] = {}
    try:
        paths = list(_files(host))
    except OSError as error:
        host.silence.met(error, known=bool(last))
        return last
    for path in paths:
        try:
            if host.stat(path).mode & _WRITABLE:
                texts[path] = host.text(path).strip()
        except OSError as error:
            # Else the device is gone, or this kernel has no such file.
            if host.silence.met(error, known=path in last) and path in last:
                texts[path] = last[path]
    return texts


def _files(host: root.HostRoot) -> Iterator[root.HostPath]:
    names = host.silence.answer(lambda: host.list(host.proc("irq")), list[str]())
    for number in sorted(int(name) for name in names if name.isdecimal()):
        yield host.proc("irq", str(number), "smp_affinity_list")
    #: Of interrupts that are set up later.
    yield host.proc("irq", "default_smp_affinity")
    yield host.sys("devices", "virtual", "workqueue", "cpumask")
