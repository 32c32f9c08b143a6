"""Runs in a pod, sent to its Python: sends random variations of a valid report to the collector, until it is killed."""

import http.client
import json
import random
import ssl
import sys
from typing import Any
from urllib.parse import urlsplit

wanted = json.loads(sys.argv[1])
url = urlsplit(wanted["url"])
trust = ssl.create_default_context(cadata=wanted["authority"])
chance = random.Random(wanted["seed"])
with open("/muster/token") as file:
    token = file.read().strip()

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 10**30, 0.5, 1e308, -1e-9, float("nan"), float("inf")),
    *("", "x", "Running", "Ended", "\x00", "\ud800", "\u202e" * 50, "x" * 10_000, [], {}, [[]] * 50, {"a": {"b": []}}),
)
RAW = (b"", b"{", b"[" * 50_000, b'{"a":' * 2_000, b"\xff\xfe", b"1" * 5_000, b"null", b'"' + b"\\u0000" * 500 + b'"')


def changed(value: Any) -> Any:
    """Change one value of the report."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(sorted(value))
        return {**value, key: changed(value[key])}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], changed(value[place]), *value[place + 1 :] * chance.choice((1, 1, 300))]
    return chance.choice(ODD)


def body(number: int) -> bytes:
    if chance.random() < 0.1:
        return chance.choice(RAW)
    report = json.loads(wanted["report"])
    report["sequence"] = number
    for _ in range(chance.randrange(4)):
        report = changed(report)
    return json.dumps(report).encode()


for number in range(10**9, 2 * 10**9):
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, timeout=10, context=trust)
    try:
        for _ in range(20):
            connection.request("POST", "/v1/report", body(number), {"Authorization": f"Bearer {token}"})
            connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
