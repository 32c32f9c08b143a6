"""Jobs whose nodes have a second network: an operator as a process, and torch for their pods."""

from cluster.operator.conftest import jobs, operators, process_operator

__all__ = ["jobs", "operators", "process_operator"]
