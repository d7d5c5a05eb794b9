"""DeviceClasses: selectors, settings, and errors that name the field."""

from __future__ import annotations

import re
from typing import Any

import pytest

from koordlet.scheduler.objects import device_classes, wire
from tests.kit import device_claims as kit


def test_a_class_has_selectors_settings_and_a_resource() -> None:
    """The settings stay as they are written: they go to drivers."""
    config = {"opaque": {"driver": kit.DRIVER, "parameters": {"mode": "fast"}}}
    body = kit.device_class("gpu", "true", extendedResourceName="example.com/gpu", config=[config])
    assert device_classes.decode(body) == device_classes.DeviceClass(
        "gpu", ("true",), (config,), "example.com/gpu"
    )


def test_a_selector_of_a_kind_that_is_not_known_is_an_empty_expression() -> None:
    """The allocation that needs it fails by name, all others go on."""
    body = kit.device_class("gpu", selectors=[{"rego": {}}])
    assert device_classes.decode(body).selectors == ("",)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"selectors": [{"cel": []}]}, "spec.selectors[0].cel is not an object: []"),
        (
            {"selectors": [{"cel": {"expression": 1}}]},
            "spec.selectors[0].cel.expression is not a string: 1",
        ),
        ({"config": [{"opaque": {"driver": 1}}]}, "spec.config[0].opaque.driver is not a string"),
        ({"extendedResourceName": 1}, "spec.extendedResourceName is not a string: 1"),
    ],
)
def test_a_field_of_another_shape_is_named_with_its_path(
    spec: dict[str, Any], message: str
) -> None:
    """Whoever wrote the class finds the place."""
    with pytest.raises(wire.BadObjectError, match=re.escape(message)):
        device_classes.decode(kit.device_class("gpu", **spec))
