"""Templates of shared GPUs: the only shares into which some cards can be divided.

Covers: the ConfigMap that lists them by vendor and model, which ones a request matches. Does not
cover: which GPU it gets (``device_choice``).

A template matches a request of exactly its amounts. A ConfigMap that cannot be read has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import shapes
from koordlet.model import documents
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.wire import Body

NO_MATCH = "no matched GPU shared resource template"

#: By vendor and model, as ``huawei-Ascend-310P``, then by name.
Templates = Mapping[str, Mapping[str, Mapping[str, int]]]
_ARGUMENT = "gpuSharedResourceTemplatesConfig"
_FILE = "data.yaml"


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """Where templates are, and which requests need one."""

    namespace: str = "koordinator-system"
    name: str = "gpu-shared-resource-templates"
    #: Who asks for one of these gets a template or nothing.
    matched: frozenset[str] = frozenset({"huawei.com/npu-core"})
    #: Somebody has named it, so that it is worth to be watched.
    named: bool = False


def source(args: Body) -> TemplateSource:
    """The source that the arguments of the plugin name."""
    if args.get(_ARGUMENT) is None:
        return TemplateSource()
    given, default = wire.mapping(args, _ARGUMENT), TemplateSource()
    return TemplateSource(
        wire.text(given, "configMapNamespace") or default.namespace,
        wire.text(given, "configMapName") or default.name,
        frozenset(wire.strings(given, "matchedResources")) or default.matched,
        named=True,
    )


def decode(body: Body) -> tuple[tuple[str, str], Templates]:
    """Namespace and name of a ConfigMap, and its templates."""
    meta = wire.mapping(body, "metadata")
    key = wire.text(meta, "namespace"), wire.name(meta)
    text = shapes.mapping(body.get("data")).get(_FILE)
    try:
        [models] = documents.load(text) if isinstance(text, str) else [{}]
        return key, {
            str(model): {
                str(name): requests.amounts(named, name, requests.MOST_REQUEST) for name in named
            }
            for model in shapes.mapping(models)
            for named in (wire.mapping(shapes.mapping(models), model),)
        }
    except ValueError:
        return key, {}


def matching(templates: Templates, each: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """The names of the templates of exactly these amounts, by vendor and model."""
    names = {
        model: tuple(sorted(name for name, amounts in named.items() if amounts == each))
        for model, named in templates.items()
    }
    return {model: several for model, several in names.items() if several}
