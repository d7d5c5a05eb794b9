"""What every section shares."""

from __future__ import annotations

import pydantic
import pytest

from koordlet.config import catalog, schema, sections
from koordlet.model import decision, plan, strategies, strategy_field
from koordlet.model.record import dataclass
from koordlet.policy.cpu import housekeeping
from koordlet.policy.framework import declaration, registry


class Example(sections.Section):
    """A section."""

    #: How long.
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
    first, other = (schema.Config.model_validate({"mode": mode}) for mode in ("observe", "enforce"))

    assert first.policies is other.policies


def test_a_section_that_nobody_wrote() -> None:
    """It is made without a validator of its own, and is what an empty one would be validated as."""
    made = [
        field.get_default(call_default_factory=True, validated_data={})
        for section in _below(schema.Config)
        for field in section.model_fields.values()
        if isinstance(field.annotation, type) and issubclass(field.annotation, sections.Section)
    ]

    assert len(made) > 50
    for defaults in made:
        assert defaults == type(defaults).model_validate({})


def _below(section: type[sections.Section]) -> list[type[sections.Section]]:
    """The section and all in it."""
    kinds = [field.annotation for field in section.model_fields.values()]
    inner = [
        kind for kind in kinds if isinstance(kind, type) and issubclass(kind, sections.Section)
    ]
    return [section, *(part for each in inner for part in _below(each))]


class Inner(Example):
    """A section ``in`` another."""

    #: Two lines,
    #: one sentence.
    other: int = 1


class Outer(sections.Section):
    """The outer one."""

    inner: Inner
    #: Said of this field.
    second: Inner
    plain: int = 2  # no description


def test_the_comment_above_a_field_is_its_description() -> None:
    """Also of a section inside and of a section above; else the section's own first words count."""
    outer = sections.described(Outer)

    assert {name: field.description for name, field in outer.model_fields.items()} == {
        "inner": "A section `in` another.",
        "second": "Said of this field.",
        "plain": None,
    }
    inner = {name: field.description for name, field in Inner.model_fields.items()}
    assert inner["other"] == "Two lines, one sentence."
    assert inner["some_seconds"] == "How long."
    assert outer.model_json_schema()["$defs"]["Inner"]["properties"]["other"]["description"]


def test_off_as_yaml_tools_write_it() -> None:
    """``false`` is ``off``; ``true`` is nothing."""
    assert Example.model_validate({"mode": False}).mode == "off"
    with pytest.raises(pydantic.ValidationError):
        Example.model_validate({"mode": True})


def test_sections_are_frozen() -> None:
    """A configuration in force does not change under anybody."""
    with pytest.raises(pydantic.ValidationError):
        Example().some_seconds = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a policy that has no section of its own."""

    burst: strategies.CpuBurst = strategy_field.keys(strategies.CpuBurst)
    #: Be loud.
    loud: bool = strategy_field.setting(default=False)
    #: The most; null sets no bound.
    most: int | None = strategy_field.bound(3)
    derived: int = 7


POLICY = declaration.Policy(
    stem="cpu_burst",
    summary="a policy",
    decide=lambda *asked: decision.Decision(next_state=decision.Stateless()),
    settings=Settings(),
    default_mode=plan.Mode.SHADOW,
)


def test_settings_of_a_policy_are_its_section() -> None:
    """Mode, bounds, the keys of its strategy and its own, in this order, each as its row says."""
    section = sections.described(sections.of_policy(POLICY))
    strategy = [
        strategy_field.key(strategies.CpuBurst, name)
        for name in strategy_field.rows(strategies.CpuBurst)
    ]

    assert section.__name__ == "CpuBurst"
    assert section.__doc__ == Settings.__doc__
    keys = [key for key, _ in catalog.section_fields(section)]
    assert keys == ["mode", "limits", *strategy, "loud"]
    assert section().values()["mode"] == "shadow"
    assert section.model_fields["loud"].description == "Be loud."
    with pytest.raises(pydantic.ValidationError, match="greater than or equal to 3"):
        section.model_validate({"limits": {"most": 2}})


def test_a_section_becomes_settings_again() -> None:
    """What the file says, below ``limits`` too; what is no key keeps its default."""
    section = sections.of_policy(POLICY).model_validate(
        {"limits": {"most": 4}, "loud": True, "cpuBurstPercent": 200}
    )

    settings = strategy_field.configured(Settings, section)

    assert (settings.most, settings.loud, settings.derived) == (4, True, 7)
    assert settings.burst.cpu_burst_percent == 200
    assert settings.burst.policy == "none"


def test_every_policy_has_a_section() -> None:
    """In the order of the registry; those without a section of their own have their settings'."""
    stems = [policy.stem for policy in registry.POLICIES]

    assert [stem for stem, _ in catalog.section_fields(schema.Policies)] == stems
    section = schema.Policies.model_fields["housekeeping"].annotation
    assert section is not None
    assert section.__doc__ == housekeeping.Settings.__doc__
