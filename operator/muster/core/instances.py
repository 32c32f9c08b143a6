"""Data of EC2 instance types. The table omits types without reliable data.

GPUs, chips and cores: Amazon EC2 User Guide, "Instance types", accelerated computing (specifications of each type). EFA
devices: one for each network card that supports EFA, in the same guide under "Network cards". Huge pages: AWS'
manifests for EKS (Amazon EKS User Guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter");
AWS' images for EKS reserve them. Cores of Trainium2: AWS Neuron documentation, "Logical NeuronCore configuration": each
chip has eight physical cores, and by default two of them form one logical core. Karpenter's reference, "Instance
Types", has the same numbers for g6e, trn1 and trn2, but counts trn2's physical cores as aws.amazon.com/neuroncore. p2:
the same guide, under previous generation instances. The table omits g3, g6f, g7, gr6 and p6e-gb200, because the sources
differ or have no data.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.api.plurals import pluralize

HUGE_PAGES_MIB = 5120


@dataclass(frozen=True)
class InstanceHardware:
    """One instance type. `neuron_cores` are logical cores of `physical_cores_per_core` physical cores each.

    `huge_pages_mib` is the total for all EFA devices.
    """

    gpus: int = 0
    efa: int = 0
    neuron_chips: int = 0
    neuron_cores: int = 0
    physical_cores_per_core: int = 1
    huge_pages_mib: int = 0


INSTANCE_TYPES: Mapping[str, InstanceHardware] = {
    "p2.xlarge": InstanceHardware(gpus=1),
    "p2.8xlarge": InstanceHardware(gpus=8),
    "p2.16xlarge": InstanceHardware(gpus=16),
    "p3.2xlarge": InstanceHardware(gpus=1),
    "p3.8xlarge": InstanceHardware(gpus=4),
    "p3.16xlarge": InstanceHardware(gpus=8),
    "p3dn.24xlarge": InstanceHardware(gpus=8, efa=1),
    "p4d.24xlarge": InstanceHardware(gpus=8, efa=4, huge_pages_mib=HUGE_PAGES_MIB),
    "p4de.24xlarge": InstanceHardware(gpus=8, efa=4, huge_pages_mib=HUGE_PAGES_MIB),
    "p5.4xlarge": InstanceHardware(gpus=1, efa=1),
    "p5.48xlarge": InstanceHardware(gpus=8, efa=32, huge_pages_mib=HUGE_PAGES_MIB),
    "p5e.48xlarge": InstanceHardware(gpus=8, efa=32, huge_pages_mib=HUGE_PAGES_MIB),
    "p5en.48xlarge": InstanceHardware(gpus=8, efa=16, huge_pages_mib=HUGE_PAGES_MIB),
    "p6-b200.48xlarge": InstanceHardware(gpus=8, efa=8),
    "p6-b300.48xlarge": InstanceHardware(gpus=8, efa=16),
    "g4dn.xlarge": InstanceHardware(gpus=1),
    "g4dn.2xlarge": InstanceHardware(gpus=1),
    "g4dn.4xlarge": InstanceHardware(gpus=1),
    "g4dn.8xlarge": InstanceHardware(gpus=1, efa=1),
    "g4dn.12xlarge": InstanceHardware(gpus=4, efa=1),
    "g4dn.16xlarge": InstanceHardware(gpus=1, efa=1),
    "g5.xlarge": InstanceHardware(gpus=1),
    "g5.2xlarge": InstanceHardware(gpus=1),
    "g5.4xlarge": InstanceHardware(gpus=1),
    "g5.8xlarge": InstanceHardware(gpus=1, efa=1),
    "g5.12xlarge": InstanceHardware(gpus=4, efa=1),
    "g5.16xlarge": InstanceHardware(gpus=1, efa=1),
    "g5.24xlarge": InstanceHardware(gpus=4, efa=1),
    "g5.48xlarge": InstanceHardware(gpus=8, efa=1),
    "g6.xlarge": InstanceHardware(gpus=1),
    "g6.2xlarge": InstanceHardware(gpus=1),
    "g6.4xlarge": InstanceHardware(gpus=1),
    "g6.8xlarge": InstanceHardware(gpus=1, efa=1),
    "g6.12xlarge": InstanceHardware(gpus=4, efa=1),
    "g6.16xlarge": InstanceHardware(gpus=1, efa=1),
    "g6.24xlarge": InstanceHardware(gpus=4, efa=1),
    "g6.48xlarge": InstanceHardware(gpus=8, efa=1),
    "g6e.xlarge": InstanceHardware(gpus=1),
    "g6e.2xlarge": InstanceHardware(gpus=1),
    "g6e.4xlarge": InstanceHardware(gpus=1),
    "g6e.8xlarge": InstanceHardware(gpus=1, efa=1),
    "g6e.12xlarge": InstanceHardware(gpus=4, efa=1),
    "g6e.16xlarge": InstanceHardware(gpus=1, efa=1),
    "g6e.24xlarge": InstanceHardware(gpus=4, efa=2),
    "g6e.48xlarge": InstanceHardware(gpus=8, efa=4),
    "g7e.2xlarge": InstanceHardware(gpus=1),
    "g7e.4xlarge": InstanceHardware(gpus=1),
    "g7e.8xlarge": InstanceHardware(gpus=1, efa=1),
    "g7e.12xlarge": InstanceHardware(gpus=2, efa=1),
    "g7e.24xlarge": InstanceHardware(gpus=4, efa=2),
    "g7e.48xlarge": InstanceHardware(gpus=8, efa=4),
    "trn1.2xlarge": InstanceHardware(neuron_chips=1, neuron_cores=2),
    "trn1.32xlarge": InstanceHardware(neuron_chips=16, neuron_cores=32, efa=8),
    "trn1n.32xlarge": InstanceHardware(neuron_chips=16, neuron_cores=32, efa=16),
    "trn2.48xlarge": InstanceHardware(neuron_chips=16, neuron_cores=64, physical_cores_per_core=2, efa=16),
}
"""Instance types by name."""


def find_instance_type(name: str) -> InstanceHardware | None:
    """Return the data of an instance type; None if it is not in the table."""
    return INSTANCE_TYPES.get(name)


def describe_instance(instance: InstanceHardware) -> str:
    """Describe an instance type for messages: "8 GPUs, 32 EFA devices"."""
    return ", ".join(_list_phrases(instance))


def _list_phrases(instance: InstanceHardware) -> Iterator[str]:
    if instance.gpus:
        yield pluralize(instance.gpus, "GPU")
    if instance.neuron_chips:
        yield f"{pluralize(instance.neuron_chips, 'Neuron chip')} of {_count_cores_per_chip(instance)} cores"
    yield pluralize(instance.efa, "EFA device") if instance.efa else "no EFA devices"


def _count_cores_per_chip(instance: InstanceHardware) -> int:
    return instance.neuron_cores // instance.neuron_chips
