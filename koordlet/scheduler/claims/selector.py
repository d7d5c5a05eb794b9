"""CEL selectors of devices: compiled once, asked about each device.

Covers: ``device.driver``, ``.attributes``, ``.capacity``, ``.allowMultipleAllocations``; messages.
Unqualified names live in the domain of the device's driver.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Protocol

from koordlet.scheduler.claims import cel_evaluator, cel_syntax, cel_values

_FIELDS = {
    "driver": "string",
    "attributes": "map:map:dyn",
    "capacity": "map:map:kubernetes.Quantity",
    "allowMultipleAllocations": "bool",
}
#: Compiled expressions that are kept: one of the longest takes 1.6 MB, and anybody may write many.
_MOST = 512


class SelectorError(ValueError):
    """An expression that does not compile, or has no answer for a device."""


class _Device(Protocol):
    @property
    def attributes(self) -> Mapping[str, Any]: ...
    @property
    def capacity(self) -> Mapping[str, Any]: ...
    @property
    def allow_multiple_allocations(self) -> bool: ...


class DeviceExpression:
    """A compiled expression."""

    def __init__(self, part: cel_values.CompiledNode, places: int) -> None:
        self._run, self._places = part.run, places

    def matches(self, device: _Device, driver: str) -> bool:
        """Whether it is true of a device; ``SelectorError`` where it has no answer."""
        try:
            seen = _seen(device, driver)
            frame = [cel_values.COST_LIMIT, seen, *[None] * (self._places - 2)]
            answer = self._run(frame)
        except (cel_values.EvaluationError, cel_values.CostError) as error:
            raise SelectorError(f"CEL runtime error: {error}") from error
        if type(answer) is not bool:
            shown = cel_values.type_name(answer)
            raise SelectorError(
                f"CEL runtime error: must evaluate to bool or the unknown type, not {shown}"
            )
        return answer


@functools.lru_cache(maxsize=_MOST)
def compile(expression: str) -> DeviceExpression:  # noqa: A001 -- re.compile's name, for the same deed
    """A selector; ``SelectorError`` names what no evaluation could mend."""
    compiler = cel_evaluator.Compiler({"device": "device"}, {"device": _FIELDS})
    try:
        part = compiler.compile(cel_syntax.parse(expression))
    except cel_syntax.CompileError as error:
        line = expression.count("\n", 0, error.at) + 1
        column = error.at - expression.rfind("\n", 0, error.at)
        raise SelectorError(
            f"compilation failed: ERROR: <input>:{line}:{column}: {error.message}"
        ) from error
    if part.type not in ("bool", "dyn"):
        raise SelectorError(f"must evaluate to bool or the unknown type, not {part.type}")
    return DeviceExpression(part, compiler.places)


def _seen(device: _Device, driver: str) -> dict[str, Any]:
    attributes, capacity = cel_values.Domains(), cel_values.Domains()
    for name, value in device.attributes.items():
        domain, _, identifier = name.rpartition("/")
        if type(value) not in (bool, int, str):
            text = getattr(value, "text", None)
            if text is None:
                raise cel_values.EvaluationError(f"attribute {name}: unsupported attribute value")
            value = cel_values.version(text)  # noqa: PLW2901 -- the same value, as CEL has it
        attributes.setdefault(domain or driver, {})[identifier] = value
    for name, amount in device.capacity.items():
        domain, _, identifier = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[identifier] = cel_values.Amount(amount.value)
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }
