"""Warm start: a process that has imported torch before a rank needs it, and forks the ranks."""
