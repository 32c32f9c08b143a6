"""A fake S3 that generates its objects when they are read: thousands of small ones, and one of gigabytes.

moto stores objects in memory, and can't assemble an upload of 2 GB.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

from fakes.http_site import http_site

_PAGE = 1000
_BLOCK = b"".join(hashlib.sha256(bytes([number % 256, number // 256])).digest() for number in range(2**15))
"""1 MiB of bytes that don't repeat."""


class GeneratedS3:
    """`small` objects train/<n>, which contain their number, and train/weights with `large` bytes.

    `read_bytes` has the objects that were read, in their order, with the number of bytes.
    """

    def __init__(self, small: int, large: int) -> None:
        self.url = ""
        self.large = large
        self.read_bytes: list[tuple[str, int]] = []
        self.sizes = {f"train/{number}": len(str(number)) for number in range(small)} | {"train/weights": large}
        self.keys = sorted(self.sizes)

    def read(self, key: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of an object from `start` up to `end`."""
        if key != "train/weights":
            yield key.partition("/")[2].encode()[start:end]
            return
        while start < end:
            offset = start % len(_BLOCK)
            piece = _BLOCK[offset : offset + end - start]
            start += len(piece)
            yield piece

    def compute_digest(self) -> bytes:
        """Return the SHA-256 of the large object."""
        result = hashlib.sha256()
        for piece in self.read("train/weights", 0, self.large):
            result.update(piece)
        return result.digest()

    def make_page(self, after: str) -> str:
        """Return a page of the list, as ListObjectsV2 returns it."""
        keys = [key for key in self.keys if key > after][: _PAGE + 1]
        shown, more = keys[:_PAGE], len(keys) > _PAGE
        entries = "".join(
            f'<Contents><Key>{key}</Key><Size>{self.sizes[key]}</Size><ETag>"{_make_etag(key)}"</ETag></Contents>'
            for key in shown
        )
        token = f"<NextContinuationToken>{shown[-1]}</NextContinuationToken>" if more else ""
        return f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}</ListBucketResult>"


def _make_etag(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


@contextmanager
def generated_s3(small: int, large: int) -> Iterator[GeneratedS3]:
    """Serve it on a port of this machine, for any bucket name."""
    site = GeneratedS3(small, large)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            key = unquote(address.path).lstrip("/").partition("/")[2]
            if not key:
                after = parse_qs(address.query).get("continuation-token", [""])[0]
                body = site.make_page(after).encode()
                self._answer(200, len(body), "")
                self.wfile.write(body)
                return
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
            start, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, site.sizes[key])
            site.read_bytes.append((key, end - start))
            self._answer(206 if asked else 200, end - start, _make_etag(key))
            try:
                for piece in site.read(key, start, end):
                    self.wfile.write(piece)
            except OSError:
                self.close_connection = True  # the client was killed

        def _answer(self, status: int, size: int, etag: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(size))
            if etag:
                self.send_header("ETag", f'"{etag}"')
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                return  # the client was killed

    with http_site(Handler) as site.url:
        yield site
