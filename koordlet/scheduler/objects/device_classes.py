"""DeviceClasses (``resource.k8s.io/v1``): named selectors and settings of devices.

Covers: decoding. Does not cover: judging selectors, the API's limits
(``kubeapi.resource_validation``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import Body

#: Before the name of a class: the extended resource that each class has without naming one.
IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """Which devices belong to a class, and what their drivers shall be told."""

    name: str
    #: CEL expressions, all of which must be true; an empty one is of a kind that is not known.
    selectors: tuple[str, ...] = ()
    #: As they are written, for the result of an allocation.
    config: tuple[Body, ...] = ()
    #: The extended resource that it serves, and when it was made: the newest of several does.
    extended_resource: str = ""
    created: str = ""

    @property
    def resources(self) -> tuple[str, ...]:
        """The extended resources that it serves."""
        implicit = f"{IMPLICIT_RESOURCE}{self.name}"
        return (implicit, self.extended_resource) if self.extended_resource else (implicit,)


def decode(body: Body) -> DeviceClass:
    """A class from its JSON; ``BadObjectError`` has the path of the field that is no good."""
    meta = wire.mapping(body, "metadata")
    return wire.part(
        body,
        "spec",
        lambda spec: DeviceClass(
            wire.name(meta),
            wire.each(spec, "selectors", expression),
            wire.each(spec, "config", configuration),
            wire.text(spec, "extendedResourceName"),
            str(meta.get("creationTimestamp") or ""),
        ),
    )


def expression(selector: Body) -> str:
    """The CEL expression of a selector; empty where it has none."""
    return wire.part(selector, "cel", lambda cel: wire.text(cel, "expression"))


def configuration(config: Body) -> Body:
    """What a driver shall be told, checked as far as it is read here."""
    wire.part(config, "opaque", lambda opaque: wire.text(opaque, "driver"))
    return config
