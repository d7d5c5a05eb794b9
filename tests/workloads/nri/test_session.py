"""The conversation without a socket: what the runtime says, what it is answered."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import adjustment, cpuset
from koordlet.workloads.nri import fields, messages, mux, session, ttrpc
from koordlet.workloads.nri.messages import NriEvent
from tests.kit import nri

POD = messages.NriPod(id="s", uid="u", namespace="n", name="p")
CONTAINER = messages.NriContainer(id="c", pod="s", name="main")
CPU_1 = adjustment.Adjustment(cpus=cpuset.CPUSet.parse("1"))


def open_session() -> session.Session:
    """A session whose registration was sent."""
    opened = session.Session(name="koordlet", index="10")
    opened.take()
    return opened


def call(method: str, payload: bytes, stream: int = 1, timeout: float = 2.0) -> bytes:
    """The bytes of a call of the runtime."""
    return ttrpc.write(
        mux.PLUGIN, ttrpc.TtrpcRequest(stream, nri.SERVICE, method, payload, timeout)
    )


def sent(opened: session.Session) -> list[ttrpc.Message]:
    """The messages that the session wants sent."""
    cutter, readers = mux.Cutter(), {1: ttrpc.TtrpcReader(), 2: ttrpc.TtrpcReader()}
    return [m for where, data in cutter.feed(opened.take()) for m in readers[where].feed(data)]


def answers(opened: session.Session) -> list[ttrpc.TtrpcResponse]:
    """The answers among them."""
    return [message for message in sent(opened) if isinstance(message, ttrpc.TtrpcResponse)]


def test_registration() -> None:
    """It comes first, with name and index; a refusal is told from an answer to anything else."""
    opened = session.Session(name="koordlet", index="10")
    (registration,) = sent(opened)
    assert isinstance(registration, ttrpc.TtrpcRequest)
    assert (registration.method, registration.service) == (
        "RegisterPlugin",
        "nri.pkg.api.v1alpha1.Runtime",
    )
    assert [fields.text(fields.decode(registration.payload), n) for n in (1, 2)] == [
        "koordlet",
        "10",
    ]
    refusal = ttrpc.TtrpcResponse(registration.stream, b"", 2, "invalid plugin index")
    (heard,) = opened.feed(ttrpc.write(mux.RUNTIME, refusal))

    assert heard == session.Answered(
        stream=opened.registration, problem="status 2: invalid plugin index"
    )


def test_configured_before_the_registration_is_answered() -> None:
    """The mask names nothing that a runtime may not know, and is in field 2."""
    opened = open_session()
    (heard,) = opened.feed(call("Configure", fields.encode((2, "containerd"), (3, "1.7.24"))))
    (answer,) = answers(opened)

    assert session.Configured(runtime="containerd", version="1.7.24") == heard
    assert messages.mask(messages.HEARD) == fields.number(fields.decode(answer.payload), 2)


def test_synchronise_is_answered_at_once() -> None:
    """Before anybody looks at what it says; one of several parts says that it is one."""
    opened = open_session()
    whole = fields.encode((1, nri.pod(POD)), (2, nri.container(CONTAINER)))
    (heard,) = opened.feed(call("Synchronize", whole))
    assert session.Synchronised(pods=(POD,), containers=(CONTAINER,)) == heard
    assert [reply.payload for reply in answers(opened)] == [b""]
    (part,) = opened.feed(call("Synchronize", whole + fields.encode((3, 1)), stream=3))
    assert isinstance(part, session.Synchronised)
    assert part.more
    assert [fields.encode((2, 1))] == [reply.payload for reply in answers(opened)]
    (damaged,) = opened.feed(call("Synchronize", fields.encode((1, b"\x0b")), stream=5))
    assert session.Synchronised(pods=(), containers=()) == damaged
    assert [(reply.payload, reply.code) for reply in answers(opened)] == [(b"", 0)]


@pytest.mark.parametrize("event", list(NriEvent))
def test_events_in_both_spellings(event: NriEvent) -> None:
    """``StateChange`` of NRI 0.6 and the method for each event of newer ones mean the same."""
    name = next(method for method, known in session._METHODS.items() if known is event)
    calls = [
        nri.heard(event, POD, CONTAINER),
        (name, fields.encode((1, nri.pod(POD)), (2, nri.container(CONTAINER)))),
    ]
    for method, payload in calls:
        (heard,) = open_session().feed(call(method, payload))
        assert isinstance(heard, session.Heard)
        assert (event, POD, CONTAINER, 2.0) == (
            heard.event,
            heard.pod,
            heard.container,
            heard.timeout,
        )


def answer(
    event: NriEvent, wanted: adjustment.Adjustment, more: Sequence[tuple[int, fields.Value]] = ()
) -> tuple[session.Heard, ttrpc.TtrpcResponse]:
    """What was heard of an event, and what is sent for an adjustment."""
    opened = open_session()
    method, payload = nri.heard(event, POD, CONTAINER)
    (heard,) = opened.feed(call(method, payload + fields.encode(*more)))
    assert isinstance(heard, session.Heard)
    opened.answer(heard, wanted)
    (back,) = answers(opened)
    return heard, back


def test_answers() -> None:
    """A creation gets an adjustment, an update what shall be instead, all else nothing."""
    _, created = answer(NriEvent.CREATE_CONTAINER, CPU_1)
    assert nri.cpus(created) == "1"
    cpu = fields.encode((2, fields.encode((6, "0-3"))))
    heard, updated = answer(NriEvent.UPDATE_CONTAINER, CPU_1, [(3, cpu)])
    assert heard.cpus == "0-3"
    assert messages.update("c", CPU_1) == fields.raw(fields.decode(updated.payload), 1)
    _, untouched = answer(NriEvent.UPDATE_CONTAINER, adjustment.Adjustment(), [(3, cpu)])
    _, started = answer(NriEvent.START_CONTAINER, CPU_1)
    assert [untouched.payload, started.payload] == [b"", b""]


def test_what_is_not_understood_costs_one_event() -> None:
    """Unknown methods and damaged messages are refused; a damaged creation goes on without us."""
    opened = open_session()
    calls = [
        ("ValidateContainerAdjustment", b"", 12),
        ("StateChange", fields.encode((1, 99)), 12),
        ("StateChange", b"\x0b", 12),
        ("CreateContainer", b"\x0b", 0),
        ("Shutdown", b"", 0),
    ]
    for number, (method, payload, code) in enumerate(calls):
        list(opened.feed(call(method, payload, stream=2 * number + 1)))
        assert [(code, 2 * number + 1)] == [(reply.code, reply.stream) for reply in answers(opened)]


def test_updates() -> None:
    """They go to the runtime's side; its answer is told apart by the stream."""
    opened = open_session()
    stream = opened.update([("a", CPU_1), ("b", CPU_1)])
    (request,) = sent(opened)
    assert isinstance(request, ttrpc.TtrpcRequest)
    assert ("UpdateContainers", stream) == (request.method, request.stream)
    assert [fields.text(e, 1) for e in fields.each(fields.decode(request.payload), 1)] == ["a", "b"]
    (back,) = opened.feed(ttrpc.write(mux.RUNTIME, ttrpc.TtrpcResponse(stream, b"")))
    assert session.Answered(stream=stream, problem="") == back


_calls = st.builds(
    call,
    st.sampled_from([*session._METHODS, "StateChange", "Configure", "Synchronize", "?"]),
    st.one_of(
        st.binary(max_size=60),
        st.builds(
            lambda n, a, b: fields.encode((n, a), (2, b)),
            st.integers(1, 5),
            st.binary(max_size=20),
            st.binary(max_size=20),
        ),
    ),
    st.integers(0, 100),
)


@given(st.lists(st.one_of(_calls, st.binary(max_size=40)), max_size=8))
def test_any_bytes(pieces: list[bytes]) -> None:
    """Nothing but the end of the connection is ever raised, and every event can be answered."""
    opened = open_session()
    with contextlib.suppress(mux.BrokenError):
        for piece in pieces:
            for heard in opened.feed(piece):
                if isinstance(heard, session.Heard):
                    opened.answer(heard, CPU_1)


@given(st.binary(max_size=120), st.sampled_from(["CreateContainer", "StateChange", "Synchronize"]))
def test_every_call_is_answered_once(payload: bytes, method: str) -> None:
    """Whatever is in it: the runtime waits for each."""
    opened = open_session()
    for heard in opened.feed(call(method, payload, stream=9)):
        if isinstance(heard, session.Heard):
            opened.answer(heard)

    assert [heard.stream for heard in answers(opened)] == [9]
