"""``io.cost.qos`` and ``io.cost.model``: what a device costs, on the root group alone.

Covers: which devices were set up, parsing, what is shown. Does not cover: throttling by cost.

Kernel facts: ``block/blk-iocost.c`` (``ioc_qos_write``, ``ioc_cost_model_write``); 6.1. The values
of ``auto`` are those of a solid-state disk that the kernel knows nothing more of.
"""

from __future__ import annotations

import dataclasses
import errno
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tests.kit.kernel import devices, parsing
from tests.kit.kernel.group import Group, Knob, On
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.tree import refused

#: Hundredths of percent, microseconds.
_QOS: Mapping[str, int] = MappingProxyType(
    {"rpct": 0, "rlat": 25_000, "wpct": 0, "wlat": 25_000, "min": 100, "max": 1_000_000}
)
_LATENCY = ("rlat", "wlat")
_MODEL: Mapping[str, int] = MappingProxyType(
    {
        "rbps": 488_636_629,
        "rseqiops": 8_932,
        "rrandiops": 8_518,
        "wbps": 427_891_549,
        "wseqiops": 28_755,
        "wrandiops": 21_940,
    }
)
_WHOLE = 10_000


@dataclasses.dataclass
class _Device:
    enabled: bool = False
    #: None: automatic.
    qos: dict[str, int] | None = None
    model: dict[str, int] | None = None


class Cost:
    """Both files."""

    def __init__(self, hardware: Hardware) -> None:
        self._hardware = hardware
        #: Devices that were set up once: they are so for good.
        self.devices: dict[str, _Device] = {}

    def knobs(self) -> Iterable[Knob]:
        """On the root."""
        return (
            Knob("io.cost.qos", self._qos, self._write_qos, On.ROOT),
            Knob("io.cost.model", self._model, self._write_model, On.ROOT),
        )

    def _set_up(self, number: str) -> _Device:
        return self.devices.setdefault(number, _Device())

    def _qos(self, group: Group) -> str:
        del group
        return "".join(
            f"{number} enable={int(device.enabled)} ctrl={_ctrl(device.qos)} "
            + " ".join(f"{k}={_shown(k, v)}" for k, v in (device.qos or _QOS).items())
            + "\n"
            for number, device in self.devices.items()
        )

    def _model(self, group: Group) -> str:
        del group
        return "".join(
            f"{number} ctrl={_ctrl(device.model)} model=linear "
            + " ".join(f"{k}={v}" for k, v in (device.model or _MODEL).items())
            + "\n"
            for number, device in self.devices.items()
        )

    def _write_qos(self, group: Group, text: str) -> None:
        del group
        number, rest = devices.split(text, self._hardware)
        device = self._set_up(number)
        values, user, enabled = dict(device.qos or _QOS), device.qos is not None, device.enabled
        for word in rest.split():
            name, _, value = word.partition("=")
            if name == "enable":
                enabled = bool(parsing.unsigned(value))
            elif name == "ctrl":
                user = _user(value)
            elif name in values:
                values[name], user = _read(name, value), True
            else:
                raise refused(errno.EINVAL)
        if values["min"] > values["max"]:
            raise refused(errno.EINVAL)
        device.enabled, device.qos = enabled, values if user else None

    def _write_model(self, group: Group, text: str) -> None:
        del group
        number, rest = devices.split(text, self._hardware)
        device = self._set_up(number)
        values, user = dict(device.model or _MODEL), device.model is not None
        for word in rest.split():
            name, _, value = word.partition("=")
            if name == "ctrl":
                user = _user(value)
            elif name == "model" and value == "linear":
                pass
            elif name in values:
                values[name], user = parsing.unsigned(value), True
            else:
                raise refused(errno.EINVAL)
        device.model = values if user else None


def _ctrl(values: Mapping[str, int] | None) -> str:
    return "auto" if values is None else "user"


def _user(value: str) -> bool:
    if value not in ("auto", "user"):
        raise refused(errno.EINVAL)
    return value == "user"


def _read(name: str, value: str) -> int:
    if name in _LATENCY:
        return parsing.unsigned(value)
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?", value):
        raise refused(errno.EINVAL)
    hundredths = round(float(value) * 100)
    if name.endswith("pct") and hundredths > _WHOLE:
        raise refused(errno.EINVAL)
    return hundredths


def _shown(name: str, value: int) -> str:
    return str(value) if name in _LATENCY else f"{value // 100}.{value % 100:02}"
