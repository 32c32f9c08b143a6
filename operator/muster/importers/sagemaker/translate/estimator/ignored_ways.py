"""Leave out the parts of a distribution that the SDK ignores, with a warning. Pure.

The SDK validates before it ignores: parts that it rejects stay, so that muster rejects the job, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.spec.sagemaker.support import DATA_PARALLEL_VERSIONS, is_trainium
from muster.api.spec.sagemaker.ways import FIELDS, effective_ways
from muster.importers.sagemaker.translate.reading import Problems

_OPTIONS = {"pytorchDdp": "customMpiOptions", "dataParallel": "customMpiOptions", "modelParallel": "parameters"}
"""The settings that the SDK reads only if their distribution is enabled."""


def without_ignored(
    toolkit: Mapping[str, JSON], block: Mapping[str, JSON], image: str | None, where: str, problems: Problems
) -> dict[str, JSON]:
    """Return the distribution without the ignored parts.

    `block` has framework and instances, `image` is the user's own.
    """
    framework = block.get("framework")
    if not isinstance(framework, dict) or is_trainium(str(block.get("instanceType"))):
        return {**toolkit}
    estimator = str(framework["name"])
    kept = {name: _with_options(estimator, name, settings, where, problems) for name, settings in toolkit.items()}
    said = frozenset(name for name in toolkit if name in FIELDS)
    on = frozenset(name for name in said if _is_on(toolkit[name]))
    for name in sorted(said - effective_ways(estimator, said, on)):
        if name not in on or image is not None or not _is_refused(name, framework):
            beside = "".join(f" beside {other}" for other in sorted(on & effective_ways(estimator, said, on)))
            problems.warn(where, f"{name} is ignored{beside}, as by the SDK")
            del kept[name]
    return kept


def _with_options(estimator: str, name: str, settings: JSON, where: str, problems: Problems) -> JSON:
    option = _OPTIONS.get(name)
    if not isinstance(settings, dict) or option not in settings:
        return settings
    # Hugging Face's estimator does not read these.
    if _is_on(settings) and (estimator, name) != ("HuggingFace", "pytorchDdp"):
        return settings
    problems.warn(where, f"{option} of {name} are ignored, as by the SDK")
    return {key: value for key, value in settings.items() if key != option}


def _is_on(settings: JSON) -> bool:
    return isinstance(settings, dict) and settings.get("enabled") is True


def _is_refused(name: str, framework: Mapping[str, JSON]) -> bool:
    """Whether SageMaker has no image for it, which the SDK checks first; for Hugging Face's estimator."""
    if name == "dataParallel":
        beneath = {"PyTorch": framework.get("pytorchVersion"), "TensorFlow": framework.get("tensorflowVersion")}
        return not any(version in DATA_PARALLEL_VERSIONS[trains] for trains, version in beneath.items())
    return name == "modelParallel"
