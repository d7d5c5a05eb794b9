"""Queueing of a network link: making, changing and removing an HTB tree.

Covers: one action for one side of one link.
Does not cover: the texts and whose they are (``model.queueing``), reading
(``host.devices.queueing``).

Rules:
1. A qdisc of another program is never replaced, even one that appeared after the plan was made.
2. A tree is changed in place, so that no packet is lost: new classes and filters are added before
   the old ones are removed.
3. Ingress is redirected to koordlet's ``ifb`` device once the device's tree is complete, and the
   redirect is removed before the device: a redirect to nowhere loses every packet.
4. Removing the root brings back the kernel's default (``net.core.default_qdisc``); a difference
   from the original is reported.
"""

from __future__ import annotations

import errno
import ipaddress
from typing import Any

from koordlet.host.devices import queueing as reader
from koordlet.host.fs import root
from koordlet.model import action, queueing
from koordlet.state import journal

_ROOT = queueing.HANDLE << 16
#: A class may send so much at once: 4 ms of its rate, and a packet of the largest size at least.
_BURST_PARTS, _LEAST_BURST = 250, 64 << 10
#: Bytes of one class before it is another's turn.
_QUANTUM = 60_000
#: Packets that wait in the device of a detour; its own default of 32 drops at every burst.
_WAITING = 1000
_ALL = 0x0003


def carry_out(host: root.HostRoot, wanted: action.SetQdisc) -> tuple[str, str]:
    """Set one side of a link; returns what is read back, and what differs."""
    side = queueing.of_target(wanted.target)
    if not host.live or side is None:
        raise OSError(errno.EOPNOTSUPP, "the host's network is not available", wanted.target)
    link, direction = side
    current = reader.side(host, link, direction)
    if current is None:
        raise OSError(errno.ENODEV, "the link is gone", wanted.target)
    if not queueing.is_ours(current) and not queueing.is_free(current):
        raise OSError(errno.EBUSY, f"another program set {current}", wanted.target)
    reader.apart(lambda route: _set(route, link, direction, wanted.value))
    after = reader.side(host, link, direction) or ""
    return after, "" if after == wanted.value else f"asked for {wanted.value!r}, is {after!r}"


def undo(entry: journal.Entry) -> action.SetQdisc:
    """The action that removes koordlet's queueing, even where the journal has it as original."""
    before = entry.original
    return action.SetQdisc(
        target=entry.target,
        value=queueing.NONE if before is None or queueing.is_ours(before) else before,
        policy=entry.policy,
        reason="restore what was before koordlet",
    )


def _set(route: Any, link: str, direction: str, value: str) -> None:
    index = _index(route, link)
    if index is None:
        raise OSError(errno.ENODEV, "the link is gone", link)
    wanted = queueing.parse(value) if queueing.is_ours(value) else None
    if direction == queueing.EGRESS:
        if wanted is not None:
            _shape(route, index, wanted, reads_source=True)
        elif _is_ours(route, index):
            route.tc("del", "htb", index, _ROOT)
        return
    if wanted is None:
        _straight(route, index)
    else:
        _lead(route, index, wanted)


def _index(route: Any, name: str) -> int | None:
    indexes = route.link_lookup(ifname=name)
    return indexes[0] if indexes else None


def _is_ours(route: Any, index: int) -> bool:
    return any(qdisc["index"] == index and qdisc["handle"] == _ROOT for qdisc in route.get_qdiscs())


def _ingresses(route: Any, index: int) -> bool:
    return any(
        qdisc["index"] == index and qdisc["parent"] == reader.INGRESS_PARENT
        for qdisc in route.get_qdiscs()
    )


def _lead(route: Any, index: int, wanted: queueing.Tree) -> None:
    """Rule 3: through a device whose tree is complete."""
    name = queueing.detour(index)
    through = _index(route, name)
    if through is None:
        route.link("add", ifname=name, kind="ifb", txqlen=_WAITING)
        through = _index(route, name)
    if through is None:
        raise OSError(errno.ENODEV, "the ifb device is gone", name)
    route.link("set", index=through, state="up")
    _shape(route, through, wanted, reads_source=False)
    if not _ingresses(route, index):
        route.tc("add", "ingress", index, reader.INGRESS_HANDLE)
    if not list(route.get_filters(index=index, parent=reader.INGRESS_HANDLE)):
        route.tc(
            "add-filter",
            "u32",
            index,
            parent=reader.INGRESS_HANDLE,
            prio=1,
            protocol=_ALL,
            target=0,
            keys=["0x0/0x0+0"],
            action={
                "kind": "mirred",
                "direction": "egress",
                "action": "redirect",
                "ifindex": through,
            },
        )


def _straight(route: Any, index: int) -> None:
    through = _index(route, queueing.detour(index))
    if through is None:
        return
    if _ingresses(route, index):
        route.tc("del", "ingress", index, reader.INGRESS_HANDLE)
    route.link("del", index=through)


# One tree ----------------------------------------------------------------------------------------


def _shape(
    route: Any,
    index: int,
    wanted: queueing.Tree,
    *,
    reads_source: bool,
) -> None:
    """Rule 2: the tree of a link, whatever of it is there already."""
    if not _is_ours(route, index):
        route.tc("add", "htb", index, _ROOT, default=wanted.default)
    known = reader.tree(route, index, wanted.default)
    for minor, tc_class in sorted(wanted.classes.items(), key=lambda each: each[1].parent):
        before = known.classes.get(minor)
        if before != tc_class:
            _class(route, index, minor, tc_class)
    old = list(reader.filters(route, index))
    there = {text: minor for text, minor, _ in old}
    for text, minor in wanted.addresses.items():
        if there.get(text) != minor:
            _filter(route, index, text, minor, reads_source=reads_source)
    for text, minor, message in old:
        if wanted.addresses.get(text) != minor:
            _remove(route, index, message)
    for minor in sorted(known.classes.keys() - wanted.classes.keys(), reverse=True):
        route.tc("del-class", "htb", index, _ROOT | minor)


def _class(route: Any, index: int, minor: int, tc_class: queueing.Class) -> None:
    rate, ceil = tc_class.rate // 8, tc_class.ceil // 8
    route.tc(
        "replace-class",
        "htb",
        index,
        _ROOT | minor,
        parent=_ROOT | tc_class.parent,
        rate=rate,
        ceil=ceil,
        prio=tc_class.priority,
        burst=max(_LEAST_BURST, rate // _BURST_PARTS),
        cburst=max(_LEAST_BURST, ceil // _BURST_PARTS),
        quantum=_QUANTUM,
    )


def _filter(
    route: Any,
    index: int,
    text: str,
    minor: int,
    *,
    reads_source: bool,
) -> None:
    raw = ipaddress.ip_address(text).packed
    protocol = 0x0800 if len(raw) == len(b"IPv4") else 0x86DD
    source, destination, words = reader.ETHERNET[protocol]
    first = source if reads_source else destination
    route.tc(
        "add-filter",
        "u32",
        index,
        parent=_ROOT,
        # The kernel wants one number for each protocol.
        prio=10 if protocol == 0x0800 else 11,
        protocol=protocol,
        target=_ROOT | minor,
        keys=[
            f"0x{raw[4 * each : 4 * each + 4].hex()}/0xffffffff+{first + 4 * each}"
            for each in range(words)
        ],
    )


def _remove(route: Any, index: int, message: Any) -> None:
    info = message["info"]
    route.tc(
        "del-filter",
        "u32",
        index,
        handle=message["handle"],
        parent=_ROOT,
        prio=info >> 16,
        protocol=int.from_bytes((info & 0xFFFF).to_bytes(2, "little"), "big"),
        target=0,
    )
