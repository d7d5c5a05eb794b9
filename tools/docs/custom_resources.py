"""The page ``docs/api-objects.md``, from the definitions of the custom resources.

Covers: kinds, versions, columns, every field.
Does not cover: who writes them (``docs/objects.md``).

    python -m tools.docs.custom_resources > docs/api-objects.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.report.crds import definitions

_HEAD = """\
# Custom resources

Groups, names and versions are those of the peers, so that their tools and objects work unchanged.
`koordlet crds` prints the definitions; one that is installed already is never replaced but adapted
to.

This page is generated: `python -m tools.docs.custom_resources > docs/api-objects.md`.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(
        [_HEAD, *(line for document in definitions.documents() for line in _kind(document))]
    )


def _kind(definition: Mapping[str, Any]) -> Iterator[str]:
    spec = definition["spec"]
    names, versions = spec["names"], spec["versions"]
    served = ", ".join(
        f"`{each['name']}`{' (stored)' if each['storage'] else ''}" for each in versions
    )
    short = "".join(f", `{each}`" for each in names.get("shortNames", ()))
    yield f"## {names['kind']}\n"
    yield f"`{names['plural']}.{spec['group']}`{short}; {spec['scope'].lower()}; {served}.\n"
    stored = next(each for each in versions if each["storage"])
    columns = ", ".join(each["name"] for each in stored.get("additionalPrinterColumns", ()))
    if columns:
        yield f"Columns of `kubectl get`: {columns}.\n"
    yield "| field | type | what it says |\n|---|---|---|"
    yield from _fields(stored["schema"]["openAPIV3Schema"], "")
    yield ""


def _fields(schema: Mapping[str, Any], above: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        path = f"{above}{name}"
        if not above and name in ("apiVersion", "kind", "metadata"):
            continue
        words = " ".join(str(field.get("description", "")).split()).replace("|", "\\|")
        yield f"| `{path}` | {_type(field)} | {words} |"
        inner = field.get("items", field)
        yield from _fields(inner, f"{path}[]." if "items" in field else f"{path}.")


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "number or text"
    kind = str(field.get("type", "anything"))
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    if "additionalProperties" in field:
        return "map"
    several = field.get("enum")
    return f"{kind}: {', '.join(map(str, several))}" if several else kind


if __name__ == "__main__":
    sys.stdout.write(page())
