"""Settings of reporting: the `[report]` table, for the configuration to embed.

Not here: reading it from file, flags and environment (`agent.config.load`).
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from agent.core.units import MIB


class ReportSection(msgspec.Struct, frozen=True, kw_only=True):
    """`[report]`: where each audit's document goes."""

    url: Annotated[
        str | None,
        Meta(
            description="the inventory API's URL, up to its version (https://inventory.example/v1); "
            "not set = nothing is sent or stored"
        ),
    ] = None
    token_file: Annotated[
        str | None,
        Meta(description="file or systemd credential with the bearer token; re-read when it changes"),
    ] = None
    ca_file: Annotated[
        str | None,
        Meta(description="PEM file of the authorities to trust, for a private one; default: the usual ones"),
    ] = None
    client_certificate_file: Annotated[
        str | None, Meta(description="PEM certificate to show to a server that asks for one")
    ] = None
    client_key_file: Annotated[
        str | None, Meta(description="its key, without passphrase; default: in the same file")
    ] = None
    connect_timeout_seconds: Annotated[
        float, Meta(ge=0.1, le=120, description="for each address of the server")
    ] = 5
    read_timeout_seconds: Annotated[float, Meta(ge=0.1, le=300, description="without a single byte")] = 10
    outbox_max_bytes: Annotated[
        int,
        Meta(
            ge=MIB,
            le=1024 * 1024 * MIB,
            description="how large the outbox may grow while the inventory is away; only reports that tell "
            "a change of state go above it",
        ),
    ] = 64 * MIB
