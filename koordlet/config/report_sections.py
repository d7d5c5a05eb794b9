"""Sections below ``report``: HTTP server, gRPC server, the scheduler, objects of the API server.

Covers: fields, defaults, keys that need each other. Does not cover: serving (``http``, ``rpc``),
writing objects (``report.writing``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from koordlet.config import cluster_sections, fieldtypes, sections


class Secure(sections.Section):
    """A second listener for other machines: TLS, and tokens that the API server confirms."""

    #: Address to listen on; null does not listen.
    address: fieldtypes.OptionalAddress = None
    #: Certificate file of the agent, in PEM; re-read when it changes.
    certificate: fieldtypes.Directory = None
    #: Private key file of the certificate, in PEM.
    key: fieldtypes.Directory = None

    @model_validator(mode="after")
    def _never_in_the_open(self) -> Secure:
        if self.address is not None and None in (self.certificate, self.key):
            fieldtypes.refuse(
                "tokens are never taken without TLS",
                "set report.http.secure.{certificate,key}",
                at=("address",),
            )
        return self


class Http(sections.Section):
    """The HTTP server: health, metrics, the current plan."""

    #: Address to listen on.
    address: fieldtypes.Address = "127.0.0.1:9316"
    #: Start this server.
    enabled: bool = True
    secure: Secure


Right = Literal["read", "report", "reserve", "admin"]


class Tls(sections.Section):
    """Certificates as files, read again when they change."""

    #: Certificate file of the agent, in PEM.
    certificate: fieldtypes.Directory = None
    #: Private key file of the certificate, in PEM.
    key: fieldtypes.Directory = None
    #: CA file that must have signed the other side's certificate, in PEM.
    authority: fieldtypes.Directory = None

    @property
    def complete(self) -> bool:
        """True where all three are given."""
        return None not in (self.certificate, self.key, self.authority)


class Client(sections.Section):
    """A client that may connect over TCP."""

    #: DNS or URI name in the client's certificate; `*.` matches one label.
    name: Annotated[str, Field(min_length=1)]
    #: What the client may do.
    rights: Annotated[tuple[Right, ...], Field(strict=False)] = ("read",)


class Grpc(sections.Section):
    """The gRPC server: the node feed."""

    #: Unix socket of the server; null is `koordlet.sock` in the run directory.
    socket: fieldtypes.SocketPath = None
    #: Start this server.
    enabled: bool = True
    #: TCP address to listen on in addition to the socket; requires mutual TLS.
    address: fieldtypes.OptionalAddress = None
    #: Certificates for the TCP address.
    tls: Tls
    #: Clients that may connect over TCP; empty allows none.
    clients: fieldtypes.Listed[Client] = ()

    @model_validator(mode="after")
    def _never_in_the_open(self) -> Grpc:
        if self.address is not None and not self.tls.complete:
            fieldtypes.refuse(
                "the feed is never served over TCP without mutual TLS",
                "set report.grpc.tls.{certificate,key,authority}",
                at=("address",),
            )
        return self


class Scheduler(sections.Section):
    """The scheduler that this agent reports to."""

    #: Scheduler to report this node to: `unix:/path`, or `host:port` with TLS; null reports to
    #: none.
    address: str | None = None
    #: Certificates for the scheduler. The certificate must contain the node's name as DNS or URI
    #: name unless `token` is set.
    tls: Tls
    #: File with a service account token of the agent's pod, for a scheduler with `--audience`;
    #: re-read for each connection.
    token: fieldtypes.Directory = None

    @model_validator(mode="after")
    def _never_in_the_open(self) -> Scheduler:
        remote = self.address is not None and not self.address.startswith("unix:")
        if remote and not self.tls.complete:
            fieldtypes.refuse(
                "a scheduler is never told over TCP without mutual TLS",
                "set report.scheduler.tls.{certificate,key,authority}",
                at=("address",),
            )
        return self


class Objects(sections.Section):
    """Objects of the API server that describe this node."""

    #: `auto` writes objects in a cluster if the agent enforces. An agent that only observes leaves
    #: them to another program.
    mode: cluster_sections.Mode = "auto"
    #: Write NodeResourceTopology.
    topology: bool = True
    #: Meaning of `available` of a zone: `exact` excludes exclusive CPUs, `peer` is all that is
    #: allocatable, as Koordinator's agent writes it for its scheduler.
    available: Literal["exact", "peer"] = "exact"
    #: Write the status of NodeMetric.
    metric: bool = True
    #: Write Device: GPUs as listed on the PCI bus, without their memory. Leave it off if another
    #: program writes this object.
    device: bool = False
    #: Write batch and mid resources and koordlet's conditions to the Node's status.
    status: bool = True
    #: Effect of the taints `koordlet.io/…` that koordlet puts on the Node while a pressure
    #: condition is true; null sets none. Requires the verb `patch` for `nodes`
    #: (`deploy/overlays/taints`).
    taints: Literal["NoSchedule", "PreferNoSchedule"] | None = None
    #: Write events on pods and other objects whose labels, annotations or fields koordlet cannot
    #: read.
    events: bool = True
    #: Write an offered resource when it changes by more than this percent.
    tolerance_percent: Annotated[int, Field(ge=0, le=100)] = 10
    #: How often koordlet compares its objects with the API server.
    resync_seconds: Annotated[int, Field(ge=30, le=86_400)] = 300
