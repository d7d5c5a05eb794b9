"""The sections ``kubelet``, ``kube``, ``nri`` and ``scheduler``: who else is there.

Covers: fields and defaults of the kubelet, the API server, the runtime, a standalone scheduler.
Does not cover: when ``auto`` is on (``agent.sources``), running a scheduler
(``agent.scheduler_child``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from koordlet.config import fieldtypes, sections


def _mode(value: object) -> object:
    # YAML 1.1 tools rewrite plain ``on`` and ``off`` as ``true`` and ``false``.
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


Mode = Annotated[Literal["auto", "on", "off"], BeforeValidator(_mode)]


class Kubelet(sections.Section):
    """The kubelet of this node."""

    #: `auto` uses the kubelet if its directory contains `cpu_manager_state`, which every kubelet
    #: writes, or if an address is set.
    mode: Mode = "auto"
    #: Address of the kubelet; null is `127.0.0.1` and its usual port.
    address: fieldtypes.OptionalAddress = None
    #: Use the kubelet's read-only port: no TLS, no token, no configuration.
    read_only_port: bool = False
    #: Name expected in the kubelet's certificate; null is the host of the address, the node name or
    #: the host name.
    server_name: fieldtypes.ServerName = None
    #: CA file of the kubelet's certificate; null is the service account's CA, or else
    #: `pki/kubelet.crt` in the kubelet's directory, which kubeadm creates.
    ca_file: fieldtypes.Directory = None
    #: Token file for the kubelet, re-read for each request; null is the service account's token.
    token_file: fieldtypes.Directory = None
    #: Do not verify the kubelet's certificate.
    insecure_skip_verify: bool = False
    #: Directory of the kubelet with its checkpoints and sockets.
    directory: fieldtypes.Directory = "/var/lib/kubelet"
    #: The kubelet's own configuration file (a KubeletConfiguration). If set, koordlet refuses at
    #: load time an eviction threshold that the kubelet would reach first. If null, koordlet ignores
    #: such a threshold once it has read the kubelet's configuration.
    config_file: fieldtypes.Directory = None
    #: Read `/stats/summary` for volumes and images.
    statistics: bool = True
    #: Read the pod-resources socket for devices.
    pod_resources: bool = False
    #: Pod-resources socket; null is `pod-resources/kubelet.sock` in the kubelet's directory.
    pod_resources_socket: fieldtypes.SocketPath = None
    #: How often koordlet polls the kubelet.
    interval_seconds: Annotated[int, Field(ge=1, le=300)] = 10
    #: Timeout of one request.
    timeout_seconds: Annotated[int, Field(ge=1, le=60)] = 3
    #: How long the last answer stays valid. After that the pods count as stale: koordlet evicts
    #: none of them and shrinks no cpuset because of them.
    max_age_seconds: Annotated[int, Field(ge=1, le=3600)] = 60


class Kube(sections.Section):
    """The API server of the cluster."""

    #: `auto` uses the API server inside a cluster (a service account and `KUBERNETES_SERVICE_HOST`)
    #: or if a kubeconfig is set.
    mode: Mode = "auto"
    #: Kubeconfig file; null uses the service account of this pod.
    kubeconfig: fieldtypes.Directory = None
    #: Context of the kubeconfig; empty uses its current context.
    context: str = ""


class Nri(sections.Section):
    """The container runtime's plugin interface."""

    #: `auto` connects on a node of a cluster if the socket exists when the agent starts; `on`
    #: always connects and, without a cluster, takes the list of pods from the container runtime.
    mode: Mode = "auto"
    #: NRI socket of the container runtime.
    socket: fieldtypes.SocketPath = "/var/run/nri/nri.sock"
    #: Index of the NRI plugin: two digits; the runtime calls lower ones first.
    index: Annotated[str, Field(pattern="^[0-9]{2}$")] = "10"
    #: How long a container start waits for koordlet. After that the container starts unadjusted and
    #: koordlet corrects it through its cgroup files. Capped at 70 % of the runtime's own timeout.
    deadline_milliseconds: Annotated[int, Field(ge=10, le=10_000)] = 1000
    #: Reconnect after this time without an event.
    quiet_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    #: Stop adjusting after this many adjusted containers failed to start within an hour, until
    #: SIGHUP reloads the agent.
    failed_starts: Annotated[int, Field(ge=1, le=1000)] = 5


class Scheduler(sections.Section):
    """A scheduler without a cluster."""

    #: Socket of the standalone scheduler, such as `/run/koordlet/scheduler.sock`. The agent then
    #: holds what is reserved on this node. Null uses no scheduler; in a cluster the API server
    #: lists the reservations.
    socket: fieldtypes.Directory = None
    #: Run a scheduler as a child process of the agent. The agent reports to it and asks it for
    #: reservations. Objects are kept in `scheduler.db`.
    run: bool = False
    #: KubeSchedulerConfiguration file of the scheduler that `run` starts.
    config: fieldtypes.Directory = None
    #: HTTP address of the scheduler that `run` starts.
    http: fieldtypes.Address = "127.0.0.1:9317"

    @model_validator(mode="after")
    def _one_of_them(self) -> Scheduler:
        if self.run and self.socket is not None:
            fieldtypes.refuse(
                "the scheduler that is run here has its own socket",
                "leave scheduler.socket out, or scheduler.run",
                at=("socket",),
            )
        return self
