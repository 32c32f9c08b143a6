"""Read the accelerators in a container's limits, which are extended resources. Pure."""

from muster.core.devices import Devices
from muster.objects.kubernetes.kinds import Object

GPU = "nvidia.com/gpu"
AMD_GPU = "amd.com/gpu"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"

_ACCELERATORS = (GPU, AMD_GPU, NEURON_CORE, NEURON)

_MAX_DIGITS = 4
"""No Kubernetes node has 10,000 accelerators, so the scheduler can't place a pod that requests so many."""


def read_devices(limits: Object) -> Devices | None:
    """Return the accelerators in a container's limits; None without any."""
    for name in _ACCELERATORS:
        text = str(limits.get(name, ""))
        if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text):
            return Devices(name, int(text))
    return None
