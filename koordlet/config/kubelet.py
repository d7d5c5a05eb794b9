"""The section ``kubelet``: connection to the kubelet of this node.

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
        description="`auto` uses the kubelet if its directory contains `cpu_manager_state`, which"
        " every kubelet writes, or if an address is set.",
    )
    address: fieldtypes.OptionalAddress = Field(
        default=None, description="Address of the kubelet; null is `127.0.0.1` and its usual port."
    )
    read_only_port: bool = Field(
        default=False,
        description="Use the kubelet's read-only port: no TLS, no token, no configuration.",
    )
    server_name: fieldtypes.NodeName = Field(
        default=None,
        description="Name expected in the kubelet's certificate; null is the host of the address,"
        " the node name or the host name.",
    )
    ca_file: fieldtypes.Directory = Field(
        default=None,
        description="CA file of the kubelet's certificate; null is the service account's CA, or"
        " else `pki/kubelet.crt` in the kubelet's directory, which kubeadm creates.",
    )
    token_file: fieldtypes.Directory = Field(
        default=None,
        description="Token file for the kubelet, re-read for each request; null is the service"
        " account's token.",
    )
    insecure_skip_verify: bool = Field(
        default=False, description="Do not verify the kubelet's certificate."
    )
    directory: fieldtypes.Directory = Field(
        default="/var/lib/kubelet",
        description="Directory of the kubelet with its checkpoints and sockets.",
    )
    config_file: fieldtypes.Directory = Field(
        default=None,
        description="The kubelet's own configuration file (a KubeletConfiguration). If set,"
        " koordlet refuses at load time an eviction threshold that the kubelet would reach"
        " first. If null, koordlet ignores such a threshold once it has read the kubelet's"
        " configuration.",
    )
    statistics: bool = Field(
        default=True, description="Read `/stats/summary` for volumes and images."
    )
    pod_resources: bool = Field(
        default=False, description="Read the pod-resources socket for devices."
    )
    pod_resources_socket: fieldtypes.SocketPath = Field(
        default=None,
        description="Pod-resources socket; null is `pod-resources/kubelet.sock` in the kubelet's"
        " directory.",
    )
    interval_seconds: Annotated[int, Field(ge=1, le=300)] = Field(
        default=10, description="How often koordlet polls the kubelet."
    )
    timeout_seconds: Annotated[int, Field(ge=1, le=60)] = Field(
        default=3, description="Timeout of one request."
    )
    max_age_seconds: Annotated[int, Field(ge=1, le=3600)] = Field(
        default=60,
        description="How long the last answer stays valid. After that the pods count as stale:"
        " koordlet evicts none of them and shrinks no cpuset because of them.",
    )
