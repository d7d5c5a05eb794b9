"""The section ``manifests``: standalone workloads as Pod manifests.

Covers: its fields. Does not cover: following the files (``workloads.manifest_directory``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import fieldtypes, sections, sourced


class Manifests(sections.Section):
    """Pod manifests with the annotation ``koordlet.io/match``."""

    directory: fieldtypes.Directory = Field(
        default=sourced.MANIFESTS,
        description="Directory of the manifests (`*.yaml`, `*.yml`, `*.json`), watched while the"
        " agent runs. The built-in directory is used if it exists when the agent starts; null"
        " reads none.",
    )
