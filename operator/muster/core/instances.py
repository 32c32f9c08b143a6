"""What is known of instance types. Pure facts: of a type that isn't here nothing is made up.

GPUs, chips and cores: Amazon EC2 User Guide, "Instance types", accelerated computing (specifications of each type). EFA
devices: one a network card that takes an EFA, there under "Network cards". Huge pages: what AWS' own manifests ask for
on EKS (Amazon EKS User Guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter"); its images
set them aside. Cores of Trainium2: AWS Neuron documentation, "Logical NeuronCore configuration": each chip has eight
physical cores, of which two make one that software sees unless it is told otherwise. Karpenter's reference, "Instance
Types", has the same numbers of g6e, trn1 and trn2, but counts trn2's physical cores as aws.amazon.com/neuroncore.
p2: the same guide, previous generation. Left out, because sources differ or are silent: g3, g6f, g7, gr6, p6e-gb200.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

HUGE_PAGES_MIB = 5120


@dataclass(frozen=True)
class Instance:
    """One type. `neuron_cores` are those that software sees, `cores_in_one` physical ones each.

    `huge_pages_mib` is for all its EFA devices.
    """

    gpus: int = 0
    efa: int = 0
    neuron_chips: int = 0
    neuron_cores: int = 0
    cores_in_one: int = 1
    huge_pages_mib: int = 0


INSTANCES: Mapping[str, Instance] = {
    "p2.xlarge": Instance(gpus=1),
    "p2.8xlarge": Instance(gpus=8),
    "p2.16xlarge": Instance(gpus=16),
    "p3.2xlarge": Instance(gpus=1),
    "p3.8xlarge": Instance(gpus=4),
    "p3.16xlarge": Instance(gpus=8),
    "p3dn.24xlarge": Instance(gpus=8, efa=1),
    "p4d.24xlarge": Instance(gpus=8, efa=4, huge_pages_mib=HUGE_PAGES_MIB),
    "p4de.24xlarge": Instance(gpus=8, efa=4, huge_pages_mib=HUGE_PAGES_MIB),
    "p5.4xlarge": Instance(gpus=1, efa=1),
    "p5.48xlarge": Instance(gpus=8, efa=32, huge_pages_mib=HUGE_PAGES_MIB),
    "p5e.48xlarge": Instance(gpus=8, efa=32, huge_pages_mib=HUGE_PAGES_MIB),
    "p5en.48xlarge": Instance(gpus=8, efa=16, huge_pages_mib=HUGE_PAGES_MIB),
    "p6-b200.48xlarge": Instance(gpus=8, efa=8),
    "p6-b300.48xlarge": Instance(gpus=8, efa=16),
    "g4dn.xlarge": Instance(gpus=1),
    "g4dn.2xlarge": Instance(gpus=1),
    "g4dn.4xlarge": Instance(gpus=1),
    "g4dn.8xlarge": Instance(gpus=1, efa=1),
    "g4dn.12xlarge": Instance(gpus=4, efa=1),
    "g4dn.16xlarge": Instance(gpus=1, efa=1),
    "g5.xlarge": Instance(gpus=1),
    "g5.2xlarge": Instance(gpus=1),
    "g5.4xlarge": Instance(gpus=1),
    "g5.8xlarge": Instance(gpus=1, efa=1),
    "g5.12xlarge": Instance(gpus=4, efa=1),
    "g5.16xlarge": Instance(gpus=1, efa=1),
    "g5.24xlarge": Instance(gpus=4, efa=1),
    "g5.48xlarge": Instance(gpus=8, efa=1),
    "g6.xlarge": Instance(gpus=1),
    "g6.2xlarge": Instance(gpus=1),
    "g6.4xlarge": Instance(gpus=1),
    "g6.8xlarge": Instance(gpus=1, efa=1),
    "g6.12xlarge": Instance(gpus=4, efa=1),
    "g6.16xlarge": Instance(gpus=1, efa=1),
    "g6.24xlarge": Instance(gpus=4, efa=1),
    "g6.48xlarge": Instance(gpus=8, efa=1),
    "g6e.xlarge": Instance(gpus=1),
    "g6e.2xlarge": Instance(gpus=1),
    "g6e.4xlarge": Instance(gpus=1),
    "g6e.8xlarge": Instance(gpus=1, efa=1),
    "g6e.12xlarge": Instance(gpus=4, efa=1),
    "g6e.16xlarge": Instance(gpus=1, efa=1),
    "g6e.24xlarge": Instance(gpus=4, efa=2),
    "g6e.48xlarge": Instance(gpus=8, efa=4),
    "g7e.2xlarge": Instance(gpus=1),
    "g7e.4xlarge": Instance(gpus=1),
    "g7e.8xlarge": Instance(gpus=1, efa=1),
    "g7e.12xlarge": Instance(gpus=2, efa=1),
    "g7e.24xlarge": Instance(gpus=4, efa=2),
    "g7e.48xlarge": Instance(gpus=8, efa=4),
    "trn1.2xlarge": Instance(neuron_chips=1, neuron_cores=2),
    "trn1.32xlarge": Instance(neuron_chips=16, neuron_cores=32, efa=8),
    "trn1n.32xlarge": Instance(neuron_chips=16, neuron_cores=32, efa=16),
    "trn2.48xlarge": Instance(neuron_chips=16, neuron_cores=64, cores_in_one=2, efa=16),
}
"""All types of which something is known."""


def instance_of(name: str) -> Instance | None:
    """What is known of the type; None when nothing is."""
    return INSTANCES.get(name)


def sentence(instance: Instance) -> str:
    """What is known of it, for people: "8 GPUs, 32 EFA devices"."""
    return ", ".join(_parts(instance))


def _parts(instance: Instance) -> Iterator[str]:
    if instance.gpus:
        yield f"{instance.gpus} GPU{_plural(instance.gpus)}"
    if instance.neuron_chips:
        yield f"{instance.neuron_chips} Neuron chip{_plural(instance.neuron_chips)} of {_cores(instance)} cores"
    yield f"{instance.efa or 'no'} EFA device{_plural(instance.efa)}"


def _cores(instance: Instance) -> int:
    return instance.neuron_cores // instance.neuron_chips


def _plural(count: int) -> str:
    return "" if count == 1 else "s"
