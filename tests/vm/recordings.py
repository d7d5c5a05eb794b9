"""``python -m tests.vm.recordings [SHAPE …]``: records our virtual machines as fixtures.

Covers: booting each shape, ``koordlet record`` in it, cutting the archive to what topology needs,
and the expected answer from the guest's own lscpu, lstopo and numactl (``probes/witnesses.py``).
Does not cover: comparing the two (``tests/host/topology/test_discovery.py``).

A recording is written only with what the other tools said: koordlet has no say in its own answers.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tarfile

from tests.kit import machines
from tests.vm import cache, machine, project, shape

FIXTURES = project.REPO / "fixtures" / "sysfs"
WITNESSES = pathlib.Path(__file__).parent / "probes" / "witnesses.py"
_WANTED = (
    "proc/cmdline",
    "proc/cpuinfo",
    "proc/sys/kernel/arch",
    "proc/version",
    "sys/bus/pci/",
    "sys/class/",
    "sys/devices/",
)


def main(names: list[str]) -> None:
    """Records the named shapes, or all."""
    for name in names or list(shape.SHAPES):
        with machine.boot(name) as guest:
            answer = guest.python(WITNESSES)
            command = "python3 -m koordlet record /run/vm/out/machine.tar.gz --for 0s"
            guest.run(command).check()
            tree = cut(guest.out / "machine.tar.gz")
        (FIXTURES / f"vm-{name}.tar.gz").write_bytes(machines.to_archive(tree))
        (FIXTURES / f"vm-{name}.json").write_text(json.dumps(answer, indent=2) + "\n")
        cache.say(f"recorded {name}: {len(tree)} files")


def cut(path: pathlib.Path) -> machines.Tree:
    """The recorded files that topology reads."""
    tree: machines.Tree = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.removeprefix("root/")
            if not name.startswith(_WANTED) or name == member.name:
                continue
            if member.issym():
                tree[name] = f"->{member.linkname}"
            elif (file := archive.extractfile(member)) is not None:
                tree[name] = file.read().decode()
    return tree


if __name__ == "__main__":
    main(sys.argv[1:])
