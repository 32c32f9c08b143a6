"""The certificate of the board of a cluster, from the files of a Secret."""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

CHECK_SECONDS = 60.0
"""The interval between two looks at the files, which the kubelet replaces when the Secret changes."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TlsFiles:
    """The files with the certificate chain and its key, as PEM."""

    certificate: Path
    key: Path

    def load_into(self, context: ssl.SSLContext) -> None:
        """Use the files for new connections. Raises `OSError`, of which `ssl.SSLError` is one."""
        context.load_cert_chain(self.certificate, self.key)

    def read(self) -> tuple[bytes, bytes]:
        """Return their content. Raises `OSError`."""
        return self.certificate.read_bytes(), self.key.read_bytes()


def make_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a server with these files. Raises `OSError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files.load_into(context)
    return context


async def follow_certificate(files: TlsFiles, context: ssl.SSLContext) -> None:
    """Load the files into the context again when they have changed, until cancelled."""
    content = files.read()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            newest = files.read()
            if newest != content:
                files.load_into(context)
                content = newest
        except OSError as error:
            _log.warning("the board's certificate can't be read, and the last one is used: %s", error)
