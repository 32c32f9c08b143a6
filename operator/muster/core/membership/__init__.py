"""The nodes of an attempt: its members, the spares and the other pods, and the number of an elastic job."""
