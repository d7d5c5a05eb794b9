"""The section ``kubelet``: whether and how the kubelet of this node is asked.

Covers: fields and defaults. Does not cover: asking (``workloads.kubelet``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from koordlet.config import fieldtypes, sections


def _mode(value: object) -> object:
    # YAML 1.1 tools rewrite plain ``on`` and ``off`` as ``true`` and ``false``.
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Mode = Annotated[Literal["auto", "on", "off"], BeforeValidator(_mode)]


class Kubelet(sections.Section):
    """The kubelet of this node."""

    mode: Mode = Field(
        default="auto",
        description="`auto` asks it where its directory holds `cpu_manager_state`, which every"
        " kubelet writes, or where an address is given.",
    )
    address: fieldtypes.OptionalAddress = Field(
        default=None, description="Where it listens; null is `127.0.0.1` and its usual port."
    )
    read_only_port: bool = Field(
        default=False, description="Ask the read-only port: no TLS, no token, no configuration."
    )
    server_name: fieldtypes.NodeName = Field(
        default=None,
        description="The name in its certificate; null is the host of the address, or the node's"
        " name, or the host's.",
    )
    ca_file: fieldtypes.Directory = Field(
        default=None,
        description="Who signed its certificate; null is the service account's authority, or the"
        " kubelet itself: `pki/kubelet.crt` in its directory, which kubeadm's kubelets make.",
    )
    token_file: fieldtypes.Directory = Field(
        default=None,
        description="The token to show; read for each request; null is the service account's.",
    )
    insecure_skip_verify: bool = Field(
        default=False, description="Believe whoever answers there, whatever its certificate."
    )
    directory: fieldtypes.Directory = Field(
        default="/var/lib/kubelet", description="Its directory, for checkpoints and sockets."
    )
    config_file: fieldtypes.Directory = Field(
        default=None,
        description="The kubelet's own configuration (a KubeletConfiguration). With it a threshold"
        " that is to be acted on beside the kubelet, and is not earlier than the kubelet's, is"
        " refused at once; null: it is not acted on, as soon as the kubelet says its own.",
    )
    statistics: bool = Field(
        default=True, description="Whether `/stats/summary` is asked, for volumes and images."
    )
    pod_resources: bool = Field(
        default=False, description="Whether the pod-resources socket is asked, for devices."
    )
    pod_resources_socket: fieldtypes.SocketPath = Field(
        default=None,
        description="That socket; null is `pod-resources/kubelet.sock` in its directory.",
    )
    interval_seconds: Annotated[int, Field(ge=1, le=300)] = Field(
        default=10, description="How often it is asked."
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=60)] = Field(
        default=3, description="How long a whole answer may take."
    )
    max_age_seconds: Annotated[int, Field(ge=1, le=3600)] = Field(
        default=60,
        description="How long its last answer is believed; then pods are stale: nobody is evicted"
        " and no set shrinks because of them.",
    )
