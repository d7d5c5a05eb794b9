"""The service over a real socket: idempotent creates, errors by name, watches, timelines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.kubeapi import refusals
from koordlet.rpc import client as rpc_client
from koordlet.rpc.gen import reservations_pb2 as pb
from tests.kit import reserving
from tests.kit.reservations import reservation


@pytest.fixture
def client(tmp_path: Path) -> Iterator[rpc_client.ReservationsClient]:
    """Connected to a keeper of its own."""
    with (
        reserving.served(tmp_path) as folder,
        rpc_client.ReservationsClient(folder / "run/scheduler.sock") as reservations,
    ):
        yield reservations


def test_create_get_list_delete(client: rpc_client.ReservationsClient) -> None:
    """Defaults are filled in, and the whole object comes back as well."""
    made = client.create(reservation("r", cpu="1"))

    assert (made.name, made.phase, made.allocate_once) == ("r", "Pending", True)
    assert made.HasField("created")
    assert made.HasField("expires")
    assert '"ttl":"24h"' in made.manifest
    assert [listed.name for listed in client.list()] == ["r"]
    assert client.list("some-node") == []
    assert client.get("r").uid == made.uid
    client.delete("r", made.uid)
    with pytest.raises(refusals.NotFound):
        client.get("r")


def test_creating_again(client: rpc_client.ReservationsClient) -> None:
    """The same wish or the same token is the same reservation; another wish is refused."""
    first = client.create(reservation("r", cpu="1"))

    assert client.create(reservation("r", cpu="1")).uid == first.uid
    with pytest.raises(refusals.AlreadyExists, match="another specification"):
        client.create(reservation("r", cpu="2"))
    tokened = client.create(reservation("t", cpu="1"), "mine")
    assert client.create(reservation("t", cpu="9"), "mine").uid == tokened.uid


def test_what_cannot_be_meant(client: rpc_client.ReservationsClient) -> None:
    """Refused with the field, and nothing is stored."""
    with pytest.raises(refusals.Invalid, match="ttl is negative"):
        client.create(reservation("r", ttl="-1h"))
    with pytest.raises(refusals.Invalid, match="misses the owner spec"):
        client.create(reservation("r", owners=[]))
    assert client.list() == []


def test_watching(client: rpc_client.ReservationsClient) -> None:
    """What is there, then what changes; from a revision only what came later."""
    client.create(reservation("a", cpu="1"))
    events = client.watch()
    first = [next(events) for _ in range(3)]
    assert [event.verb for event in first] == [
        pb.ReservationEvent.RESET,
        pb.ReservationEvent.SET,
        pb.ReservationEvent.SYNCED,
    ]
    client.create(reservation("b", cpu="1"))
    client.delete("a")
    changes = [next(events), next(events)]
    assert [(event.verb, event.reservation.name) for event in changes] == [
        (pb.ReservationEvent.SET, "b"),
        (pb.ReservationEvent.REMOVED, "a"),
    ]
    resumed = next(client.watch(changes[0].revision))
    assert (resumed.verb, resumed.reservation.name) == (pb.ReservationEvent.REMOVED, "a")


def test_the_timeline(client: rpc_client.ReservationsClient) -> None:
    """Born, and when it will end; what is most likely not meant is said."""
    client.create(reservation("r", cpu="1", owners=[{}]))
    described = client.describe("r")

    assert [entry.what for entry in described.timeline] == ["created", "expires"]
    assert list(described.warnings) == ["spec.owners[0] matches every pod"]


def test_nobody_listens(tmp_path: Path) -> None:
    """Said with the socket and what to do."""
    with (
        rpc_client.ReservationsClient(tmp_path / "none.sock") as client,
        pytest.raises(refusals.Unavailable) as caught,
    ):
        client.get("r")
    assert "koordlet scheduler" in str(caught.value)
    assert caught.value.message == "the scheduler does not answer: No such file or directory"
