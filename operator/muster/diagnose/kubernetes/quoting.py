"""Quote messages of Kubernetes and image registries safely in a job's status. Pure."""

import re

from muster.core.failure.rank_output import sanitize_line

MAX_CHARS = 300

_INNERMOST_PARTS = 3
"""The number of innermost parts of a wrapped error to show."""

_SECRETS = (
    # Signed URLs contain credentials in the query, and other URLs before the host. The query is optional in the
    # pattern, so that matching doesn't backtrack.
    (re.compile(r"(https?://[^\s?\"']+)(?:\?[^\s\"']+)?"), r"\1"),
    (re.compile(r"(https?://)[^\s/@\"']+@"), r"\1"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 ***"),
)

_VARYING_TEXTS = (
    # Remove text that differs at each attempt. Otherwise the same problem would look new.
    (re.compile(r"\bread (?:udp|tcp) \S+->"), "read from "),
    (re.compile(r"\b[0-9a-f]{24,64}\b"), "..."),
    (re.compile(r"rpc error: code = \w+ desc = "), ""),
    (re.compile(r"\s?\(pod: \"[^\"]*\"(?:, container: [^()]*)?\)"), ""),
)


def quote(text: str, limit: int = MAX_CHARS) -> str:
    """Return one line of at most `limit` characters, without credentials and text that differs at each attempt."""
    # Truncate long texts first, because the patterns are slow on them.
    text = text[:4096]
    for pattern, replacement in (*_SECRETS, *_VARYING_TEXTS):
        text = pattern.sub(replacement, text)
    return sanitize_line(text, limit).rstrip(".")


def find_innermost_error(text: str) -> str:
    """Return the innermost parts of an error that is wrapped as "outer: inner"."""
    parts = [part for part in quote(text, 4096).split(": ") if part not in ("unknown", "")]
    return sanitize_line(": ".join(parts[-_INNERMOST_PARTS:]), MAX_CHARS)
