"""Select AWS' image for a training job by framework, versions, region and instance type. Pure.

The rules are those of the SageMaker SDK (sagemaker 2.257.7, image_uris.py and estimator.py). A test compares all
results with the SDK's. `ImageFacts` contains the SDK's tables.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from muster.api.spec.sagemaker.support import parse_instance_family
from muster.render.sagemaker.image_catalogue import Build, Catalogue, ImageFacts

Framework = Literal["PyTorch", "TensorFlow", "HuggingFace"]
Processor = Literal["cpu", "gpu", "trn", "inf"]
Library = Literal["None", "SMDistributed", "ModelParallelV2"]
"""The library of SageMaker that the job uses: smdistributed, or modelparallel 2 with torch_distributed."""

FieldName = Literal["name", "version", "pythonVersion", "pytorchVersion", "tensorflowVersion", "instanceType", "region"]
"""The name of an invalid field, in spec.sagemaker or its framework."""

_CUDA_121_VERSIONS = ("2.1", "2.2", "2.3", "2.4")
_CUDA_124_VERSION = "2.5"
"""The versions whose modelparallel 2 images have CUDA 12.1 or 12.4 (image_uris.get_training_image_uri)."""

_CUDA_11_TAG_SUFFIXES = {
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
"""The ends of the tags of images with CUDA 11, which p4d and smdistributed need (image_uris._get_image_tag)."""

_FIRST_WITHOUT_P2 = {"PyTorch": (1, 13), "TensorFlow": (2, 12)}
"""The first versions that don't support p2 (image_uris._validate_instance_deprecation)."""


_DETAILED_PROFILER = "DetailedProfilerProcessingJobConfig"


@dataclass(frozen=True)
class ImageRequest:
    """A request for an image.

    `version` is the framework's version. For Hugging Face it is the version of transformers, and `pytorch` or
    `tensorflow` is set, too.
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
    """AWS has no such image. `field` is the field to change; the message has its value and the allowed values."""

    def __init__(self, field: FieldName, message: str) -> None:
        super().__init__(message)
        self.field = field


def select_training_image(request: ImageRequest, facts: ImageFacts) -> str:
    """Return the URI of the training image. Raises `NoSuchImage`."""
    catalogue = _select_catalogue(request, facts)
    builds = catalogue.versions[_find_known_version(request, catalogue)]
    build, python = _select_build(request, builds)
    registry = _find_registry(build.registries, request.region, facts)
    processor = _check_processor(request, catalogue)
    _check_p2(request)
    return f"{registry}/{build.repository}:{_make_tag(request, build, catalogue, processor, python)}"


def select_rule_image(rule: str, region: str, facts: ImageFacts) -> str:
    """Return the image that evaluates a built-in rule. Raises `NoSuchImage` if the region has none.

    Selects as get_rule_container_image_uri in debugger/debugger.py does.
    """
    evaluator = facts.detailed_profiler if rule.startswith(_DETAILED_PROFILER) else facts.debugger
    return f"{_find_registry(evaluator.registries, region, facts)}/{evaluator.repository}:latest"


def get_processor(instance_type: str) -> Processor:
    """Return the processor of an instance type. Raises `NoSuchImage` for an invalid type."""
    name = parse_instance_family(instance_type)
    if not name:
        raise NoSuchImage(
            "instanceType", f"{instance_type!r}; an instance type of SageMaker is expected, such as ml.g5.2xlarge"
        )
    return next((processor for prefix, processor in _PROCESSORS if name.startswith(prefix)), "cpu")


_PROCESSORS: tuple[tuple[str, Processor], ...] = (("inf", "inf"), ("trn", "trn"), ("g", "gpu"), ("p", "gpu"))


def choose_image_instance_type(instance_types: Sequence[str]) -> str:
    """Return the instance type that determines the image of a job with instance groups.

    It is the first type with GPUs, or else the first type (estimator.EstimatorBase._get_instance_type).
    """
    return next((name for name in instance_types if get_processor(name) == "gpu"), instance_types[0])


def _select_catalogue(request: ImageRequest, facts: ImageFacts) -> Catalogue:
    if get_processor(request.instance_type) == "trn":
        return _select_neuron_catalogue(request, facts)
    if request.library == "ModelParallelV2":
        if request.framework != "PyTorch":
            message = (
                f"{request.framework} with modelParallel and torchDistributed; AWS has such images only for PyTorch"
            )
            raise NoSuchImage("name", message)
        return facts.pytorch_model_parallel
    if request.framework == "HuggingFace":
        return _select_hugging_face_catalogue(request, facts)
    return facts.pytorch if request.framework == "PyTorch" else facts.tensorflow


def _select_neuron_catalogue(request: ImageRequest, facts: ImageFacts) -> Catalogue:
    if request.framework == "PyTorch" and request.library == "None":
        return facts.pytorch_neuron
    library = "" if request.library == "None" else " with smdistributed or modelParallel"
    available = "only PyTorch images" if request.framework != "PyTorch" else "no images with these libraries"
    raise NoSuchImage(
        "name",
        f"{request.framework}{library} on {request.instance_type}; "
        f"for Trainium, AWS has {available}: set your own in spec.image",
    )


def _select_hugging_face_catalogue(request: ImageRequest, facts: ImageFacts) -> Catalogue:
    entry = facts.transformers_aliases.get(request.version, request.version)
    if entry not in facts.hugging_face:
        raise _make_unknown_value_error("version", request.version, facts.hugging_face)
    if bool(request.pytorch) == bool(request.tensorflow):
        result = "both" if request.pytorch else "neither"
        raise NoSuchImage("pytorchVersion", f"{result}; set either pytorchVersion or tensorflowVersion")
    # A tag contains both versions, either short (4.26 and 1.13) or in full (4.26.0 and 1.13.1).
    _, _, framework_version = _get_framework_version(request)
    if request.version.count(".") != framework_version.count("."):
        message = f"{request.version} and {framework_version}; write both in full (4.26.0 and 1.13.1) or both short"
        raise NoSuchImage("version", message)
    return facts.hugging_face[entry]


def _get_framework_version(request: ImageRequest) -> tuple[FieldName, str, str]:
    """Return the version of PyTorch or TensorFlow, with its field and its prefix in catalogues."""
    if request.pytorch:
        return "pytorchVersion", "pytorch", request.pytorch
    if request.tensorflow:
        return "tensorflowVersion", "tensorflow", request.tensorflow
    return "version", "", request.version


def _find_known_version(request: ImageRequest, catalogue: Catalogue) -> str:
    """Return the catalogue's full version for the requested version."""
    field, prefix, version = _get_framework_version(request)
    entry = catalogue.aliases.get(prefix + version, prefix + version)
    if entry in catalogue.versions:
        return entry
    if _has_single_image(catalogue):
        return next(iter(catalogue.versions))
    names = [name.removeprefix(prefix) for name in catalogue.versions if name.startswith(prefix)]
    raise _make_unknown_value_error(field, version, names)


def _has_single_image(catalogue: Catalogue) -> bool:
    # The SDK has a single image for Trainium, and uses it for every requested version.
    return catalogue.processors == ("trn",) and len(catalogue.versions) == 1


def _select_build(request: ImageRequest, builds: Sequence[Build]) -> tuple[Build, str]:
    """Return the build for the requested Python, and the version of Python."""
    pythons = [python for build in builds for python in build.pythons]
    python = request.python or (pythons[0] if len(pythons) == 1 else "")
    for build in builds:
        if python in build.pythons:
            return build, python
    raise _make_unknown_value_error("pythonVersion", request.python, pythons)


def _find_registry(registry_table_name: str, region: str, facts: ImageFacts) -> str:
    regions = facts.registries[registry_table_name]
    for account, account_regions in regions.items():
        if region in account_regions:
            return f"{account}.dkr.ecr.{region}.{_find_domain(region, facts)}"
    raise _make_unknown_value_error(
        "region", region, sorted(other for account_regions in regions.values() for other in account_regions)
    )


def _find_domain(region: str, facts: ImageFacts) -> str:
    return next(domain for domain, regions in facts.domains.items() if region in regions)


def _check_processor(request: ImageRequest, catalogue: Catalogue) -> str:
    processor = get_processor(request.instance_type)
    if processor not in catalogue.processors:
        allowed = " and ".join(_PROCESSOR_NAMES[name] for name in catalogue.processors)
        message = f"{request.instance_type}; AWS has these images for instances with {allowed} only"
        raise NoSuchImage("instanceType", message)
    return processor


_PROCESSOR_NAMES = {"cpu": "CPUs", "gpu": "GPUs", "trn": "Trainium"}


def _check_p2(request: ImageRequest) -> None:
    first_version = _FIRST_WITHOUT_P2.get(request.framework)
    if (
        first_version is None
        or request.library == "ModelParallelV2"
        or parse_instance_family(request.instance_type) != "p2"
    ):
        return
    if tuple(int(number) for number in request.version.split(".")) >= first_version:
        version = ".".join(str(number) for number in first_version)
        message = f"{request.instance_type}; from {request.framework} {version} on, p2 instances are not supported"
        raise NoSuchImage("instanceType", message)


def _make_tag(request: ImageRequest, build: Build, catalogue: Catalogue, processor: str, python: str) -> str:
    if processor == "trn":
        return _join(_get_version_in_tag(request, catalogue), "neuron", python, build.system)
    if request.framework == "HuggingFace":
        return _join(
            _get_framework_version(request)[2],
            f"transformers{request.version}",
            processor,
            python,
            build.system,
        )
    if request.library == "ModelParallelV2":
        return _join(request.version, processor, python, _get_cuda_version(request))
    tag = _join(request.version, processor, python, build.system)
    if request.library == "SMDistributed" or parse_instance_family(request.instance_type) == "p4d":
        return _join(tag, _CUDA_11_TAG_SUFFIXES.get(f"{request.framework.lower()}-{tag}", ""))
    return tag


def _get_version_in_tag(request: ImageRequest, catalogue: Catalogue) -> str:
    # A tag contains the requested version, which may be an alias.
    is_known = request.version in catalogue.aliases or request.version in catalogue.versions
    return request.version if is_known else next(iter(catalogue.versions))


def _get_cuda_version(request: ImageRequest) -> str:
    if _CUDA_124_VERSION in request.version:
        return "cu124"
    if "p5" in request.instance_type or any(version in request.version for version in _CUDA_121_VERSIONS):
        return "cu121"
    return "cu118"


def _join(*parts: str) -> str:
    return "-".join(part for part in parts if part)


def _make_unknown_value_error(field: FieldName, value: str, allowed_values: Iterable[str]) -> NoSuchImage:
    start = f"{value!r}; AWS has no such image" if value else "none; AWS has several images"
    return NoSuchImage(field, f"{start} for training: choose one of {', '.join(allowed_values)}")
