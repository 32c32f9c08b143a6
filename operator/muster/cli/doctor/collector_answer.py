"""The check of `muster doctor` that the collector answers a pod. It works only in a pod of the cluster."""

from __future__ import annotations

import ssl
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

import aiohttp

from muster.cli.doctor.finding import Finding, has_failed, is_ok
from muster.cli.doctor.installation import Cluster
from muster.cli.errors import BadInput

_PATH = "/v1/command"
_SECONDS = 10.0


def parse_collector_url(text: str) -> SplitResult:
    """Parse the value of `--collector-url`. Raises `BadInput`."""
    url = urlsplit(text)
    if url.scheme != "https" or not url.hostname:
        raise BadInput(f"--collector-url: found {text!r}; allowed is https://HOST:PORT")
    return url


async def check_collector_answer(url: SplitResult, _: Cluster) -> Finding:
    """Check that the collector refuses a request without a token, as it does only if it works."""
    try:
        status = await _request(url.geturl())
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        return has_failed(
            f"no answer ({str(error) or type(error).__name__})",
            "agents can't report: see the check of the Lease, DNS, and the NetworkPolicies of both pods",
        )
    if status == HTTPStatus.UNAUTHORIZED:
        return is_ok("the collector answers pods")
    return has_failed(
        f"the answer is HTTP {status}, expected 401", "see the leader's log: another server may listen there"
    )


async def _request(url: str) -> int:
    # Only jobs know the collector's authority. This request has no secrets, and its answer is used for nothing else.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url + _PATH, ssl=context) as response:
        return response.status
