"""Quote messages of Kubernetes and image registries safely in a job's status. Pure."""

import re

from muster.core.failure.rank_output import clean

MAX_CHARS = 300

_INNERMOST = 3
"""The number of innermost parts of a wrapped error to show."""

_SECRETS = (
    # Signed URLs carry credentials in the query, other URLs before the host. The query is optional in the pattern,
    # which
    # otherwise would backtrack at every http://.
    (re.compile(r"(https?://[^\s?\"']+)(?:\?[^\s\"']+)?"), r"\1"),
    (re.compile(r"(https?://)[^\s/@\"']+@"), r"\1"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 ***"),
)

_VARYING = (
    # Text that differs at each try would make the same problem look new.
    (re.compile(r"\bread (?:udp|tcp) \S+->"), "read from "),
    (re.compile(r"\b[0-9a-f]{24,64}\b"), "..."),
    (re.compile(r"rpc error: code = \w+ desc = "), ""),
    (re.compile(r"\s?\(pod: \"[^\"]*\"(?:, container: [^()]*)?\)"), ""),
)


def quote(text: str, limit: int = MAX_CHARS) -> str:
    """One line of at most `limit` characters, without credentials and without text that differs at each try."""
    # Cut long texts first: an untrusted text must not slow down the patterns.
    text = text[:4096]
    for pattern, instead in (*_SECRETS, *_VARYING):
        text = pattern.sub(instead, text)
    return clean(text, limit).rstrip(".")


def innermost(text: str) -> str:
    """The innermost part of an error that is wrapped as "outer: inner"."""
    parts = [part for part in quote(text, 4096).split(": ") if part not in ("unknown", "")]
    return clean(": ".join(parts[-_INNERMOST:]), MAX_CHARS)
