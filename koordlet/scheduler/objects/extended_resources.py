"""Extended resources of containers that classes of devices may serve (KEP-5004).

Covers: which amounts of a pod those are, the requests of the claim that stands for them, which of
its requests each container uses. Does not cover: which class serves a resource
(``claims.allocation_state``), the claim around the requests (``generated_claims``).

Rules, those of kube-scheduler:
1. Containers are numbered with init containers first, resources of a container by name. A request
   is called ``container-<number>-request-<number>``, and asks for so many devices of the class.
2. An init container that ends before others start uses their devices first. What such containers
   need beyond that is one request, the largest; all of them use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.device_classes import IMPLICIT_RESOURCE
from koordlet.scheduler.objects.wire import Body


@dataclass(frozen=True, slots=True)
class ContainerResource:
    """How much of one resource a container asks for."""

    #: Its number, and its name.
    place: int
    container: str
    #: Whether it ends before the containers after it start.
    ends: bool
    resource: str
    #: The number of the resource in the container.
    number: int
    amount: int

    @property
    def request(self) -> str:
        """The name of the request that is made for it."""
        return f"container-{self.place}-request-{self.number}"


def is_claimable(resource: str) -> bool:
    """Whether a class of devices may serve a resource: not one of Kubernetes' own."""
    own = "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests.")
    return not own or resource.startswith(IMPLICIT_RESOURCE)


def amounts(container: Body) -> dict[str, Any]:
    """What a container asks for; the API server writes limits where a request is missing."""
    asked = wire.mapping(container, "resources")
    return {**wire.mapping(asked, "limits"), **wire.mapping(asked, "requests")}


def decode(init: Sequence[Body], plain: Sequence[Body]) -> tuple[ContainerResource, ...]:
    """Those of a pod; nearly every pod has none."""
    several = []
    for place, container in enumerate((*init, *plain)):
        asked = amounts(container)
        ends = place < len(init) and container.get("restartPolicy") != "Always"
        for number, resource in enumerate(sorted(asked)):
            amount = wire.amount(asked, resource) if is_claimable(resource) else None
            if amount is not None and amount > 0 and amount.denominator == 1:
                name = wire.text(container, "name")
                whole = int(amount)
                several.append(ContainerResource(place, name, ends, resource, number, whole))
    return tuple(several)


def requests(
    several: Sequence[ContainerResource], classes: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Requests of a claim, and who uses which; ``classes``: by the resources that it is for."""
    asked: list[dict[str, Any]] = []
    used: list[dict[str, str]] = []
    for resource, name in sorted(classes.items()):
        own = [each for each in several if each.resource == resource]
        lasting = [each for each in own if not each.ends]
        asked += (_request(each.request, name, each.amount) for each in lasting)
        used += (_use(each, each.request) for each in lasting)
        beyond: list[tuple[int, ContainerResource]] = []
        uses: list[tuple[ContainerResource, str]] = []
        for each in own:
            left = each.amount if each.ends else 0
            for other in lasting:
                if left > 0 and other.place > each.place:
                    uses.append((each, other.request))
                    left -= other.amount
            if left > 0:
                beyond.append((left, each))
                uses.append((each, ""))
        most, largest = max(beyond, key=lambda row: row[0], default=(0, None))
        if largest is not None:
            asked.append(_request(largest.request, name, most))
        used += (_use(each, request or getattr(largest, "request", "")) for each, request in uses)
    return sorted(asked, key=lambda request: str(request["name"])), used


def _request(name: str, device_class: str, count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": exactly}


def _use(each: ContainerResource, request: str) -> dict[str, str]:
    return {
        "containerName": each.container,
        "resourceName": each.resource,
        "requestName": request,
    }
