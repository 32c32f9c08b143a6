"""Exit codes that more than one part of the agent ends with."""

from __future__ import annotations

STOPPED_EXIT_CODE = 143
"""The agent's own when it was stopped, but not by the operator: a shell's for SIGTERM."""
