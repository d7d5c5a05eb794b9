"""The types of single configuration values: CPU lists, quantities, units, paths, addresses.

Covers: what one value may look like, and the words that refuse a wrong one.
Does not cover: which fields exist (``schema``), finding the line of a value (``problems``).

Each type is a string in the shape that the operator wrote, checked: ``koordlet config`` prints it
back unchanged, and whoever consumes it parses it with the module named here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from koordlet.config import places
from koordlet.model import cpuset, quantity

#: The error type of every refusal made here; its context carries ``message`` and ``fix``.
REFUSED = "koordlet"

_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+\.(service|scope|slice)\Z")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_RESOURCE = re.compile(
    r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9]([\w.-]*\w)?\Z", re.ASCII
)
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

#: ``sun_path`` of a Unix socket holds 108 bytes with the terminating NUL.
_MAX_SOCKET_PATH = 107
_MAX_UNIT = 255
_MAX_NAME = 253
_MAX_PATH = 4095
_MAX_PORT = 65535


def refuse(message: str, fix: str = "", at: tuple[str | int, ...] = ()) -> NoReturn:
    """Refuse a value, saying what is wrong, what to do, and where below the value it is."""
    context = {"message": message, "fix": fix, "at": at}
    raise PydanticCustomError(REFUSED, "{message}", context)


def _ip_address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(str(value)))
    except ValueError:
        refuse(
            f"{places.show(value)} is not an IP address", "an address without a mask, as 10.0.0.7"
        )


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        refuse(f"expected {what}, found {places.show(value)}")
    if value == "":
        refuse(f"expected {what}, found an empty string", "use null or leave the key out")
    return value


def _cpu_list(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        # A list of one CPU: ``cpus: 3`` reads as a number in YAML.
        value = str(value)
    text = _text(value, "a CPU list")
    if re.search(r"\b(all|N)\b", text, re.IGNORECASE):
        refuse(f"{places.show(text)} depends on the machine", 'write the CPUs out, such as "0-3,8"')
    try:
        parsed = cpuset.CPUSet.parse(text)
    except ValueError as error:
        refuse(str(error), 'write a list such as "0-3,8"')
    if not parsed:
        refuse(f"{places.show(text)} names no CPU", "use null or leave the key out")
    return text


def _cpus_or_count(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= cpuset.MAX_CPUS:
            refuse(f"a number of CPUs is 1-{cpuset.MAX_CPUS}, found {places.show(value)}")
        return value
    return _cpu_list(value)


def _quantity(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    text = _text(value, "a quantity").strip()
    try:
        quantity.milli(text)
    except ValueError as error:
        refuse(str(error), 'write a quantity such as "500m", 2 or "4Gi"')
    if text.startswith("-"):
        refuse(f"a quantity must not be negative, found {places.show(text)}")
    return text


def _part(value: int | str) -> object:
    if isinstance(value, int):
        if not 0 <= value <= 100:
            refuse(f"{value} is not a percentage", "a number is percent, 0 to 100")
    elif quantity.units(value) < 0:
        refuse(f"{value} is negative", "give bits per second")
    return value


def _unit(value: object) -> object:
    if value is None:
        return None
    text = _text(value, "a systemd unit")
    if not _UNIT.match(text) or len(text) > _MAX_UNIT:
        refuse(
            f"not a systemd unit: {places.show(text)}",
            'write the full name, such as "nginx.service"',
        )
    return text


def _cgroup(value: object) -> object:
    if value is None:
        return None
    text = _text(value, "a cgroup path")
    fix = 'write it relative to the cgroup root, such as "batch/jobs"'
    if _CONTROL.search(text):
        refuse(f"a cgroup path must not contain control characters, found {places.show(text)}", fix)
    if text.startswith("/"):
        refuse(f"a cgroup path must be relative, found {places.show(text)}", fix)
    if any(part in ("", ".", "..") for part in text.split("/")) or len(text) > _MAX_PATH:
        refuse(f"not a plain relative path: {places.show(text)}", fix)
    return text


def _cgroup_root(value: object) -> object:
    if value is None:
        return None
    text = _text(value, "a cgroup path")
    if _CONTROL.search(text) or ".." in text.split("/") or len(text) > _MAX_PATH:
        refuse(f"not a plain cgroup path: {places.show(text)}", 'write it like "/kubelet"')
    return text


def _directory(value: object) -> object:
    if value is None:
        return None
    text = _text(value, "a path")
    if not text.startswith("/") or _CONTROL.search(text) or len(text) > _MAX_PATH:
        refuse(f"not an absolute path: {places.show(text)}")
    return text


def _socket(value: object) -> object:
    text = _directory(value)
    if isinstance(text, str) and len(text.encode(errors="replace")) > _MAX_SOCKET_PATH:
        refuse(f"a socket path has at most {_MAX_SOCKET_PATH} bytes, found {places.show(text)}")
    return text


def _address(value: object) -> object:
    text = _text(value, "an address")
    match = _ADDRESS.match(text)
    if match is None or int(match["port"]) > _MAX_PORT:
        refuse(
            f"not HOST:PORT: {places.show(text)}",
            'write it like "127.0.0.1:9316" or "[::1]:9316"; "0.0.0.0:9316" is every address',
        )
    return text


def _optional_address(value: object) -> object:
    return None if value is None else _address(value)


def _name(value: object) -> object:
    text = _text(value, "a name")
    if not _NAME.match(text) or len(text) > _MAX_NAME:
        refuse(f"not a name: {places.show(text)}", "use letters, digits and . _ - between them")
    return text


def _node_name(value: object) -> object:
    return None if value is None else _name(value)


def _resource(value: object) -> object:
    text = _text(value, "a resource name")
    if not _RESOURCE.match(text):
        refuse(f"not a resource name: {places.show(text)}", 'write it like "cpu" or "memory"')
    return text


def _absent_map(value: object) -> object:
    return {} if value is None else value


def _absent_list(value: object) -> object:
    return () if value is None else value


_NULL_OR_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_NUMBER_OR_TEXT = {"type": ["string", "number"]}

CpuList = Annotated[
    str | None,
    BeforeValidator(_cpu_list),
    WithJsonSchema({**_NULL_OR_TEXT, "examples": ["0-3,8"]}),
]
CpusOrCount = Annotated[
    int | str | None,
    BeforeValidator(_cpus_or_count),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}, {"type": "null"}],
            "examples": ["0-3,8", 4],
        }
    ),
]
IpAddress = Annotated[str, BeforeValidator(_ip_address), WithJsonSchema({"type": "string"})]
Quantity = Annotated[str, BeforeValidator(_quantity), WithJsonSchema(_NUMBER_OR_TEXT)]
OptionalQuantity = Annotated[
    str | None,
    BeforeValidator(_quantity),
    WithJsonSchema({"type": ["string", "number", "null"], "examples": ["2", "1500m"]}),
]
#: Percent of the total as a number, or bits per second as a quantity.
Part = Annotated[int | str, Field(examples=[40, "200M"]), AfterValidator(_part)]
Unit = Annotated[str | None, BeforeValidator(_unit), WithJsonSchema(_NULL_OR_TEXT)]
CgroupPath = Annotated[str | None, BeforeValidator(_cgroup), WithJsonSchema(_NULL_OR_TEXT)]
CgroupRoot = Annotated[str | None, BeforeValidator(_cgroup_root), WithJsonSchema(_NULL_OR_TEXT)]
Directory = Annotated[str | None, BeforeValidator(_directory), WithJsonSchema(_NULL_OR_TEXT)]
SocketPath = Annotated[str | None, BeforeValidator(_socket), WithJsonSchema(_NULL_OR_TEXT)]
Address = Annotated[str, BeforeValidator(_address), WithJsonSchema({"type": "string"})]
OptionalAddress = Annotated[
    str | None, BeforeValidator(_optional_address), WithJsonSchema(_NULL_OR_TEXT)
]
Name = Annotated[str, BeforeValidator(_name), WithJsonSchema({"type": "string"})]
NodeName = Annotated[str | None, BeforeValidator(_node_name), WithJsonSchema(_NULL_OR_TEXT)]

_Resource = Annotated[str, BeforeValidator(_resource)]
StringMap = Annotated[
    Mapping[str, str],
    BeforeValidator(_absent_map),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]
Quantities = Annotated[
    Mapping[_Resource, Quantity],
    BeforeValidator(_absent_map),
    WithJsonSchema({"type": "object", "additionalProperties": _NUMBER_OR_TEXT}),
]
ABSENT_LIST = BeforeValidator(_absent_list)
