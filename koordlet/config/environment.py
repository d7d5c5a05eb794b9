"""Configuration from ``KOORDLET_*`` variables.

Covers: which variable sets which field, the type of its text, unknown variables.
Does not cover: ``KOORDLET_ROOT`` and ``KOORDLET_CONFIG`` (the command line reads them).

The name is the path in capitals, sections joined by two underscores, words by one:
``state.handoverSeconds`` is ``KOORDLET_STATE__HANDOVER_SECONDS``. Lists and maps have no variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from koordlet.config import catalog, layers, problems
from koordlet.model import errors

#: Not ours to judge: the command line's own.
COMMAND_LINE = frozenset({"KOORDLET_ROOT", "KOORDLET_CONFIG"})
#: Not configuration: test switches and handles.
IGNORED_PREFIXES = ("KOORDLET_K8S_", "KOORDLET_RDT_", "KOORDLET_TEST_")

_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


def layer(env: Mapping[str, str]) -> layers.Layer:
    """The values that the environment sets; unknown variables raise ``ConfigError``."""
    built = layers.Layer(layers.Name.ENVIRONMENT)
    refused: list[errors.ConfigError] = []
    names = sorted(name for name in env if name.startswith(catalog.PREFIX) and _ours(name))
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


def _ours(name: str) -> bool:
    return name not in COMMAND_LINE and not name.startswith(IGNORED_PREFIXES)


def typed(field: catalog.Field, text: str) -> object:
    """The text as the type of the field; left as text where it is not of that type."""
    if type(None) in field.types and text in ("", "null"):
        return None
    if bool in field.types:
        return _WORDS.get(text.strip().lower(), text)
    if int in field.types and re.fullmatch(r"[-+]?[0-9]{1,18}", text.strip(), re.ASCII):
        return int(text)
    return text
