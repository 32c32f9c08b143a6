"""Kueue's marks on pods, as in Kueue 0.17. Pure."""

ADMISSION_GATE = "kueue.x-k8s.io/admission"
"""The scheduling gate that Kueue removes when it admits the pod's group."""

TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
"""The scheduling gate of Kueue's webhook that Kueue removes when it has chosen the pod's topology domain."""

POD_GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"
"""The name of the pod's group and of its Workload."""

MANAGED_LABEL = "kueue.x-k8s.io/managed"
"""Kueue's webhook sets this label to "true" on the pods that Kueue manages."""
