"""The sections ``report.grpc`` and ``report.scheduler``: clients of the feed, and its scheduler.

Covers: fields, defaults, what must come together. Does not cover: serving (``rpc``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections

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
    tls: Tls = Field(default_factory=Tls, description="Certificates for the TCP address.")
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
        default_factory=Tls,
        description="Certificates for the scheduler. The certificate must contain the node's name"
        " as DNS or URI name unless `token` is set.",
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
