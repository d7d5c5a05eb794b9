"""The sections ``report.grpc`` and ``report.scheduler``: who may read the feed, and who is told.

Covers: fields, defaults, what must come together. Does not cover: serving (``rpc``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections

Right = Literal["read", "report", "reserve", "admin"]


class Tls(sections.Section):
    """Certificates as files, read again when they change."""

    certificate: fieldtypes.Directory = Field(default=None, description="Ours, in PEM.")
    key: fieldtypes.Directory = Field(default=None, description="Its key, in PEM.")
    authority: fieldtypes.Directory = Field(
        default=None, description="Whose certificates are believed, in PEM."
    )

    @property
    def complete(self) -> bool:
        """True where all three are given."""
        return None not in (self.certificate, self.key, self.authority)


class Client(sections.Section):
    """Who is let in over TCP."""

    name: Annotated[str, Field(min_length=1)] = Field(
        description="A name of the client's certificate (DNS or URI); `*.` stands for one label."
    )
    rights: Annotated[tuple[Right, ...], Field(strict=False)] = Field(
        default=("read",), description="What it may do."
    )


class Grpc(sections.Section):
    """The gRPC server: the node feed."""

    socket: fieldtypes.SocketPath = Field(
        default=None, description="Its Unix socket; null is `koordlet.sock` in the run directory."
    )
    enabled: bool = Field(default=True, description="Whether it is started.")
    address: fieldtypes.OptionalAddress = Field(
        default=None, description="Where it listens beside the socket, with mutual TLS only."
    )
    tls: Tls = Field(default_factory=Tls, description="Certificates, needed for an address.")
    clients: Annotated[tuple[Client, ...], Field(strict=False), fieldtypes.ABSENT_LIST] = Field(
        default=(), description="Who is let in over TCP; nobody by default."
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
    """The scheduler that this agent tells of its node."""

    address: str | None = Field(
        default=None, description="`unix:/path`, or `host:port` with TLS; null: nobody is told."
    )
    tls: Tls = Field(
        default_factory=Tls,
        description="The certificate must name the node, as DNS or URI name, unless a token does.",
    )
    token: fieldtypes.Directory = Field(
        default=None,
        description="A file with a token of our pod's service account, for a scheduler with"
        " `--audience`; read again at each connection.",
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
