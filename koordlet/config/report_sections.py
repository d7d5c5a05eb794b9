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

    address: fieldtypes.OptionalAddress = Field(
        default=None, description="Address to listen on; null does not listen."
    )
    certificate: fieldtypes.Directory = Field(
        default=None, description="Certificate file of the agent, in PEM; re-read when it changes."
    )
    key: fieldtypes.Directory = Field(
        default=None, description="Private key file of the certificate, in PEM."
    )

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

    address: fieldtypes.Address = Field(
        default="127.0.0.1:9316", description="Address to listen on."
    )
    enabled: bool = Field(default=True, description="Start this server.")
    secure: Secure


Right = Literal["read", "report", "reserve", "admin"]


class Tls(sections.Section):
    """Certificates as files, read again when they change."""

    certificate: fieldtypes.Directory = Field(
        default=None, description="Certificate file of the agent, in PEM."
    )
    key: fieldtypes.Directory = Field(
        default=None, description="Private key file of the certificate, in PEM."
    )
    authority: fieldtypes.Directory = Field(
        default=None,
        description="CA file that must have signed the other side's certificate, in PEM.",
    )

    @property
    def complete(self) -> bool:
        """True where all three are given."""
        return None not in (self.certificate, self.key, self.authority)


class Client(sections.Section):
    """A client that may connect over TCP."""

    name: Annotated[str, Field(min_length=1)] = Field(
        description="DNS or URI name in the client's certificate; `*.` matches one label."
    )
    rights: Annotated[tuple[Right, ...], Field(strict=False)] = Field(
        default=("read",), description="What the client may do."
    )


class Grpc(sections.Section):
    """The gRPC server: the node feed."""

    socket: fieldtypes.SocketPath = Field(
        default=None,
        description="Unix socket of the server; null is `koordlet.sock` in the run directory.",
    )
    enabled: bool = Field(default=True, description="Start this server.")
    address: fieldtypes.OptionalAddress = Field(
        default=None,
        description="TCP address to listen on in addition to the socket; requires mutual TLS.",
    )
    tls: Tls = Field(description="Certificates for the TCP address.")
    clients: Annotated[tuple[Client, ...], Field(strict=False), fieldtypes.ABSENT_LIST] = Field(
        default=(), description="Clients that may connect over TCP; empty allows none."
    )

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

    address: str | None = Field(
        default=None,
        description="Scheduler to report this node to: `unix:/path`, or `host:port`"
        " with TLS; null reports to none.",
    )
    tls: Tls = Field(
        description="Certificates for the scheduler. The certificate must contain the node's name"
        " as DNS or URI name unless `token` is set."
    )
    token: fieldtypes.Directory = Field(
        default=None,
        description="File with a service account token of the agent's pod, for a scheduler with"
        " `--audience`; re-read for each connection.",
    )

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

    mode: cluster_sections.Mode = Field(
        default="auto",
        description="`auto` writes objects in a cluster if the agent enforces. An agent that only"
        " observes leaves them to another program.",
    )
    topology: bool = Field(default=True, description="Write NodeResourceTopology.")
    available: Literal["exact", "peer"] = Field(
        default="exact",
        description="Meaning of `available` of a zone: `exact` excludes exclusive CPUs, `peer` is"
        " all that is allocatable, as Koordinator's agent writes it for its scheduler.",
    )
    metric: bool = Field(default=True, description="Write the status of NodeMetric.")
    device: bool = Field(
        default=False,
        description="Write Device: GPUs as listed on the PCI bus, without their memory. Leave it"
        " off if another program writes this object.",
    )
    status: bool = Field(
        default=True,
        description="Write batch and mid resources and koordlet's conditions to the Node's status.",
    )
    taints: Literal["NoSchedule", "PreferNoSchedule"] | None = Field(
        default=None,
        description="Effect of the taints `koordlet.io/…` that koordlet puts on the Node while a"
        " pressure condition is true; null sets none. Requires the verb `patch` for `nodes`"
        " (`deploy/overlays/taints`).",
    )
    events: bool = Field(
        default=True,
        description="Write events on pods and other objects whose labels, annotations or fields"
        " koordlet cannot read.",
    )
    tolerance_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=10,
        description="Write an offered resource when it changes by more than this percent.",
    )
    resync_seconds: Annotated[int, Field(ge=30, le=86_400)] = Field(
        default=300, description="How often koordlet compares its objects with the API server."
    )
