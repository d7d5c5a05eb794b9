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
BOX = messages.NriContainer(id="c", pod="s", name="main")
ONE = adjustment.Adjustment(cpus=cpuset.CPUSet.parse("1"))


def fresh() -> session.Session:
    """A session whose registration was sent."""
    one = session.Session(name="koordlet", index="10")
    one.take()
    return one


def call(method: str, payload: bytes, stream: int = 1, timeout: float = 2.0) -> bytes:
    """The bytes of a call of the runtime."""
    return ttrpc.write(
        mux.PLUGIN, ttrpc.TtrpcRequest(stream, nri.SERVICE, method, payload, timeout)
    )


def sent(one: session.Session) -> list[ttrpc.Message]:
    """The messages that the session wants sent."""
    cutter, readers = mux.Cutter(), {1: ttrpc.TtrpcReader(), 2: ttrpc.TtrpcReader()}
    return [m for where, data in cutter.feed(one.take()) for m in readers[where].feed(data)]


def answers(one: session.Session) -> list[ttrpc.TtrpcResponse]:
    """The answers among them."""
    return [each for each in sent(one) if isinstance(each, ttrpc.TtrpcResponse)]


def test_registration() -> None:
    """It comes first, with name and index; a refusal is told from an answer to anything else."""
    one = session.Session(name="koordlet", index="10")
    (said,) = sent(one)
    assert isinstance(said, ttrpc.TtrpcRequest)
    assert (said.method, said.service) == ("RegisterPlugin", "nri.pkg.api.v1alpha1.Runtime")
    assert [fields.text(fields.decode(said.payload), n) for n in (1, 2)] == ["koordlet", "10"]
    refusal = ttrpc.TtrpcResponse(said.stream, b"", 2, "invalid plugin index")
    (heard,) = one.feed(ttrpc.write(mux.RUNTIME, refusal))

    assert heard == session.Answered(
        stream=one.registration, problem="status 2: invalid plugin index"
    )


def test_configured_before_the_registration_is_answered() -> None:
    """The mask names nothing that a runtime may not know, and is in field 2."""
    one = fresh()
    (heard,) = one.feed(call("Configure", fields.encode((2, "containerd"), (3, "1.7.24"))))
    (answer,) = answers(one)

    assert session.Configured(runtime="containerd", version="1.7.24") == heard
    assert messages.mask(messages.HEARD) == fields.number(fields.decode(answer.payload), 2)


def test_synchronise_is_answered_at_once() -> None:
    """Before anybody looks at what it says; one of several parts says that it is one."""
    one = fresh()
    whole = fields.encode((1, nri.pod(POD)), (2, nri.container(BOX)))
    (heard,) = one.feed(call("Synchronize", whole))
    assert session.Synchronised(pods=(POD,), containers=(BOX,)) == heard
    assert [each.payload for each in answers(one)] == [b""]
    (part,) = one.feed(call("Synchronize", whole + fields.encode((3, 1)), stream=3))
    assert isinstance(part, session.Synchronised)
    assert part.more
    assert [fields.encode((2, 1))] == [each.payload for each in answers(one)]
    (damaged,) = one.feed(call("Synchronize", fields.encode((1, b"\x0b")), stream=5))
    assert session.Synchronised(pods=(), containers=()) == damaged
    assert [(each.payload, each.code) for each in answers(one)] == [(b"", 0)]


@pytest.mark.parametrize("event", list(NriEvent))
def test_events_in_both_spellings(event: NriEvent) -> None:
    """``StateChange`` of NRI 0.6 and the method for each event of newer ones mean the same."""
    name = next(method for method, each in session._METHODS.items() if each is event)
    both = [
        nri.heard(event, POD, BOX),
        (name, fields.encode((1, nri.pod(POD)), (2, nri.container(BOX)))),
    ]
    for method, payload in both:
        (heard,) = fresh().feed(call(method, payload))
        assert isinstance(heard, session.Heard)
        assert (event, POD, BOX, 2.0) == (heard.event, heard.pod, heard.container, heard.timeout)


def answer(
    event: NriEvent, wanted: adjustment.Adjustment, more: Sequence[tuple[int, fields.Value]] = ()
) -> tuple[session.Heard, ttrpc.TtrpcResponse]:
    """What was heard of an event, and what is sent for an adjustment."""
    one = fresh()
    method, payload = nri.heard(event, POD, BOX)
    (heard,) = one.feed(call(method, payload + fields.encode(*more)))
    assert isinstance(heard, session.Heard)
    one.answer(heard, wanted)
    (back,) = answers(one)
    return heard, back


def test_answers() -> None:
    """A creation gets an adjustment, an update what shall be instead, all else nothing."""
    _, created = answer(NriEvent.CREATE_CONTAINER, ONE)
    assert nri.cpus(created) == "1"
    cpu = fields.encode((2, fields.encode((6, "0-3"))))
    heard, updated = answer(NriEvent.UPDATE_CONTAINER, ONE, [(3, cpu)])
    assert heard.cpus == "0-3"
    assert messages.update("c", ONE) == fields.raw(fields.decode(updated.payload), 1)
    _, untouched = answer(NriEvent.UPDATE_CONTAINER, adjustment.Adjustment(), [(3, cpu)])
    _, started = answer(NriEvent.START_CONTAINER, ONE)
    assert [untouched.payload, started.payload] == [b"", b""]


def test_what_is_not_understood_costs_one_event() -> None:
    """Unknown methods and damaged messages are refused; a damaged creation goes on without us."""
    one = fresh()
    calls = [
        ("ValidateContainerAdjustment", b"", 12),
        ("StateChange", fields.encode((1, 99)), 12),
        ("StateChange", b"\x0b", 12),
        ("CreateContainer", b"\x0b", 0),
        ("Shutdown", b"", 0),
    ]
    for number, (method, payload, code) in enumerate(calls):
        list(one.feed(call(method, payload, stream=2 * number + 1)))
        assert [(code, 2 * number + 1)] == [(each.code, each.stream) for each in answers(one)]


def test_updates() -> None:
    """They go to the runtime's side; its answer is told apart by the stream."""
    one = fresh()
    stream = one.update([("a", ONE), ("b", ONE)])
    (said,) = sent(one)
    assert isinstance(said, ttrpc.TtrpcRequest)
    assert ("UpdateContainers", stream) == (said.method, said.stream)
    assert [fields.text(e, 1) for e in fields.each(fields.decode(said.payload), 1)] == ["a", "b"]
    (back,) = one.feed(ttrpc.write(mux.RUNTIME, ttrpc.TtrpcResponse(stream, b"")))
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
    one = fresh()
    with contextlib.suppress(mux.BrokenError):
        for piece in pieces:
            for each in one.feed(piece):
                if isinstance(each, session.Heard):
                    one.answer(each, ONE)


@given(st.binary(max_size=120), st.sampled_from(["CreateContainer", "StateChange", "Synchronize"]))
def test_every_call_is_answered_once(payload: bytes, method: str) -> None:
    """Whatever is in it: the runtime waits for each."""
    one = fresh()
    for each in one.feed(call(method, payload, stream=9)):
        if isinstance(each, session.Heard):
            one.answer(each)

    assert [each.stream for each in answers(one)] == [9]
