"""Exit codes that several parts of the agent use."""

from __future__ import annotations

STOPPED_EXIT_CODE = 143
"""The agent's exit code if a signal or its parent's exit stopped it: a shell's code for SIGTERM."""
