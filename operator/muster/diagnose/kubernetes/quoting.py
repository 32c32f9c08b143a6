"""Words of Kubernetes and its registries made fit to stand in a job's status. Pure."""

import re

from muster.core.failure.rank_output import clean

MAX_CHARS = 300

_INNERMOST = 3
"""Parts of an error wrapped in errors that tell where it began."""

_SECRETS = (
    # signed URLs of blobs carry their credentials in the query, others before the host
    # (each URL is matched, with a query or without: one that only fits with it is looked for again at every http://)
    (re.compile(r"(https?://[^\s?\"']+)(?:\?[^\s\"']+)?"), r"\1"),
    (re.compile(r"(https?://)[^\s/@\"']+@"), r"\1"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 ***"),
)

_RESTLESS = (
    # what differs from one attempt to the next would make the same problem look like news
    (re.compile(r"\bread (?:udp|tcp) \S+->"), "read from "),
    (re.compile(r"\b[0-9a-f]{24,64}\b"), "..."),
    (re.compile(r"rpc error: code = \w+ desc = "), ""),
    (re.compile(r"\s?\(pod: \"[^\"]*\"(?:, container: [^()]*)?\)"), ""),
)


def quote(text: str, limit: int = MAX_CHARS) -> str:
    """One line of at most `limit` characters, without credentials and without what changes at each attempt."""
    # Long before the limit: a pattern must not be at the mercy of who writes the text.
    text = text[:4096]
    for pattern, instead in (*_SECRETS, *_RESTLESS):
        text = pattern.sub(instead, text)
    return clean(text, limit).rstrip(".")


def innermost(text: str) -> str:
    """The last of errors that are wrapped in each other as "outer: inner": where it all began."""
    parts = [part for part in quote(text, 4096).split(": ") if part not in ("unknown", "")]
    return clean(": ".join(parts[-_INNERMOST:]), MAX_CHARS)
