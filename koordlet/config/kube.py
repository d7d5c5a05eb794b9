"""The section ``kube``: connection to the API server.

Covers: fields and defaults. Does not cover: asking (``kube``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import fieldtypes, kubelet, sections


class Kube(sections.Section):
    """The API server of the cluster."""

    mode: kubelet.Mode = Field(
        default="auto",
        description="`auto` uses the API server inside a cluster (a service account and"
        " `KUBERNETES_SERVICE_HOST`) or if a kubeconfig is set.",
    )
    kubeconfig: fieldtypes.Directory = Field(
        default=None, description="Kubeconfig file; null uses the service account of this pod."
    )
    context: str = Field(
        default="", description="Context of the kubeconfig; empty uses its current context."
    )
