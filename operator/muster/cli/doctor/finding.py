"""What `muster doctor` finds, and its text. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "failed", "unknown"]

ASK_ADMINISTRATOR = "ask an administrator to run `muster doctor`"


@dataclass(frozen=True)
class Finding:
    """The result of a check: what is the case, and what to do if it is not good."""

    level: Level
    text: str
    remedy: str = ""


def is_ok(text: str) -> Finding:
    """Return the finding of a check that has passed."""
    return Finding("ok", text)


def has_failed(text: str, remedy: str) -> Finding:
    """Return the finding of a check that has failed."""
    return Finding("failed", text, remedy)


def is_unknown(text: str, remedy: str = "") -> Finding:
    """Return the finding of a check that can't see whether all is well."""
    return Finding("unknown", text, remedy)


def format_findings(findings: Iterable[tuple[str, Finding]]) -> list[str]:
    """Return a line for each check, and below it what to do."""
    lines = []
    for name, finding in findings:
        lines.append(f"{finding.level:<8} {name}: {finding.text}")
        if finding.remedy:
            lines.append(f"         {finding.remedy}")
    return lines
