"""NodeIngest: what agents report, taken in by a scheduler.

Covers: one stream for each node, going on from what is known, bounds; messages as a ``NodeReport``.
Does not cover: what is done with a report (``sink``), who may report (``permissions``) and for whom
(``speakers``), the agent's side (``reporting``).

Rules:
1. The newest stream of a node is the node: an older one ends, so that a half-dead connection cannot
   overwrite newer state. What is known of a node stays when its stream ends: its age tells.
2. An event that does not follow what is known (another epoch, a delta first) is answered with what
   is known, and not taken in.
3. A node costs one message here, whatever it sends: sections replace each other.
4. A stream that is silent for three heartbeats is ended. All of them are looked at together from
   time to time: a timer for each message would cost more than the message.
5. A replica that does not decide takes no reports: agents dial again until they reach the one that
   does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field

import grpc
import grpc.aio
from google.protobuf import message as protobuf

from koordlet.model import cpuset, decision, ledger, nodereport, resources, topology
from koordlet.model.record import dataclass
from koordlet.rpc import plain, services, speakers
from koordlet.rpc.gen import feed_pb2, ingest_pb2

SERVICE = ingest_pb2.DESCRIPTOR.services_by_name["NodeIngest"].full_name

#: Called with the newest report of a node; synchronous, in the loop.
Sink = Callable[[nodereport.NodeReport], None]
#: Called when a node is heard but has nothing new: its name.
Heard = Callable[[str], None]

_SECTIONS = tuple(section.name for section in feed_pb2.Delta.DESCRIPTOR.fields)


@dataclass(slots=True)
class _Known:
    """One node."""

    state: feed_pb2.Node = field(default_factory=feed_pb2.Node)
    #: Of the stream that speaks for it now.
    turn: int = 0


@dataclass(slots=True, eq=False)
class _Line:
    """One stream: its call, when it was last heard, whether it was ended for its silence."""

    task: asyncio.Task[object]
    heard: float
    cut: bool = False


class Ingest:
    """The service; ``sink`` gets every new report, ``heard`` every sign of life."""

    name = SERVICE
    descriptor = ingest_pb2.DESCRIPTOR

    def __init__(
        self,
        sink: Sink,
        heard: Heard = lambda _node: None,
        *,
        speaks: speakers.Speakers = speakers.NAMED,
        decides: Callable[[], bool] = lambda: True,
        most_nodes: int = 20_000,
        silence_seconds: float = 30.0,
    ) -> None:
        self._sink = sink
        self._heard = heard
        self._speaks = speaks
        self._decides = decides
        self._most = most_nodes
        self._silence = silence_seconds
        self._nodes: dict[str, _Known] = {}
        self._lines: set[_Line] = set()
        self._look: asyncio.TimerHandle | None = None
        #: Counts of received messages.
        self.counts = dict.fromkeys(("streams", "events", "heartbeats", "resyncs", "refused"), 0)

    @property
    def streams(self) -> int:
        """Number of open report streams."""
        return len(self._lines)

    def forget(self, node: str) -> None:
        """Forget a removed node; a later reporter starts anew."""
        self._nodes.pop(node, None)

    def methods(self) -> Mapping[str, services.Handler]:
        """The handlers."""
        return {"Report": grpc.stream_stream_rpc_method_handler(self._report)}

    async def _report(self, _: AsyncIterator[bytes], context: services.Context) -> None:
        line = self._begun()
        try:
            await self._heard_out(line, context)
        except asyncio.CancelledError:
            if not line.cut:
                raise
            line.task.uncancel()
        finally:
            self._lines.discard(line)

    async def _heard_out(self, line: _Line, context: services.Context) -> None:
        """Handle a report stream from its Hello to its end."""
        hello = await self._hello(line, context)
        if hello.node not in self._nodes and len(self._nodes) >= self._most:
            self.counts["refused"] += 1
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "too many nodes report to this scheduler"
            )
        known = self._nodes.setdefault(hello.node, _Known())
        turn = known.turn = known.turn + 1
        self.counts["streams"] += 1
        await context.write(_reply(known))
        while known.turn == turn:
            request = await self._next(line, context)
            if request is None or known.turn != turn:
                return
            try:
                follows = self._take(hello.node, known, request.event)
            except ValueError as error:
                self.counts["refused"] += 1
                # A part of it may have been taken in: nothing is known any more.
                known.state = feed_pb2.Node()
                await context.abort(_BAD, f"invalid report: {error}")
            if not follows:
                self.counts["resyncs"] += 1
                await context.write(_reply(known))

    async def _hello(self, line: _Line, context: services.Context) -> ingest_pb2.Hello:
        first = await self._next(line, context)
        if first is None or not first.hello.node:
            self.counts["refused"] += 1
            await context.abort(_BAD, "the first message must be a Hello with the node's name")
        if not self._decides():
            await context.abort(grpc.StatusCode.UNAVAILABLE, "another replica is the leader")
        refusal = await speakers.refusal(self._speaks, context, first.hello.node)
        if refusal is not None:
            self.counts["refused"] += 1
            await context.abort(*refusal)
        hello: ingest_pb2.Hello = first.hello
        return hello

    async def _next(
        self, line: _Line, context: services.Context
    ) -> ingest_pb2.ReportRequest | None:
        """The next message; ``None`` at the end."""
        # Not by the iterator of requests, which is two more coroutines around this one.
        data = await context.read()
        if data is grpc.aio.EOF:
            return None
        line.heard = time.monotonic()
        try:
            return ingest_pb2.ReportRequest.FromString(data)
        except protobuf.DecodeError:
            self.counts["refused"] += 1
            await context.abort(_BAD, "not a koordlet.v1.ReportRequest")
            raise

    def _begun(self) -> _Line:
        """Register the current call, so that silence is noticed."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - gRPC runs each call in a task of its own
        line = _Line(task, time.monotonic())
        self._lines.add(line)
        if self._look is None:
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(self._silence / 8, self._cut)
        return line

    def _cut(self) -> None:
        """Rule 4."""
        loop = asyncio.get_running_loop()
        edge = time.monotonic() - self._silence
        for line in self._lines:
            if line.heard <= edge and not line.cut:
                line.cut = True
                line.task.cancel()
        again = bool(self._lines)
        self._look = loop.call_later(self._silence / 8, self._cut) if again else None

    def _take(self, node: str, known: _Known, event: feed_pb2.WatchEvent) -> bool:
        """Take an event in; whether it follows what is known."""
        what = event.WhichOneof("event")
        state = known.state
        if what == "full":
            state = known.state = event.full
        elif not what or event.epoch != state.epoch or event.revision < state.revision:
            return False
        elif what == "delta":
            for section in _SECTIONS:
                if event.delta.HasField(section):
                    getattr(state, section).CopyFrom(getattr(event.delta, section))
        elif event.revision != state.revision:
            return False
        state.epoch, state.revision = event.epoch, event.revision
        if what == "heartbeat":
            self.counts["heartbeats"] += 1
            self._heard(node)
            return True
        self.counts["events"] += 1
        state.observed_at.CopyFrom(event.observed_at)
        self._sink(decoded(node, state))
        return True


_BAD = grpc.StatusCode.INVALID_ARGUMENT


def _reply(known: _Known) -> bytes:
    state = known.state
    answer = ingest_pb2.Known(epoch=state.epoch, revision=state.revision)
    return ingest_pb2.ReportReply(known=answer).SerializeToString()


def decoded(node: str, state: feed_pb2.Node) -> nodereport.NodeReport:
    """The message as a value; a set of CPUs that is none is left out."""
    usage = state.usage
    return nodereport.NodeReport(
        node=node,
        epoch=state.epoch,
        revision=state.revision,
        observed=state.observed_at.seconds + state.observed_at.nanos / 1e9 or None,
        ready=state.summary.ready,
        topology=_topology(state.topology) if state.HasField("topology") else None,
        used=_amount(usage.node),
        system=_amount(usage.system),
        classes={qos_class.name: _amount(qos_class.used) for qos_class in usage.classes},
        windows={
            (window.seconds, window.quantile): _amount(window.node) for window in usage.windows
        },
        signals=tuple(plain.value(decision.Signal, signal) for signal in state.pressure.signals),
        conditions=tuple(
            plain.value(decision.Condition, met) for met in state.conditions.conditions
        ),
        claims=tuple(_claims(state.allocation)),
        free=tuple(
            plain.value(nodereport.Free, domain, cpus=cpuset.lenient(domain.cpus))
            for domain in state.free.domains
        ),
        offered={offer.resource: offer.amount for offer in state.best_effort.offers},
    )


def _topology(message: feed_pb2.Topology) -> topology.Topology:
    # In full: a machine has hundreds, of each report.
    known = tuple(
        topology.Cpu(
            cpu=cpu.cpu,
            online=cpu.online,
            core=cpu.core if cpu.HasField("core") else None,
            socket=cpu.socket if cpu.HasField("socket") else None,
            node=cpu.node if cpu.HasField("node") else None,
            l3=cpu.l3 if cpu.HasField("l3") else None,
        )
        for cpu in message.cpus
    )
    nodes = tuple(
        plain.value(
            *(topology.Node, node),
            cpus=cpuset.lenient(node.cpus),
            distances=tuple(node.distances),
        )
        for node in message.nodes
    )
    online = cpuset.CPUSet.of(cpu.cpu for cpu in known if cpu.online)
    return topology.Topology(cpus=known, nodes=nodes, online=online)


def _claims(allocation: feed_pb2.Allocation) -> list[ledger.Claim]:
    owners = {owner.value: owner for owner in ledger.Owner}
    return [
        plain.value(
            *(ledger.Claim, claim), owner=owners[claim.owner], cpus=cpuset.lenient(claim.cpus)
        )
        for claim in allocation.claims
        if claim.owner in owners
    ]


def _amount(amount: feed_pb2.Amount) -> dict[str, int]:
    fields = ((resources.CPU, "cpu_milli"), (resources.MEMORY, "memory_bytes"))
    return {name: getattr(amount, field) for name, field in fields if amount.HasField(field)}
