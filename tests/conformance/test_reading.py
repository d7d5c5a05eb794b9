"""Get, list, selectors: what the port promises about reading."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import kinds, objects, refusals, selectors
from tests.conformance.worlds import World
from tests.kit.watches import drained


async def test_a_missing_object_is_not_found(world: World) -> None:
    """There is no such object: the error names it."""
    with pytest.raises(refusals.NotFound) as caught:
        await world.store.get(objects.Ref(kinds.PODS, "nobody", world.namespace))

    assert "nobody" in caught.value.culprit
    assert not isinstance(caught.value, refusals.NotServed)


async def test_a_kind_that_is_not_served(world: World) -> None:
    """A kind without a definition is told apart from an object that is missing.

    The store on a local file needs no definitions: there it is a kind without objects.
    """
    unknown = kinds.Kind("attic.example", "v1", "boxes", "Box", namespaced=False)
    if not world.finite:
        assert (await objects.collect(world.store.list(unknown))).items == ()
        return

    with pytest.raises(refusals.NotServed):
        await world.store.get(objects.Ref(unknown, "one"))
    with pytest.raises(refusals.NotServed):
        await objects.collect(world.store.list(unknown))


async def test_an_empty_list_is_an_empty_list(world: World) -> None:
    """No objects is one empty page with a revision to watch from."""
    pages = [page async for page in world.store.list(kinds.PODS, namespace=world.namespace)]

    assert [page.items for page in pages] == [()]
    assert pages[0].revision


async def test_a_list_is_one_state_in_pages(world: World) -> None:
    """Many objects come in several pages, each object once, all pages of one revision."""
    made = {(await world.pod()).name for _ in range(8)}

    pages = [page async for page in world.store.list(kinds.PODS, namespace=world.namespace)]

    assert len(pages) == 3
    assert len({page.revision for page in pages}) == 1
    assert [objects.text(body, "name") for page in pages for body in page.items] == sorted(made)


async def test_a_list_has_whole_objects(world: World) -> None:
    """What is listed says its kind and is what ``get`` gives."""
    ref = await world.pod()

    listed = await objects.collect(world.store.list(kinds.PODS, namespace=world.namespace))

    assert listed.items == (await world.store.get(ref),)
    assert listed.items[0]["kind"] == "Pod"
    assert listed.items[0]["apiVersion"] == "v1"


async def test_a_namespace_bounds_a_list(world: World) -> None:
    """A list of one namespace has nothing of another, a list of all has both."""
    here, there = await world.pod(), await world.pod(namespace=world.other)

    assert await world.listed(kinds.PODS) == [here.name]
    assert await world.listed(kinds.PODS, namespace=world.other) == [there.name]
    assert {here.name, there.name} <= set(await world.listed(kinds.PODS, namespace=""))


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("app=web", ["web"]),
        ("app!=web", ["bare", "db"]),
        ("app in (web,db)", ["db", "web"]),
        ("app notin (web)", ["bare", "db"]),
        ("app", ["db", "web"]),
        ("!app", ["bare"]),
        ("app,tier=back", ["db"]),
    ],
)
async def test_labels_select(world: World, labels: str, wanted: list[str]) -> None:
    """Every operator of label selectors."""
    for name, has in (("web", {"app": "web"}), ("db", {"app": "db", "tier": "back"}), ("bare", {})):
        container = {"name": "main", "image": "registry.example/app:1"}
        await world.store.create(
            kinds.PODS,
            {
                "metadata": {"name": name, "namespace": world.namespace, "labels": has},
                "spec": {"containers": [container]},
            },
        )

    assert await world.listed(kinds.PODS, labels=labels) == wanted


async def test_fields_select(world: World) -> None:
    """Pods are selected by name, node and phase, services by their address."""
    bound, free = await world.pod(), await world.pod()
    await world.store.bind(bound, "node-1")
    meta = {"name": world.name(), "namespace": world.namespace}
    spec = {"clusterIP": "None", "ports": [{"port": 80}]}
    headless = await world.store.create(kinds.SERVICES, {"metadata": meta, "spec": spec})

    assert await world.listed(kinds.PODS, fields="spec.nodeName=node-1") == [bound.name]
    assert await world.listed(kinds.PODS, fields="spec.nodeName=") == [free.name]
    assert await world.listed(kinds.PODS, fields=f"metadata.name={free.name}") == [free.name]
    assert await world.listed(kinds.PODS, fields="status.phase!=Pending") == []
    named = [objects.text(headless, "name")]
    assert await world.listed(kinds.SERVICES, fields="spec.clusterIP=None") == named
    assert await world.listed(kinds.SERVICES, fields="spec.clusterIP!=None") == []


async def test_fields_of_custom_resources_select(world: World) -> None:
    """A custom resource is selected by the fields that its definition names."""
    here, _ = await world.reservation(), await world.reservation()
    patch = objects.Merge({"status": {"nodeName": "node-1"}})
    await world.store.patch(here, patch, subresource="status")

    names = await world.listed(
        kinds.RESERVATIONS, f"world={world.namespace}", "status.nodeName=node-1"
    )

    assert names == [here.name]


async def test_a_field_that_does_not_select(world: World) -> None:
    """A selector by another field is refused, in lists and in watches, and never ignored."""
    selector = selectors.Selector(fields="spec.priority=7")
    revision = await world.revision(kinds.PODS)

    with pytest.raises(refusals.Malformed):
        await objects.collect(world.store.list(kinds.PODS, selector=selector))
    with pytest.raises(refusals.Malformed):
        await drained(world.store.watch(kinds.PODS, revision, selector=selector))
