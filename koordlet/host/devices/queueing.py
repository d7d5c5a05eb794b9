"""Reads how network links queue their packets, from the kernel's own tables.

Covers: the links asked for, or those of the default routes; their queueing as texts of
``model.queueing``. Does not cover: changing it (``apply.network``), names of NICs (``netlink``).

Kernel facts (net/sched/sch_htb.c, cls_u32.c): rates are bytes per second, from 2^32 on in an
attribute of their own; a filter's keys are 16 bytes each, mask and value in network order, then an
offset from the network header.

Cost: importing pyroute2 takes 150 ms and 25 MB, so it is imported at the first look, which takes
place only where somebody wants to shape traffic. A look is 5 ms, and is believed for ten seconds
unless something was changed.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import struct
import threading
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from koordlet.host.fs import root
from koordlet.host.process import threads
from koordlet.model import queueing

T = TypeVar("T")

#: Protocol to where its addresses are in the header: source, destination, and how many words.
ETHERNET = {0x0800: (12, 16, 1), 0x86DD: (8, 24, 4)}
#: The root of ``ingress`` and ``clsact``, and where the root of a link hangs.
INGRESS_PARENT, ROOT_PARENT = 0xFFFFFFF1, 0xFFFFFFFF
INGRESS_HANDLE = 0xFFFF0000
_MAIN_TABLE = 254
_BELIEVED = 10.0


def apart(call: Callable[[Any], T]) -> T:
    """Call with a netlink socket, in a thread of its own.

    pyroute2 runs an event loop inside each call, which is refused where the agent's runs.
    """
    results: list[T] = []
    failed: list[OSError] = []

    def run() -> None:
        try:
            # Late: 150 ms and 25 MB, for those who shape traffic.
            import pyroute2  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError as error:
            failed.append(OSError(errno.EOPNOTSUPP, f"pyroute2 is not installed: {error}"))
            return
        try:
            with pyroute2.IPRoute() as route:
                results.append(call(route))
        except pyroute2.NetlinkError as error:
            failed.append(OSError(error.code, str(error)))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="netlink")
    threads.start(thread)
    thread.join()
    if failed:
        raise failed[0]
    return results[0]


class QueueingReader:
    """The links of one host; the same object while they say the same."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._known = queueing.Links()
        self._asked: tuple[str, ...] | None = None
        self._at = 0.0

    def due(self) -> None:
        """Something was changed: the next look looks."""
        self._asked = None

    def look(self, at: float, names: Sequence[str]) -> queueing.Links:
        """These links, or those of the default routes where none is named."""
        asked = tuple(names)
        if not self._host.live or (asked == self._asked and at - self._at < _BELIEVED):
            return self._known
        try:
            links = apart(lambda route: _links(route, asked))
        except OSError as error:
            if self._host.silence.met(error, known=bool(self._known.links)):
                return self._known
            links = queueing.Links(problems=(f"netlink: {error.strerror or error}",))
        self._asked, self._at = asked, at
        self._known = self._known if links == self._known else links
        return self._known


def side(host: root.HostRoot, link: str, direction: str) -> str | None:
    """One side of one link, now; ``None`` where the link is not there. Silence raises."""
    if not host.live:
        return None
    ask = partial(apart, lambda route: _links(route, (link,)))
    links = host.silence.answer(ask, queueing.Links())
    return links.links[0].side(direction) if links.links else None


# Reading -----------------------------------------------------------------------------------------


def _links(route: Any, names: Sequence[str]) -> queueing.Links:
    by_name = {link.get_attr("IFLA_IFNAME"): link["index"] for link in route.get_links()}
    ways = _default(route)
    index_of = {index: name for name, index in by_name.items()}
    wanted = list(names) or [index_of[way] for way in ways if way in index_of]
    qdiscs = _qdiscs(route)
    missing = [f"no network interface {name!r}" for name in wanted if name not in by_name]
    if not wanted:
        missing.append("no default route, and no interface is configured")
    return queueing.Links(
        links=tuple(
            queueing.Link(
                name=name,
                index=by_name[name],
                egress=_root(route, by_name[name], qdiscs),
                ingress=_ingress(route, by_name[name], by_name, qdiscs),
            )
            for name in wanted
            if name in by_name
        ),
        problems=tuple(missing),
    )


def _default(route: Any) -> list[int]:
    """Links of the default routes, IPv4 first."""
    links: list[int] = []
    for default_route in route.get_default_routes(table=_MAIN_TABLE):
        ways = [default_route.get_attr("RTA_OIF")]
        ways += [each["oif"] for each in default_route.get_attr("RTA_MULTIPATH") or ()]
        links += [each for each in ways if each and each not in links]
    return links


class _Qdisc(typing.NamedTuple):
    kind: str
    handle: int
    default: int


def _qdiscs(route: Any) -> dict[tuple[int, int], _Qdisc]:
    """Queueing disciplines by interface and parent."""
    qdiscs = {}
    for qdisc in route.get_qdiscs():
        kind, default = qdisc.get_attr("TCA_KIND"), 0
        if kind == "htb":
            default = qdisc.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_INIT")["defcls"]
        qdiscs[qdisc["index"], qdisc["parent"]] = _Qdisc(kind, qdisc["handle"], default)
    return qdiscs


def _root(route: Any, index: int, qdiscs: dict[tuple[int, int], _Qdisc]) -> str:
    qdisc = qdiscs.get((index, ROOT_PARENT))
    if qdisc is None:
        return "noqueue 0:"
    if qdisc.kind == "htb" and qdisc.handle == queueing.HANDLE << 16:
        return queueing.text(tree(route, index, qdisc.default))
    return f"{qdisc.kind} {qdisc.handle >> 16:x}:"


def _ingress(
    route: Any,
    index: int,
    by_name: dict[str, int],
    qdiscs: dict[tuple[int, int], _Qdisc],
) -> str:
    there = qdiscs.get((index, INGRESS_PARENT))
    through = by_name.get(queueing.detour(index))
    if through is None:
        return queueing.NONE if there is None else f"{there.kind} {there.handle >> 16:x}:"
    if there is None:
        return queueing.UNFINISHED
    ways = {
        _redirected(route_filter)
        for route_filter in route.get_filters(index=index, parent=INGRESS_HANDLE)
    }
    ways.discard(None)
    if there.kind != "ingress" or ways - {through}:
        return f"{there.kind} {there.handle >> 16:x}:"
    root_text = _root(route, through, qdiscs)
    return root_text if ways and queueing.is_ours(root_text) else queueing.UNFINISHED


def _redirected(route_filter: Any) -> int | None:
    """Target interface of a filter; -1 for another action; ``None`` for no filter."""
    attr = route_filter.get_attr("TCA_OPTIONS")
    if route_filter.get_attr("TCA_KIND") != "u32":
        return -1
    if attr is None or attr.get_attr("TCA_U32_SEL") is None:
        return None
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        acts = attr.get_attr("TCA_U32_ACT").get_attr("TCA_ACT_PRIO_1")
        if acts.get_attr("TCA_ACT_KIND") == "mirred":
            way: int = acts.get_attr("TCA_ACT_OPTIONS").get_attr("TCA_MIRRED_PARMS")["ifindex"]
            return way
    return -1


def tree(route: Any, index: int, default: int) -> queueing.Tree:
    """The classes of a root of ours, and the addresses in them."""
    classes = {}
    for kind in route.get_classes(index=index):
        if kind["handle"] >> 16 != queueing.HANDLE:
            continue
        attr = kind.get_attr("TCA_OPTIONS")
        numbers = attr.get_attr("TCA_HTB_PARMS")
        above = 0 if kind["parent"] == ROOT_PARENT else kind["parent"] & 0xFFFF
        classes[kind["handle"] & 0xFFFF] = queueing.Class(
            parent=above,
            rate=8 * (attr.get_attr("TCA_HTB_RATE64") or numbers["rate"]),
            ceil=8 * (attr.get_attr("TCA_HTB_CEIL64") or numbers["ceil"]),
            priority=numbers["prio"],
        )
    addresses = {text: minor for text, minor, _ in filters(route, index)}
    return queueing.Tree(default, classes, addresses)


def filters(route: Any, index: int) -> Iterator[tuple[str, int, Any]]:
    """Address, class and message of each filter of ours."""
    for route_filter in route.get_filters(index=index, parent=queueing.HANDLE << 16):
        attr = route_filter.get_attr("TCA_OPTIONS")
        chosen = attr.get_attr("TCA_U32_SEL") if attr is not None else None
        pod_address = address(_keys(chosen)) if chosen is not None else None
        if pod_address is not None:
            yield pod_address, (attr.get_attr("TCA_U32_CLASSID") or 0) & 0xFFFF, route_filter


def _keys(chosen: Any) -> Iterator[tuple[bytes, int]]:
    """Value and offset of each key that compares a whole word.

    From the bytes of the message: pyroute2 0.9 reads keys four bytes too early.
    """
    start = chosen.offset + 20
    for number in range(chosen["nkeys"]):
        raw = bytes(chosen.data[start + 16 * number : start + 16 * number + 12])
        mask, value, offset = struct.unpack("4s4si", raw)
        if mask == b"\xff" * 4:
            yield value, offset


def address(keys: Iterable[tuple[bytes, int]]) -> str | None:
    """The address that some keys compare; ``None`` where they are no whole one."""
    known = sorted(keys, key=lambda key: key[1])
    for source, destination, words in ETHERNET.values():
        offsets = [offset for _, offset in known]
        for first in (source, destination):
            if offsets == [first + 4 * each for each in range(words)]:
                return str(ipaddress.ip_address(b"".join(value for value, _ in known)))
    return None
