"""The client library: one look, following, living through a restart, plain errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet import client
from koordlet.rpc import client as calls
from tests.kit import views
from tests.rpc.conftest import Serve


def test_a_look(serve: Serve) -> None:
    """The whole node, with what it uses, has free, feels and offers."""
    served = serve()
    served.publish(views.view())
    with client.connect(f"unix:{served.path}") as node:
        state = node.get()

    assert state.summary.name == "n1"
    assert [domain.cpus for domain in state.free.domains] == ["2-3", "4-6"]


def test_following_gives_whole_states(serve: Serve) -> None:
    """A delta is laid over what is known; a state that was handed out stays as it was."""
    served = serve()
    served.publish(views.view())
    with client.connect(f"unix:{served.path}") as node:
        states = node.follow()
        first = next(states)
        served.publish(views.view(usage={"default/web": 7.0}))
        second = next(states)

    assert first.workloads.workloads[0].usage_milli == 1500
    assert second.workloads.workloads[0].usage_milli == 7000
    assert first.topology == second.topology
    assert second.revision == first.revision + 1


def test_a_restart_is_lived_through(serve: Serve) -> None:
    """The agent goes and another comes: the next state is whole again, of another epoch."""
    served = serve()
    served.publish(views.view())
    pauses: list[float] = []
    with client.Node(calls.RpcClient(served.path), sleep=pauses.append) as node:
        states = node.follow()
        assert next(states).epoch == views.EPOCH
        served.loop.run(served.server.stop())
        again = serve(served.path)
        again.publish(views.view(epoch="epoch-2", mode="observe"))
        after = next(states)

    assert (after.epoch, after.summary.mode) == ("epoch-2", "observe")
    assert pauses
    assert max(pauses) <= 15.0


def test_nobody_there(tmp_path: Path) -> None:
    """One sentence that names whom we asked."""
    with (
        client.connect(f"unix:{tmp_path}/nobody.sock") as node,
        pytest.raises(client.NoAnswerError, match=r"nobody\.sock"),
    ):
        node.get()


def test_a_refusal_is_no_silence(serve: Serve) -> None:
    """A service that is not there is a refusal, and is not tried again."""
    served = serve()

    with pytest.raises(client.RefusedError, match="UNIMPLEMENTED"):
        client.scheduler(f"unix:{served.path}")
