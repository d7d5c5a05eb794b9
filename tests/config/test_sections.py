"""What every section shares."""

from __future__ import annotations

import pydantic
import pytest

from koordlet.config import schema, sections


class Example(sections.Section):
    """A section."""

    some_seconds: int = 3
    mode: sections.PolicyModeField = "shadow"


def test_keys_are_camel_case_and_known() -> None:
    """Another key, the Python spelling, or another type is refused."""
    assert Example.model_validate({"someSeconds": 5}).some_seconds == 5
    for wrong in ({"some_seconds": 5}, {"other": 1}, {"someSeconds": "5"}, {"someSeconds": 1.5}):
        with pytest.raises(pydantic.ValidationError):
            Example.model_validate(wrong)


def test_a_section_without_content() -> None:
    """All keys commented out is the defaults."""
    assert Example() == Example.model_validate(None)


def test_what_a_section_says() -> None:
    """By field."""
    assert Example.model_validate({"someSeconds": 4}).values() == {
        "some_seconds": 4,
        "mode": "shadow",
    }


def test_sections_that_nobody_wrote_are_one() -> None:
    """A frozen section of defaults is made once, however many configurations there are."""
    one, other = (schema.Config.model_validate({"mode": mode}) for mode in ("observe", "enforce"))

    assert one.policies is other.policies


def test_a_section_that_nobody_wrote() -> None:
    """It is made without a validator of its own, and is what an empty one would be validated as."""
    made = [
        field.get_default(call_default_factory=True, validated_data={})
        for section in _below(schema.Config)
        for field in section.model_fields.values()
        if isinstance(field.annotation, type) and issubclass(field.annotation, sections.Section)
    ]

    assert len(made) > 50
    for one in made:
        assert one == type(one).model_validate({})


def _below(section: type[sections.Section]) -> list[type[sections.Section]]:
    """The section and all in it."""
    kinds = [field.annotation for field in section.model_fields.values()]
    inner = [one for one in kinds if isinstance(one, type) and issubclass(one, sections.Section)]
    return [section, *(one for each in inner for one in _below(each))]


def test_off_as_yaml_tools_write_it() -> None:
    """``false`` is ``off``; ``true`` is nothing."""
    assert Example.model_validate({"mode": False}).mode == "off"
    with pytest.raises(pydantic.ValidationError):
        Example.model_validate({"mode": True})


def test_sections_are_frozen() -> None:
    """A configuration in force does not change under anybody."""
    with pytest.raises(pydantic.ValidationError):
        Example().some_seconds = 4
