"""Our definitions and writers on a real API server: accepted, and nothing of ours is dropped.

Covers: ``deploy/crds`` as it is shipped, the examples, every writer with the rights of the shipped
role. Runs where ``KUBEBUILDER_ASSETS`` names the programs, and is skipped elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.kube import adapter, credentials
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import resources
from koordlet.report import remarking, rows
from koordlet.report.crds import definitions
from koordlet.report.objects import holders
from tests.conformance import real
from tests.deploy.documents import documents
from tests.kit import clocks, pasts, structural
from tests.kit.node_reports import Racing, offering
from tests.report import test_remarking
from tests.report.objects import test_peer_fields

REPO = Path(__file__).parents[2]
_SHIPPED = tuple(
    yaml.safe_load(path.read_text()) for path in sorted((REPO / "deploy" / "crds").glob("*.yaml"))
)

_RBAC = ("rbac.authorization.k8s.io", "v1")
#: What gives the agents' account its rights.
_RIGHTS = {
    "ClusterRole": kinds.Kind(*_RBAC, "clusterroles", "ClusterRole", namespaced=False),
    "ClusterRoleBinding": kinds.Kind(
        *(*_RBAC, "clusterrolebindings", "ClusterRoleBinding"), namespaced=False
    ),
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a server that has our definitions."""
    assets = real.assets()
    if assets is None:
        pytest.skip(real.WHY_NOT)
    with real.running(assets, tmp_path_factory.mktemp("definitions"), _SHIPPED) as made:
        yield made


@asynccontextmanager
async def opened(config: Path, manager: str = "koordlet") -> AsyncGenerator[objects.Objects]:
    """A client."""
    who = credentials.Credentials(credentials.CredentialSource(kubeconfig=str(config)))
    client = adapter.KubeStore(who, adapter.RequestTimes(manager=manager))
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize("shipped", _SHIPPED, ids=lambda definition: definition["metadata"]["name"])
def test_a_definition_is_established(config: Path, shipped: dict[str, Any]) -> None:
    """It is served, its names are its own, and its schema is structural."""

    async def body() -> Mapping[str, Any]:
        async with opened(config) as client:
            ref = objects.Ref(kinds.CUSTOM_RESOURCES, shipped["metadata"]["name"])
            while True:
                definition = await client.get(ref)
                conditions = {
                    condition["type"]: condition["status"]
                    for condition in definition["status"]["conditions"]
                }
                if conditions.get("Established") == "True":
                    return conditions
                await asyncio.sleep(0.05)

    conditions = asyncio.run(asyncio.wait_for(body(), 30))
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"
    assert conditions.get("KubernetesAPIApprovalPolicyConformant", "True") == "True"


def _examples() -> list[Any]:
    return [
        pytest.param(example, id=f"{path.stem}-{number}")
        for path in sorted((REPO / "fixtures" / "cluster" / "objects").glob("*.yaml"))
        for number, example in enumerate(yaml.safe_load_all(path.read_text()))
    ]


@pytest.mark.parametrize("body", _examples())
def test_an_example_is_taken(config: Path, body: dict[str, Any]) -> None:
    """As our own reading of the schema has it: what is pruned, what is filled in."""
    group, _, version = body["apiVersion"].partition("/")
    row = next(
        definition
        for definition in definitions.DEFINITIONS
        if (definition.kind.group, definition.kind.name) == (group, body["kind"])
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


def owned(stored: objects.Object, *path: str) -> set[tuple[str, str]]:
    """Who owns a field, and how."""
    return {(holder.manager, holder.operation) for holder in holders.of(stored, *path)}


@pytest.fixture(scope="module")
def account(config: Path) -> Path:
    """The kubeconfig of the agents' account, with the role that is shipped and no other right."""

    async def give() -> None:
        async with opened(config) as client:
            for document in documents("daemonset.yaml"):
                if document["kind"] in _RIGHTS:
                    await client.create(_RIGHTS[document["kind"]], document)

    asyncio.run(asyncio.wait_for(give(), 60))
    kubeconfig = yaml.safe_load(config.read_text())
    kubeconfig["users"][0]["user"] = {"token": real.AGENT_TOKEN}
    path = config.with_name("account")
    path.write_text(yaml.safe_dump(kubeconfig))
    return path


async def test_every_writer(config: Path, account: Path) -> None:
    """With the agents' rights each object is applied, kept as sent, and not written again."""
    now = offering(test_peer_fields.with_gpu(), cpu=20_000, memory=1 << 34)
    node = now.snapshot.node.name
    manners, clock = rows.ReportTimes(), Racing(1000.0)
    every = (rows.TopologyRow(manners, clock), rows.DeviceRow(manners, clock),
             rows.StatusRow(manners, clock))  # fmt: skip

    ours = {(holders.MANAGER, "Apply")}
    async with opened(config) as root, opened(account) as client:
        await root.create(kinds.NODES, {"metadata": {"name": node}})
        assert await rows.Metric(pasts.used_node()).bring(client, now) == 1
        metric = await client.get(objects.Ref(kinds.NODE_METRICS, node))
        assert metric["status"]["updateTime"]
        assert ours == owned(metric, "status", "updateTime")
        for row in every:
            await row.bring(client, now)
            assert await row.bring(client, now) == 0, row.name
        device = await client.get(objects.Ref(kinds.DEVICES, node))
        assert [listed["type"] for listed in device["spec"]["devices"]] == ["gpu", "rdma"]
        assert ours == owned(device, "spec", "devices")
        stored = await client.get(objects.Ref(kinds.NODES, node))
        assert ours == owned(stored, "status", "capacity", resources.BATCH_CPU)
        with pytest.raises(refusals.Forbidden):
            await client.patch(objects.Ref(kinds.NODES, node), objects.Merge({"spec": {}}))


async def test_remarks_are_events(config: Path, account: Path) -> None:
    """With the agents' rights a broken object has its event, which is counted when it stays."""
    now = test_remarking.view_of_broken("web")
    now = dataclasses.replace(now, snapshot=dataclasses.replace(now.snapshot, wall=time.time()))
    clock = clocks.Clock(1000.0)
    row = remarking.EventObjects(clock)
    async with opened(config) as root, opened(account) as client:
        with contextlib.suppress(refusals.AlreadyExists):
            await root.create(kinds.NAMESPACES, {"metadata": {"name": "default"}})
        assert await row.bring(client, now) == 1
        clock.now += 3600
        assert await row.bring(client, now) == 1
        events = await objects.collect(root.list(kinds.EVENTS, namespace="default"))
        (event,) = (each for each in events.items if each.get("reason") == "Malformed")
        assert event["series"]["count"] == 2


async def test_another_manager_is_left_the_resources(config: Path, account: Path) -> None:
    """Its value stays while it writes, our conditions are written; nothing of ours is forced."""
    base = test_peer_fields.with_gpu()
    machine = dataclasses.replace(base.snapshot.node, name="contested")
    base = dataclasses.replace(base, snapshot=dataclasses.replace(base.snapshot, node=machine))
    ref = objects.Ref(kinds.NODES, "contested")
    theirs = {place: {resources.BATCH_CPU: "77"} for place in ("capacity", "allocatable")}
    async with opened(config, "koord-manager") as other, opened(account) as client:
        await other.create(kinds.NODES, {"metadata": {"name": ref.name}})
        row = rows.StatusRow(rows.ReportTimes(), Racing(1000.0))
        assert await row.bring(client, offering(base, cpu=20_000)) == 1
        await other.patch(ref, objects.Merge({"status": theirs}), subresource="status")
        changed = dataclasses.replace(offering(base, cpu=30_000), mode="shadow")
        assert await row.bring(client, changed) == 1
        stored = await client.get(ref)
        assert stored["status"]["allocatable"][resources.BATCH_CPU] == "77"
        assert "mode shadow" in str(stored["status"]["conditions"])
