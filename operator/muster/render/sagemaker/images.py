"""Select AWS' image for a training job by framework, versions, region and instance type. Pure.

The rules are those of the SageMaker SDK (sagemaker 2.257.7, image_uris.py and estimator.py), and a test compares all
results with it. The SDK's tables are in `ImageFacts`; its code is reimplemented here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from muster.api.spec.sagemaker.support import instance_family
from muster.render.sagemaker.image_catalogue import Build, Catalogue, ImageFacts

Framework = Literal["PyTorch", "TensorFlow", "HuggingFace"]
Processor = Literal["cpu", "gpu", "trn", "inf"]
Library = Literal["None", "SMDistributed", "ModelParallelV2"]
"""The library of SageMaker that the job uses: smdistributed, or modelparallel 2 with torch_distributed."""

Part = Literal["name", "version", "pythonVersion", "pytorchVersion", "tensorflowVersion", "instanceType", "region"]
"""The invalid field of a `Wanted`, as a field of spec.sagemaker or its framework."""

_CUDA_121_VERSIONS = ("2.1", "2.2", "2.3", "2.4")
_CUDA_124_VERSION = "2.5"
"""Substrings of versions whose modelparallel 2 images have this CUDA: image_uris.get_training_image_uri."""

_P4D_SYSTEMS = {
    "tensorflow-2.3-gpu-py37": "cu110-ubuntu18.04-v3",
    "tensorflow-2.3.1-gpu-py37": "cu110-ubuntu18.04",
    "tensorflow-2.3.2-gpu-py37": "cu110-ubuntu18.04",
    "tensorflow-1.15-gpu-py37": "cu110-ubuntu18.04-v8",
    "tensorflow-1.15.4-gpu-py37": "cu110-ubuntu18.04",
    "tensorflow-1.15.5-gpu-py37": "cu110-ubuntu18.04",
    "pytorch-1.6-gpu-py36": "cu110-ubuntu18.04-v3",
    "pytorch-1.6.0-gpu-py36": "cu110-ubuntu18.04",
    "pytorch-1.6-gpu-py3": "cu110-ubuntu18.04-v3",
    "pytorch-1.6.0-gpu-py3": "cu110-ubuntu18.04",
}
"""Images with CUDA 11, which p4d and smdistributed need instead of older ones of the same version: _get_image_tag."""

_FIRST_WITHOUT_P2 = {"PyTorch": (1, 13), "TensorFlow": (2, 12)}
"""The first versions without support for p2: _validate_instance_deprecation."""


_DETAILED_PROFILER = "DetailedProfilerProcessingJobConfig"


@dataclass(frozen=True)
class Wanted:
    """A request for an image.

    `version` is the framework's, or that of transformers for Hugging Face, with the version of `pytorch` or
    `tensorflow`.
    `python` has the form "py310", or is "" if there is only one.
    """

    framework: Framework
    version: str
    region: str
    instance_type: str
    python: str = ""
    library: Library = "None"
    pytorch: str = ""
    tensorflow: str = ""


class NoSuchImage(Exception):
    """AWS has no such image. `part` is the field to change; the message has its value and the allowed ones."""

    def __init__(self, part: Part, message: str) -> None:
        super().__init__(message)
        self.part = part


def training_image(wanted: Wanted, facts: ImageFacts) -> str:
    """Return the image's URI. Raises `NoSuchImage`."""
    catalogue = _catalogue(wanted, facts)
    builds = catalogue.versions[_known_version(wanted, catalogue)]
    build, python = _build(wanted, builds)
    registry = _registry(build.registries, wanted.region, facts)
    processor = _processor(wanted, catalogue)
    _refuse_p2(wanted)
    return f"{registry}/{build.repository}:{_tag(wanted, build, catalogue, processor, python)}"


def rule_image(rule: str, region: str, facts: ImageFacts) -> str:
    """The image that evaluates a built-in rule. Raises `NoSuchImage` if the region has none.

    Source: debugger/debugger.py, get_rule_container_image_uri.
    """
    evaluator = facts.detailed_profiler if rule.startswith(_DETAILED_PROFILER) else facts.debugger
    return f"{_registry(evaluator.registries, region, facts)}/{evaluator.repository}:latest"


def processor_of(instance_type: str) -> Processor:
    """The processor of an instance type. Raises `NoSuchImage` for an invalid type."""
    name = instance_family(instance_type)
    if not name:
        raise NoSuchImage(
            "instanceType", f"{instance_type!r}; an instance type of SageMaker is expected, such as ml.g5.2xlarge"
        )
    return next((processor for beginning, processor in _PROCESSORS if name.startswith(beginning)), "cpu")


_PROCESSORS: tuple[tuple[str, Processor], ...] = (("inf", "inf"), ("trn", "trn"), ("g", "gpu"), ("p", "gpu"))


def deciding_type(instance_types: Sequence[str]) -> str:
    """The instance type that determines the image of a job with instance groups: the first with GPUs, else the first.

    Source: estimator.EstimatorBase._get_instance_type.
    """
    return next((name for name in instance_types if processor_of(name) == "gpu"), instance_types[0])


def _catalogue(wanted: Wanted, facts: ImageFacts) -> Catalogue:
    if processor_of(wanted.instance_type) == "trn":
        return _neuron_catalogue(wanted, facts)
    if wanted.library == "ModelParallelV2":
        if wanted.framework != "PyTorch":
            message = (
                f"{wanted.framework} with modelParallel beside torchDistributed; there are images of PyTorch alone"
            )
            raise NoSuchImage("name", message)
        return facts.pytorch_model_parallel
    if wanted.framework == "HuggingFace":
        return _hugging_face_catalogue(wanted, facts)
    return facts.pytorch if wanted.framework == "PyTorch" else facts.tensorflow


def _neuron_catalogue(wanted: Wanted, facts: ImageFacts) -> Catalogue:
    if wanted.framework != "PyTorch" or wanted.library != "None":
        what = wanted.framework if wanted.framework != "PyTorch" else "a library of SageMaker's own"
        allowed = "for Trainium AWS has images of PyTorch alone: name another in spec.image"
        raise NoSuchImage("name", f"{what} on {wanted.instance_type}; {allowed}")
    return facts.pytorch_neuron


def _hugging_face_catalogue(wanted: Wanted, facts: ImageFacts) -> Catalogue:
    entry = facts.transformers_aliases.get(wanted.version, wanted.version)
    if entry not in facts.hugging_face:
        raise _unknown("version", wanted.version, facts.hugging_face)
    if bool(wanted.pytorch) == bool(wanted.tensorflow):
        result = "both" if wanted.pytorch else "neither"
        raise NoSuchImage("pytorchVersion", f"{result}; give pytorchVersion or tensorflowVersion, one of the two")
    # The tag has both versions as written, 4.26 with 1.13 or 4.26.0 with 1.13.1, and AWS has no mixed tags.
    _, _, framework_version = _framework_version(wanted)
    if wanted.version.count(".") != framework_version.count("."):
        message = (
            f"{wanted.version} and {framework_version} beneath; write both in full (4.26.0 and 1.13.1) or both short"
        )
        raise NoSuchImage("version", message)
    return facts.hugging_face[entry]


def _framework_version(wanted: Wanted) -> tuple[Part, str, str]:
    """The version of PyTorch or TensorFlow: its field, its prefix in catalogues, and the version."""
    if wanted.pytorch:
        return "pytorchVersion", "pytorch", wanted.pytorch
    if wanted.tensorflow:
        return "tensorflowVersion", "tensorflow", wanted.tensorflow
    return "version", "", wanted.version


def _known_version(wanted: Wanted, catalogue: Catalogue) -> str:
    """The catalogue's full version for the requested one."""
    part, prefix, version = _framework_version(wanted)
    entry = catalogue.aliases.get(prefix + version, prefix + version)
    if entry in catalogue.versions:
        return entry
    if _has_single_image(catalogue):
        return next(iter(catalogue.versions))
    names = [name.removeprefix(prefix) for name in catalogue.versions if name.startswith(prefix)]
    raise _unknown(part, version, names)


def _has_single_image(catalogue: Catalogue) -> bool:
    # For Trainium the SDK has a single image, and uses it for every version: a request for 1.13.1 gets 1.11.0.
    return catalogue.processors == ("trn",) and len(catalogue.versions) == 1


def _build(wanted: Wanted, builds: Sequence[Build]) -> tuple[Build, str]:
    """The build for the requested Python, and that Python."""
    pythons = [python for build in builds for python in build.pythons]
    python = wanted.python or (pythons[0] if len(pythons) == 1 else "")
    for build in builds:
        if python in build.pythons:
            return build, python
    raise _unknown("pythonVersion", wanted.python, pythons)


def _registry(registries: str, region: str, facts: ImageFacts) -> str:
    regions = facts.registries[registries]
    for account, account_regions in regions.items():
        if region in account_regions:
            return f"{account}.dkr.ecr.{region}.{_domain(region, facts)}"
    raise _unknown("region", region, sorted(other for account_regions in regions.values() for other in account_regions))


def _domain(region: str, facts: ImageFacts) -> str:
    return next(domain for domain, regions in facts.domains.items() if region in regions)


def _processor(wanted: Wanted, catalogue: Catalogue) -> str:
    processor = processor_of(wanted.instance_type)
    if processor not in catalogue.processors:
        allowed = " and ".join(_NAMES[name] for name in catalogue.processors)
        message = f"{wanted.instance_type}; AWS has these images for instances with {allowed} only"
        raise NoSuchImage("instanceType", message)
    return processor


_NAMES = {"cpu": "CPUs", "gpu": "GPUs", "trn": "Trainium"}


def _refuse_p2(wanted: Wanted) -> None:
    first_without = _FIRST_WITHOUT_P2.get(wanted.framework)
    if first_without is None or wanted.library == "ModelParallelV2" or instance_family(wanted.instance_type) != "p2":
        return
    if tuple(int(number) for number in wanted.version.split(".")) >= first_without:
        without = ".".join(str(number) for number in first_without)
        message = f"{wanted.instance_type}; from {wanted.framework} {without} on there are no p2 instances"
        raise NoSuchImage("instanceType", message)


def _tag(wanted: Wanted, build: Build, catalogue: Catalogue, processor: str, python: str) -> str:
    if processor == "trn":
        return _join(_version_in_tag(wanted, catalogue), "neuron", python, build.system)
    if wanted.framework == "HuggingFace":
        return _join(_framework_version(wanted)[2], f"transformers{wanted.version}", processor, python, build.system)
    if wanted.library == "ModelParallelV2":
        return _join(wanted.version, processor, python, _cuda(wanted))
    tag = _join(wanted.version, processor, python, build.system)
    if wanted.library == "SMDistributed" or instance_family(wanted.instance_type) == "p4d":
        return _join(tag, _P4D_SYSTEMS.get(f"{wanted.framework.lower()}-{tag}", ""))
    return tag


def _version_in_tag(wanted: Wanted, catalogue: Catalogue) -> str:
    # Tags contain the version as written, which may be an alias.
    named = wanted.version in catalogue.aliases or wanted.version in catalogue.versions
    return wanted.version if named else next(iter(catalogue.versions))


def _cuda(wanted: Wanted) -> str:
    if _CUDA_124_VERSION in wanted.version:
        return "cu124"
    if "p5" in wanted.instance_type or any(version in wanted.version for version in _CUDA_121_VERSIONS):
        return "cu121"
    return "cu118"


def _join(*parts: str) -> str:
    return "-".join(part for part in parts if part)


def _unknown(part: Part, value: str, allowed: Iterable[str]) -> NoSuchImage:
    start = f"{value!r}; AWS has no such image" if value else "none; AWS has several images"
    return NoSuchImage(part, f"{start} for training: choose one of {', '.join(allowed)}")
