"""Our definitions and writers on a real API server: accepted, and nothing of ours is dropped.

Covers: ``deploy/crds`` as it is shipped, the examples, every writer. Runs where
``KUBEBUILDER_ASSETS`` names the programs, and is skipped elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.history import series
from koordlet.kube import adapter, credentials
from koordlet.model import kinds, objects
from koordlet.report import rows
from koordlet.report.crds import definitions
from tests.conformance import real
from tests.kit import structural
from tests.report.objects import test_peer_fields
from tests.report.test_writing import Racing, offering

REPO = Path(__file__).parents[2]
_SHIPPED = tuple(
    yaml.safe_load(path.read_text()) for path in sorted((REPO / "deploy" / "crds").glob("*.yaml"))
)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a server that has our definitions."""
    assets = real.assets()
    if assets is None:
        pytest.skip(real.WHY_NOT)
    with real.running(assets, tmp_path_factory.mktemp("definitions"), _SHIPPED) as made:
        yield made


@asynccontextmanager
async def opened(config: Path) -> AsyncGenerator[objects.Objects]:
    """A client."""
    client = adapter.Kube(credentials.Credentials(credentials.Source(kubeconfig=str(config))))
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize("shipped", _SHIPPED, ids=lambda one: one["metadata"]["name"])
def test_a_definition_is_established(config: Path, shipped: dict[str, Any]) -> None:
    """It is served, its names are its own, and its schema is structural."""

    async def body() -> Mapping[str, Any]:
        async with opened(config) as client:
            ref = objects.Ref(kinds.CUSTOM_RESOURCES, shipped["metadata"]["name"])
            while True:
                found = await client.get(ref)
                said = {one["type"]: one["status"] for one in found["status"]["conditions"]}
                if said.get("Established") == "True":
                    return said
                await asyncio.sleep(0.05)

    said = asyncio.run(asyncio.wait_for(body(), 30))
    assert said["NamesAccepted"] == "True"
    assert said.get("NonStructuralSchema", "False") == "False"
    assert said.get("KubernetesAPIApprovalPolicyConformant", "True") == "True"


def _examples() -> list[Any]:
    return [
        pytest.param(one, id=f"{path.stem}-{number}")
        for path in sorted((REPO / "fixtures" / "cluster" / "objects").glob("*.yaml"))
        for number, one in enumerate(yaml.safe_load_all(path.read_text()))
    ]


@pytest.mark.parametrize("body", _examples())
def test_an_example_is_taken(config: Path, body: dict[str, Any]) -> None:
    """As our own reading of the schema has it: what is pruned, what is filled in."""
    group, _, version = body["apiVersion"].partition("/")
    row = next(
        one
        for one in definitions.DEFINITIONS
        if (one.kind.group, one.kind.name) == (group, body["kind"])
    )
    kind = kinds.Kind(group, version, row.kind.plural, row.kind.name, row.kind.namespaced)
    wanted = structural.admitted(definitions.document(row), version, body)

    async def create() -> objects.Object:
        async with opened(config) as client:
            metadata = {"name": objects.text(body, "name")}
            return await client.create(kind, {**body, "metadata": metadata}, dry_run=True)

    made = asyncio.run(asyncio.wait_for(create(), 30))
    unsaid = {"metadata", "status", "apiVersion", "kind"}
    assert {k: v for k, v in wanted.items() if k not in unsaid} == {
        k: v for k, v in made.items() if k not in unsaid
    }


def test_every_writer(config: Path) -> None:
    """Each object is written, is kept as it was sent, and so is not written a second time."""
    now = offering(test_peer_fields.with_gpu(), cpu=20_000, memory=1 << 34)
    node = now.snapshot.node.name
    manners, clock = rows.Manners(), Racing()
    every = (rows.Topology(manners, clock), rows.Device(manners, clock),
             rows.Status(manners, clock))  # fmt: skip

    async def body() -> None:
        async with opened(config) as client:
            await client.create(kinds.NODES, {"metadata": {"name": node}})
            assert 1 == await rows.Metric(series.History()).bring(client, now)
            metric = await client.get(objects.Ref(kinds.NODE_METRICS, node))
            assert metric["status"]["updateTime"]
            for row in every:
                await row.bring(client, now)
                assert 0 == await row.bring(client, now), row.name
            devices = (await client.get(objects.Ref(kinds.DEVICES, node)))["spec"]["devices"]
            assert ["gpu", "rdma"] == [one["type"] for one in devices]

    asyncio.run(asyncio.wait_for(body(), 60))
