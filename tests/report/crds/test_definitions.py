"""The definitions: accepted by an API server, the same as what is shipped, true to the peers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, Field

from koordlet import cli
from koordlet.cli import crds
from koordlet.report.crds import definitions, structural
from tests.kit import structural as kit

SHIPPED = Path(__file__).parents[3] / "deploy" / "crds"
EXAMPLES = Path(__file__).parents[3] / "fixtures" / "cluster" / "objects"
DOCUMENTS = {document["metadata"]["name"]: document for document in definitions.documents()}


def _schemas() -> list[Any]:
    return [
        pytest.param(version["schema"]["openAPIV3Schema"], id=f"{name}/{version['name']}")
        for name, document in DOCUMENTS.items()
        for version in document["spec"]["versions"]
    ]


@pytest.mark.parametrize("schema", _schemas())
def test_a_server_accepts_it(schema: dict[str, Any]) -> None:
    """Each schema is structural: known keywords, a type everywhere, legal defaults."""
    assert list(kit.faults(schema)) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_names_agree(name: str) -> None:
    """Name, group, plural and stored version fit; protected groups have their approval."""
    spec = DOCUMENTS[name]["spec"]

    assert f"{spec['names']['plural']}.{spec['group']}" == name
    assert sum(version["storage"] for version in spec["versions"]) == 1
    approved = "api-approved.kubernetes.io" in DOCUMENTS[name]["metadata"].get("annotations", {})
    assert approved is spec["group"].endswith(".k8s.io")


def test_topology_is_served_in_both_versions() -> None:
    """``v1alpha2`` is stored; both versions have one shape, so nothing is lost between them."""
    old, new = DOCUMENTS["noderesourcetopologies.topology.node.k8s.io"]["spec"]["versions"]

    assert (old["name"], old["storage"]) == ("v1alpha1", False)
    assert (new["name"], new["storage"]) == ("v1alpha2", True)
    assert old["schema"] == new["schema"]


def test_reservations_print_as_the_peers_do() -> None:
    """Columns in order, a status of its own, selectable by node."""
    spec = DOCUMENTS["reservations.scheduling.koordinator.sh"]["spec"]
    (version,) = spec["versions"]

    assert [column["name"] for column in version["additionalPrinterColumns"]] == [
        "Phase",
        "Age",
        "Node",
        "TTL",
        "Expires",
    ]
    assert version["subresources"] == {"status": {}}
    assert version["selectableFields"] == [{"jsonPath": ".status.nodeName"}]


def test_for_older_servers_without_what_they_refuse(capsys: pytest.CaptureFixture[str]) -> None:
    """``selectableFields`` came with 1.30; nothing else is left out."""
    assert cli.main(["crds", "--before-1.30"]) == 0
    printed = {
        document["metadata"]["name"]: document
        for document in yaml.safe_load_all(capsys.readouterr().out)
    }

    assert printed.keys() == DOCUMENTS.keys()
    for name, document in DOCUMENTS.items():
        for new in document["spec"]["versions"]:
            plain = {key: value for key, value in new.items() if key != "selectableFields"}
            assert plain in printed[name]["spec"]["versions"]


def test_what_is_shipped_is_what_is_printed() -> None:
    """``deploy/crds`` holds one file for each kind, as ``koordlet crds`` prints it now."""
    shipped = {path.stem: path.read_text() for path in SHIPPED.glob("*.yaml")}

    assert {name: crds.text(document) for name, document in DOCUMENTS.items()} == shipped, (
        "koordlet crds --directory deploy/crds"
    )
    assert [yaml.safe_load(text) for text in shipped.values()] == [
        DOCUMENTS[name] for name in shipped
    ]


def examples() -> list[Any]:
    """Objects as kubectl prints them, of the peers' documentation."""
    return [
        pytest.param(body, id=f"{path.stem}-{number}")
        for path in sorted(EXAMPLES.glob("*.yaml"))
        for number, body in enumerate(yaml.safe_load_all(path.read_text()))
    ]


@pytest.mark.parametrize("body", examples())
def test_examples_are_accepted(body: dict[str, Any]) -> None:
    """Each example passes its schema, loses nothing, and is an object of its model."""
    group, _, version = body["apiVersion"].partition("/")
    row = next(
        definition
        for definition in definitions.DEFINITIONS
        if (definition.kind.group, definition.kind.name) == (group, body["kind"])
    )
    kept = kit.admitted(definitions.document(row), version, body)

    assert (
        body.items()
        <= {**kept, **{key: body[key] for key in ("spec", "status") if key in body}}.items()
    )
    assert _covers(kept, body)
    fields = {
        key: part for key, part in body.items() if key not in {"apiVersion", "kind", "metadata"}
    }
    row.model.model_validate(fields)


def _covers(kept: Any, body: Any) -> bool:
    """Whether everything of the one is in the other."""
    if isinstance(body, dict):
        return all(name in kept and _covers(kept[name], part) for name, part in body.items())
    if isinstance(body, list):
        return len(kept) == len(body) and all(map(_covers, kept, body))
    return bool(kept == body)


def test_defaults_of_a_reservation() -> None:
    """The server fills in what the peer's definition fills in."""
    row = definitions.find("reservations")
    body = {"spec": {"template": {"spec": {"anything": 1}}, "owners": [{}]}, "status": {}}
    kept = kit.admitted(definitions.document(row), "v1alpha1", body)

    assert (kept["spec"]["ttl"], kept["spec"]["allocateOnce"]) == ("24h", True)
    assert kept["status"]["phase"] == "Pending"
    assert kept["spec"]["template"] == {"spec": {"anything": 1}}


@pytest.mark.parametrize(
    "spec",
    [
        {"owners": [{}]},
        {"template": {}, "owners": []},
        {"template": {}, "owners": [{"controller": {"name": "x"}}]},
        {"template": {}, "owners": [{}], "allocatePolicy": "Whatever"},
    ],
)
def test_bad_reservations_are_refused(spec: dict[str, Any]) -> None:
    """No template, no owner, half a controller, an unknown policy."""
    row = definitions.find("reservations")

    with pytest.raises(ValueError, match="spec"):
        kit.admitted(definitions.document(row), "v1alpha1", {"spec": spec})


def test_the_check_of_schemas_finds_faults() -> None:
    """What an API server refuses is a fault here."""
    bad = {
        "type": "object",
        "properties": {
            "a": {},
            "b": {"type": "array"},
            "c": {"type": "string", "default": 1},
            "d": {"type": "string", "$ref": "x"},
            "e": {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        },
        "required": ["z"],
    }

    assert len(list(kit.faults(bad))) == 6


def test_a_model_with_a_foreign_keyword_is_our_bug() -> None:
    """A field that pydantic describes in words no server knows is found here."""

    class Odd(BaseModel):
        """Odd."""

        number: int = Field(multiple_of=2)

    with pytest.raises(ValueError, match="multipleOf"):
        structural.schema(Odd)
