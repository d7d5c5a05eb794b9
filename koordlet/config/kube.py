"""The section ``kube``: whether and how the API server is asked.

Covers: fields and defaults. Does not cover: asking (``kube``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import fieldtypes, kubelet, sections


class Kube(sections.Section):
    """The API server of the cluster."""

    mode: kubelet.Mode = Field(
        default="auto",
        description="`auto` asks it inside of a cluster (a service account and"
        " `KUBERNETES_SERVICE_HOST`), or where a kubeconfig is given.",
    )
    kubeconfig: fieldtypes.Directory = Field(
        default=None, description="Credentials; null is the service account of this pod."
    )
    context: str = Field(default="", description="A context of the kubeconfig; empty: the current.")
