"""The section ``report.http``: the HTTP server for people and scrapers.

Covers: fields, defaults, what must come together. Does not cover: serving (``http``).
"""

from __future__ import annotations

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections


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
    secure: Secure = Field(
        default_factory=Secure,
        description="A second listener for other machines of the cluster, with TLS and tokens.",
    )
