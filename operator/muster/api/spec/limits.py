"""The largest numbers of nodes, spares and ranks of a job."""

MAX_NODES = 10_000

MAX_SPARES = 100
"""Each spare occupies a Kubernetes node, and few nodes fail in the minutes that a new pod needs to start."""

MAX_NODES_WITH_SPARES = MAX_NODES + MAX_SPARES
"""The maximum number of nodes of a job, with its spares: the nodes' numbers are lower."""

MAX_WORLD_SIZE = 100_000
"""Maximum ranks of a job: the rank store and the status are designed for this number."""
