"""What a pod's claims ask for, made ready once for all nodes.

Covers: each request with its class, selectors and constraints; requests that nobody can serve.
Does not cover: CEL (``compile_selector`` is handed in), choosing devices (``allocator``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import pools
from koordlet.scheduler.objects import device_classes, resource_claims, resource_slices

#: As many answers are kept of a device before they are asked anew.
_MOST_ANSWERS = 64


class AllocationError(Exception):
    """A claim that cannot be allocated anywhere as things are; ends the attempt of its pod."""


class DeviceSelector(Protocol):
    """A compiled expression over a device."""

    def matches(self, device: resource_slices.SliceDevice, driver: str) -> bool:
        """Whether it is true; a ``ValueError`` of the evaluation ends the search."""


#: ``ValueError`` where an expression cannot be compiled.
CompileSelector = Callable[[str], DeviceSelector]


@dataclass(frozen=True, slots=True)
class _Expression:
    """One selector, and whose it is, for messages."""

    text: str
    place: str


@dataclass(frozen=True, slots=True)
class RequestDemand:
    """A request, or one of its wishes, with all that decides about a device."""

    #: ``r``, or ``r/sub``.
    name: str
    request: resource_claims.ClaimRequest
    device_class: device_classes.DeviceClass
    #: The claim for messages.
    claim: str
    #: Places of the claim's constraints that cover it.
    constraints: tuple[int, ...]
    expressions: tuple[_Expression, ...]
    #: Of all expressions: devices keep their answers by it.
    key: str
    compile_selector: CompileSelector

    @property
    def takes_all(self) -> bool:
        """Whether it asks for all devices that match."""
        return self.request.mode == resource_claims.ALL

    def selects(self, device: pools.PoolDevice, check_time: Callable[[], None]) -> bool:
        """Whether class and request select a device; each device is asked once.

        ``check_time`` is called before each selector is evaluated.
        """
        known = device.answers.get(self.key)
        if known is None:
            known = all(
                self._holds(expression, device, check_time) for expression in self.expressions
            )
            if len(device.answers) >= _MOST_ANSWERS:
                device.answers.clear()
            device.answers[self.key] = known
        return known

    def _holds(
        self,
        expression: _Expression,
        device: pools.PoolDevice,
        check_time: Callable[[], None],
    ) -> bool:
        check_time()
        stage = "compile"
        try:
            selector = self.compile_selector(expression.text)
            stage = "runtime"
            return selector.matches(device.device, device.id[0])
        except ValueError as error:
            text = str(error)
            prefix = "" if text.startswith("CEL ") else f"CEL {stage} error: "
            raise AllocationError(f"{expression.place}: {prefix}{text}") from error


@dataclass(frozen=True, slots=True)
class ClaimDemand:
    """A claim's requests: of each its wishes in their order, most often one."""

    claim: resource_claims.ResourceClaim
    requests: tuple[tuple[RequestDemand, ...], ...]


def prepare(
    claims: Sequence[resource_claims.ResourceClaim],
    classes: Mapping[str, device_classes.DeviceClass],
    compile_selector: CompileSelector,
) -> tuple[ClaimDemand, ...]:
    """The demand of a pod; ``AllocationError`` names what cannot be served."""
    return tuple(_claim(claim, classes, compile_selector) for claim in claims)


def _claim(
    claim: resource_claims.ResourceClaim,
    classes: Mapping[str, device_classes.DeviceClass],
    compile_selector: CompileSelector,
) -> ClaimDemand:
    requests = []
    for request in claim.requests:
        wishes = [(f"{request.name}/{wish.name}", wish) for wish in request.subrequests]
        requests.append(
            tuple(
                _request(claim, name, wish, classes, compile_selector)
                for name, wish in wishes or [(request.name, request)]
            )
        )
    for place, constraint in enumerate(claim.constraints):
        if not constraint.match_attribute and not constraint.distinct_attribute:
            raise AllocationError(
                f"claim {claim.key}, constraint #{place}:"
                " empty constraint (unsupported constraint type?)"
            )
    return ClaimDemand(claim, tuple(requests))


def _request(
    claim: resource_claims.ResourceClaim,
    name: str,
    request: resource_claims.ClaimRequest,
    classes: Mapping[str, device_classes.DeviceClass],
    compile_selector: CompileSelector,
) -> RequestDemand:
    where = f"claim {claim.key}, request {request.name}"
    for place, text in enumerate(request.selectors):
        if not text:
            raise AllocationError(
                f"{where}, selector #{place}: CEL expression empty (unsupported selector type?)"
            )
    if not request.class_name:
        raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
    known = classes.get(request.class_name)
    if known is None:
        raise AllocationError(f"{where}: could not retrieve device class {request.class_name}")
    for place, text in enumerate(known.selectors):
        if not text:
            raise AllocationError(
                f"class {known.name}: selector #{place}:"
                " CEL expression empty (unsupported selector type?)"
            )
    if request.mode not in {resource_claims.EXACT_COUNT, resource_claims.ALL}:
        raise AllocationError(f"{where}: unsupported count mode {request.mode}")
    return RequestDemand(
        name=name,
        request=request,
        device_class=known,
        claim=claim.key,
        constraints=tuple(
            place for place, constraint in enumerate(claim.constraints) if _covers(constraint, name)
        ),
        expressions=(
            *(
                _Expression(text, f"class {known.name}: selector #{place}")
                for place, text in enumerate(known.selectors)
            ),
            *(
                _Expression(text, f"claim {claim.key}: selector #{place}")
                for place, text in enumerate(request.selectors)
            ),
        ),
        key="\0".join((*known.selectors, *request.selectors)),
        compile_selector=compile_selector,
    )


def _covers(constraint: resource_claims.ClaimConstraint, request: str) -> bool:
    """Whether a constraint is about ``r`` or ``r/sub``; ``r`` means all that are under it."""
    named = constraint.requests
    return not named or request in named or request.partition("/")[0] in named
