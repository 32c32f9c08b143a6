"""Runs in a pod, sent to its Python: sends the collector as much as possible, until it is killed. Prints the results."""

import http.client
import json
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import repeat
from urllib.parse import urlsplit

wanted = json.loads(sys.argv[1])
url = urlsplit(wanted["url"])
trust = ssl.create_default_context(cadata=wanted["authority"])
with open("/muster/token") as file:
    token = file.read().strip()
seen: Counter[str] = Counter()


def connect() -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(url.hostname, url.port, timeout=10, context=trust)


def news() -> Iterator[bytes]:
    """Yield a report that always has new content, of the maximum size."""
    for number in range(10**9, 10**9 + 10**6):
        report = json.loads(wanted["report"])
        rank = report["ranks"][0]
        report["sequence"] = rank["step"] = number
        names = (f"metric-{number % 7}-{index}" for index in range(256))
        report["metrics"] = [{"name": name, "value": number, "rank": rank["rank"], "age": 0.0} for name in names]
        yield json.dumps(report).encode()


def send(what: str, bodies: Iterable[bytes], headers: dict[str, str]) -> None:
    connection = connect()
    for body in bodies:
        try:
            connection.request("POST", "/v1/report", body, headers)
            answer = connection.getresponse()
            answer.read()
            seen[f"{what} {answer.status}"] += 1
        except (OSError, http.client.HTTPException) as error:
            seen[f"{what} {type(error).__name__}"] += 1
            connection.close()
            connection = connect()


def hold() -> None:
    """Connections that send nothing, or an incomplete request."""
    held = []
    while True:
        connection = connect()
        try:
            connection.connect()
            connection.sock.sendall(b"POST /v1/report HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n")
            held.append(connection)
            seen["held"] += 1
        except OSError as error:
            seen[f"held {type(error).__name__}"] += 1
            time.sleep(0.05)
        if len(held) > 2000:
            held.pop(0).close()


def tell() -> None:
    while True:
        time.sleep(0.5)
        print(json.dumps(seen), flush=True)


own = {"Authorization": f"Bearer {token}"}
work: list[tuple[str, Iterable[bytes], dict[str, str]]] = [
    ("report", news(), own),
    ("report", news(), own),
    ("huge", repeat(b"x" * 2**20), own),
    ("huger", repeat(b"x" * 2**22), own),
    ("nested", repeat(b"[" * 2**19), own),
    ("stranger", repeat(b"{}"), {"Authorization": "Bearer a.b.c"}),
]
threads = [threading.Thread(target=send, args=each, daemon=True) for each in work]
threads += [threading.Thread(target=hold, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
tell()
