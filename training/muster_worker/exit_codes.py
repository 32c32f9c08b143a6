"""Exit codes that more than one part of the agent ends with."""

from __future__ import annotations

STOPPED_EXIT_CODE = 143
"""The agent's own when somebody other than the operator made it stop: a shell's for SIGTERM."""
