"""What every section of the configuration shares.

Covers: frozen, strict models with camelCase keys; the mode of a policy.
Does not cover: any section (``schema`` and the modules of single policies).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

PolicyMode = Literal["off", "shadow", "enforce"]


class Section(BaseModel):
    """What all sections share: frozen, strict, no unknown keys, camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        # Our messages quote the value themselves, shortened and escaped.
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        # ``state:`` with all its keys commented out reads as null.
        return {} if value is None else value


def _policy_mode(value: object) -> object:
    # YAML 1.1 tools rewrite a plain ``off`` as ``false``.
    return "off" if value is False else value


PolicyModeField = Annotated[PolicyMode, BeforeValidator(_policy_mode)]
