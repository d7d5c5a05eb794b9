"""Functions of CEL over addresses of IP and ranges of them.

Covers: what is no address (also: with a zone, of IPv4 within IPv6), classes of addresses, what a
range contains. Does not cover: URLs.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable
from typing import ClassVar

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import cel_values
from koordlet.scheduler.claims.cel_values import EvaluationError

#: The longest text that may be one; more is cut in messages.
_LONGEST = 64
_RANGE = re.compile(r"([^/]+)/(0|[1-9]\d{0,2})", re.ASCII)
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class IPAddress:
    """An address."""

    TYPE: ClassVar[str] = "net.IP"
    value: ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class IPRange:
    """An address of a range, and how many of its bits the range has."""

    TYPE: ClassVar[str] = "net.CIDR"
    address: IPAddress
    length: int

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The range without the address."""
        return ipaddress.ip_network((self.address.value, self.length), strict=False)


def address(text: str) -> IPAddress:
    """An address of a text."""
    words = f'IP Address "{text[:_LONGEST]}" parse error during conversion from string'
    try:
        value = ipaddress.ip_address(text[:_LONGEST])
    except ValueError as error:
        raise EvaluationError(f"{words}: unable to parse IP") from error
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    if getattr(value, "ipv4_mapped", None) is not None:
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return IPAddress(value)


def address_range(text: str) -> IPRange:
    """A range of a text; the address need not be its first."""
    words = f'network address parse error during conversion from string "{text[:_LONGEST]}"'
    match = _RANGE.fullmatch(text)
    if match is None:
        raise EvaluationError(f"{words}: no '/' and number of bits behind an address")
    first, length = address(match.group(1)), int(match.group(2))
    if length > first.value.max_prefixlen:
        raise EvaluationError(f"{words}: prefix length out of range")
    return IPRange(first, length)


def contains(network: IPRange, other: IPAddress) -> bool:
    """Whether an address is in a range."""
    return other.value in network.network


def contains_range(network: IPRange, other: IPRange) -> bool:
    """Whether all of a range is in another one."""
    return network.length <= other.length and contains(network, other.address)


def _masked(network: IPRange) -> IPRange:
    return IPRange(IPAddress(network.network.network_address), network.length)


def _is_global(known: IPAddress) -> bool:
    value = known.value
    other = value.is_unspecified or value.is_loopback or value.is_multicast or value.is_link_local
    return not other and value != _BROADCAST


def _is_link_local_multicast(known: IPAddress) -> bool:
    value = known.value
    if value.version == 4:
        return value in ipaddress.ip_network("224.0.0.0/24")
    return value.is_multicast and value.packed[1] & 0x0F == 2


def _is_link_local_unicast(known: IPAddress) -> bool:
    return known.value.is_link_local


def _can(make: Callable[[str], object], text: str) -> bool:
    try:
        make(text)
    except EvaluationError:
        return False
    return True


_IP, _CIDR = IPAddress.TYPE, IPRange.TYPE
FUNCTIONS: tuple[cel_values.FunctionRow, ...] = (
    ("ip", ("string",), _IP, address),
    ("isIP", ("string",), "bool", functools.partial(_can, address)),
    ("ip.isCanonical", ("string",), "bool", lambda text: str(address(text).value) == text),
    ("cidr", ("string",), _CIDR, address_range),
    ("isCIDR", ("string",), "bool", functools.partial(_can, address_range)),
    ("string", (_IP,), "string", lambda known: str(known.value)),
    ("string", (_CIDR,), "string", lambda known: f"{known.address.value}/{known.length}"),
)
METHODS: tuple[cel_values.FunctionRow, ...] = (
    ("family", (_IP,), "int", lambda known: known.value.version),
    ("isUnspecified", (_IP,), "bool", lambda known: known.value.is_unspecified),
    ("isLoopback", (_IP,), "bool", lambda known: known.value.is_loopback),
    ("isLinkLocalMulticast", (_IP,), "bool", _is_link_local_multicast),
    ("isLinkLocalUnicast", (_IP,), "bool", _is_link_local_unicast),
    ("isGlobalUnicast", (_IP,), "bool", _is_global),
    ("containsIP", (_CIDR, _IP), "bool", contains),
    ("containsIP", (_CIDR, "string"), "bool", lambda known, text: contains(known, address(text))),
    ("containsCIDR", (_CIDR, _CIDR), "bool", contains_range),
    (
        *("containsCIDR", (_CIDR, "string"), "bool"),
        lambda known, text: contains_range(known, address_range(text)),
    ),
    ("ip", (_CIDR,), _IP, lambda known: known.address),
    ("masked", (_CIDR,), _CIDR, _masked),
    ("prefixLength", (_CIDR,), "int", lambda known: known.length),
)
