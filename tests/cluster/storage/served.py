"""HTTPS at the machine's address in the cluster's network."""

from __future__ import annotations

import ssl
from pathlib import Path

from cluster import lan
from cluster.authority import Authority
from fakes.http_site import At


def for_pods(authority: Authority, folder: Path) -> At:
    """Return TLS settings with a certificate of `authority`. Python reads it only from a file, which is in `folder`."""
    pair = authority.issue("served", hosts=[lan.HOST])
    file = folder / "served.pem"
    file.touch(mode=0o600)
    file.write_bytes(pair.key + pair.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return At(lan.HOST, context)
