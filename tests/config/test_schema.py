"""The schema: what a valid configuration is, and what editors are told of it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from koordlet.config import catalog, plain, schema, workload_sections
from koordlet.config import sections as config_sections


def workload(**fields: object) -> dict[str, Any]:
    """A configuration with one workload."""
    return {"workloads": [{"name": "a", "qos": "BE", "match": {"unit": "a.service"}, **fields}]}


def sections(model: type[BaseModel]) -> set[type[BaseModel]]:
    """The model and all below it."""
    models: set[type[BaseModel]] = {model}
    for _, info in catalog.section_fields(model):
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            models |= sections(info.annotation)
    return models


def test_unique_names() -> None:
    """Two workloads of one name are an error at the second one."""
    data = workload()
    data["workloads"] *= 2

    with pytest.raises(ValidationError) as caught:
        schema.Config.model_validate(data)

    detail = caught.value.errors()[0]
    assert detail["ctx"]["at"] == ("workloads", 1, "name")


def test_every_field_is_described() -> None:
    """Every field has a description of one sentence for the reference page and for editors."""
    described: set[type[BaseModel]] = {workload_sections.Workload, workload_sections.Match}
    config_sections.described(schema.Config)
    for section in sections(schema.Config) | described:
        for key, info in catalog.section_fields(section):
            assert (info.description or "").endswith("."), f"{section.__name__}.{key}"


def test_policies_have_mode_and_limits() -> None:
    """Each policy section has a mode and limits, and is spelled as its stem."""
    for stem, info in catalog.section_fields(schema.Policies):
        assert stem == stem.lower()
        assert isinstance(info.annotation, type)
        assert {"mode", "limits"} <= set(info.annotation.model_fields)


@pytest.mark.parametrize(
    ("section", "key", "value", "kind"),
    [
        ("reserved_cpus", "cpus", 3, "integer"),
        ("node_pressure", "evictionHard", "memory.available<100Mi", "string"),
        ("node_pressure", "evictionSoftGracePeriod", "memory.available=1m", "string"),
    ],
)
def test_json_schema_admits_what_yaml_and_flags_spell(
    section: str, key: str, value: object, kind: str
) -> None:
    """A list of one CPU is a number in YAML; thresholds are also written as the kubelet's flags."""
    schema.Config.model_validate({"policies": {section: {key: value}}})
    definitions = schema.json_schema()["$defs"]
    name = definitions["Policies"]["properties"][section]["$ref"].rpartition("/")[2]

    assert kind in {either["type"] for either in definitions[name]["properties"][key]["anyOf"]}


def test_json_schema() -> None:
    """The JSON schema has the keys of the file, refuses others, and knows the choices."""
    json_schema = schema.json_schema()

    assert set(plain.document(schema.defaults())) == set(json_schema["properties"])
    assert json_schema["additionalProperties"] is False
    shared = json_schema["$defs"]["SharedPools"]["properties"]
    assert shared["mode"]["enum"] == ["off", "shadow", "enforce"]


def test_plain_round_trip() -> None:
    """The plain form of a configuration is the same configuration again."""
    config = schema.Config.model_validate(workload(cpus=3, requests={"cpu": 0.5}))

    assert config == schema.Config.model_validate(plain.document(config))


_FILES: tuple[Any, ...] = (
    {},
    None,
    3,
    {"mode": "observe", "report": {"http": {"address": "127.0.0.1:0"}}},
    {"policies": None, "state": None},
    {"policies": {}},
    {"policies": {"memory_qos": {"beClass": {"enable": True}}, "cpu_evict": None}},
    {"policies": {"cpu_burst": {"mode": "shadow"}}, "counters": {"cpi": {"enabled": True}}},
    {"policies": {"memoryQos": {}}},
    {"policies": 3, "reports": {}, "node": {"name": 5}},
    {"policies": {"adaptive": {"mode": "sometimes", "limits": {"most": 1}}}},
    {"counters": {"cpi": {"windowSeconds": 9, "intervalSeconds": 8}}},
)


@pytest.mark.parametrize("data", _FILES, ids=str)
def test_what_data_leave_out_changes_no_answer(data: Any) -> None:
    """With validators of the named sections alone, as with all: same record, same errors."""

    def answer(validate: Any) -> object:
        try:
            return validate(data).record()
        except ValidationError as error:
            return error.title, error.errors(include_url=False)

    assert answer(schema.validate) == answer(schema.Config.model_validate)


def test_what_data_leave_out_has_no_validator() -> None:
    """Making the validators of all sections would take most of an agent's start."""
    named = type(schema.validate({"policies": {"cpu_evict": {"mode": "shadow"}}}))

    policies: Any = named.model_fields["policies"].annotation
    assert _typed(policies) == {"cpu_evict"}
    assert _typed(named) == {"api_version", "kind", "mode", "workloads", "policies"}


def _typed(section: type[BaseModel]) -> set[str]:
    return {name for name, info in section.model_fields.items() if info.annotation is not Any}
