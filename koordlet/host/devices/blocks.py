"""Block devices of this machine, and which of them pods have mounted.

Covers: ``/proc/diskstats``, ``/sys/class/block``, the kubelet's volumes in mountinfo, files of the
cost model. Does not cover: what a name means (``model.blocks``), PCI devices
(``host.topology.devices``).

Read only where somebody limits block devices, with the slow lane. What sysfs does not say (in a
recording, in a container) leaves a device without partitions and groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from koordlet.host.fs import root
from koordlet.model import blocks, cgroup, knob

#: A volume of a pod of the kubelet: its UID, and the directory that names the volume.
_VOLUME = re.compile(r".*/pods/([0-9a-f-]{36})/volumes/[^/]+/([^/]+)(?:/mount)?\Z")
_NAME = re.compile(r"[\w!.-]{1,64}\Z", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,4}:[0-9]{1,7}\Z")
_COST = (knob.IO_COST_QOS, knob.IO_COST_MODEL)

#: Of a machine that nothing is known of yet.
NOTHING = blocks.Blocks()


def read(host: root.HostRoot, layout: cgroup.Layout) -> blocks.Blocks:
    """All of it; what may not be read is not there. Silence raises."""
    return blocks.Blocks(
        devices=tuple(_device(host, name, number) for name, number in _listed(host)),
        volumes={
            (match[1], match[2]): number
            for number, place in _mounted(host)
            if (match := _VOLUME.match(place)) is not None
        },
        cost_files=frozenset(
            row.name
            for row in _COST
            if (path := layout.file(row, "")) is not None and host.exists(host.at(path))
        ),
    )


def _lines(host: root.HostRoot, *path: str) -> list[list[str]]:
    text = host.silence.answer(lambda: host.text(host.proc(*path)), "")
    return [line.split() for line in text.splitlines()]


def _listed(host: root.HostRoot) -> Iterator[tuple[str, str]]:
    """Names and numbers, partitions included."""
    for fields in _lines(host, "diskstats"):
        if len(fields) > 2 and _NAME.match(fields[2]):
            number = f"{fields[0]}:{fields[1]}"
            if _NUMBER.match(number):
                yield fields[2], number


def _mounted(host: root.HostRoot) -> Iterator[tuple[str, str]]:
    """Number and place of each mount."""
    for fields in _lines(host, "1", "mountinfo") or _lines(host, "self", "mountinfo"):
        if len(fields) > 4:
            yield fields[2], fields[4]


def _device(host: root.HostRoot, name: str, number: str) -> blocks.Block:
    at = host.sys("class", "block", name)
    mapped = _word(host, host.below(at, "dm", "name"))
    return blocks.Block(
        name=name,
        number=number,
        disk=_disk(host, at) if host.exists(host.below(at, "partition")) else "",
        mapped=mapped,
        volume_group=blocks.volume_group(mapped, _word(host, host.below(at, "dm", "uuid"))),
        below=tuple(host.silence.answer(lambda: host.list(host.below(at, "slaves")), [])),
    )


def _disk(host: root.HostRoot, at: root.HostPath) -> str:
    """A partition is a directory in that of its device; the link leads there."""
    steps = host.silence.answer(lambda: host.readlink(at), "").split("/")
    return steps[-2] if len(steps) > 1 else ""


def _word(host: root.HostRoot, path: root.HostPath) -> str:
    return host.silence.answer(lambda: host.text(path), "").strip()
