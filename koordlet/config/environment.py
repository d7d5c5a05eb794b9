"""Configuration from ``KOORDLET_*`` variables.

Covers: which variable sets which field, the type of its text, unknown variables.
Does not cover: ``KOORDLET_ROOT`` and ``KOORDLET_CONFIG`` (the command line reads them).

The name is the path in capitals, sections joined by two underscores, words by one:
``state.handoverSeconds`` is ``KOORDLET_STATE__HANDOVER_SECONDS``. Lists and maps have no variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from koordlet.config import catalog, layers, parcel, problems
from koordlet.model import errors

_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


def layer(env: Mapping[str, str]) -> layers.Layer:
    """The values that the environment sets; unknown variables raise ``ConfigError``."""
    built = layers.Layer(layers.Name.ENVIRONMENT)
    refused: list[errors.ConfigError] = []
    names = sorted(filter(parcel.is_variable, env))
    known = {field.variable: field for field in catalog.fields()} if names else {}
    for name in names:
        field = known.get(name)
        if field is None:
            scalars = [
                variable for variable, variable_field in known.items() if variable_field.scalar
            ]
            fix = errors.suggest(name, scalars, "see koordlet config --help; known")
            refused.append(errors.ConfigError("unknown variable", culprit=name[:200], fix=fix))
        elif not field.scalar:
            message = f"{field.path} cannot be set by a variable"
            fix = "set it in the configuration file"
            refused.append(errors.ConfigError(message, culprit=name, fix=fix))
        else:
            built.put(field.loc, typed(field, env[name]), name)
    problems.raise_any(refused, "environment")
    return built


def typed(field: catalog.Field, text: str) -> object:
    """The text as the type of the field; left as text where it is not of that type."""
    if type(None) in field.types and text in ("", "null"):
        return None
    if bool in field.types:
        return _WORDS.get(text.strip().lower(), text)
    if int in field.types and re.fullmatch(r"[-+]?[0-9]{1,18}", text.strip(), re.ASCII):
        return int(text)
    return text
