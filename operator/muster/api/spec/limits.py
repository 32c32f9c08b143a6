"""The largest numbers of nodes and ranks of a job."""

MAX_NODES = 10_000

MAX_WORLD_SIZE = 100_000
"""Maximum ranks of a job: the rank store and the status are designed for this number."""
