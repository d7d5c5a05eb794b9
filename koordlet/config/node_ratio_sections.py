"""Sections below ``node``: how fast CPU models are, and how many times of a resource a node offers.

Covers: fields, bounds, one row for each model. Does not cover: which row counts
(``model.node_ratios``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, field_validator

from koordlet.config import fieldtypes, places, sections
from koordlet.model import node_ratios

_Ratio = Annotated[float, Field(ge=node_ratios.LEAST, le=node_ratios.MOST)]


class CpuModel(sections.Section):
    """Speed of one CPU model relative to the reference of the cluster."""

    #: Model name as `koordlet topology -o json` prints it.
    model: Annotated[str, Field(min_length=1)]
    #: Ratio without SMT and without turbo.
    base: _Ratio
    #: Ratio with SMT; null reports no ratio for such a node.
    hyper_thread: _Ratio | None = None
    #: Ratio with turbo; null reports no ratio for such a node.
    turbo: _Ratio | None = None
    #: Ratio with SMT and turbo; null reports no ratio for such a node.
    hyper_thread_turbo: _Ratio | None = None


class Normalization(sections.Section):
    """CPU normalization: the speed of this node's CPUs relative to the reference."""

    #: Ratios by CPU model, the same list on every node; empty reports none.
    models: fieldtypes.Listed[CpuModel] = ()
    #: Ratio of a model that is not in the list; null reports none.
    other: Annotated[_Ratio | None, Field(strict=False)] = None

    @field_validator("models")
    @classmethod
    def _each_model_once(cls, rows: tuple[CpuModel, ...]) -> tuple[CpuModel, ...]:
        names = [row.model for row in rows]
        for index, name in enumerate(names):
            if name in names[:index]:
                fieldtypes.refuse(
                    f"two rows are about {places.show(name)}",
                    "give each model one row",
                    at=(index, "model"),
                )
        return rows


#: Resource to how many times of it the node offers.
Amplification = Annotated[
    Mapping[fieldtypes.ResourceName, Annotated[float, Field(ge=1)]],
    fieldtypes.ABSENT_MAP,
]
