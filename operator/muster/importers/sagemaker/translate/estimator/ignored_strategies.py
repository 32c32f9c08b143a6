"""Remove the parts of a distribution that the SDK ignores, with a warning. Pure.

The SDK validates ignored parts too: those that it rejects remain, so that muster rejects the job.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.spec.sagemaker.strategies import FIELDS, effective_strategies
from muster.api.spec.sagemaker.support import DATA_PARALLEL_VERSIONS, is_trainium
from muster.importers.sagemaker.translate.arguments import Problems

_OPTIONS = {"pytorchDdp": "customMpiOptions", "dataParallel": "customMpiOptions", "modelParallel": "parameters"}
"""The settings that the SDK reads only if their distribution is enabled."""


def remove_ignored_strategies(
    toolkit: Mapping[str, JSON], block: Mapping[str, JSON], image: str | None, where: str, problems: Problems
) -> dict[str, JSON]:
    """Return the distribution without the ignored parts.

    `block` has framework and instances, `image` is the user's image.
    """
    framework = block.get("framework")
    if not isinstance(framework, dict) or is_trainium(str(block.get("instanceType"))):
        return {**toolkit}
    estimator = str(framework["name"])
    remaining = {
        name: _remove_ignored_options(estimator, name, settings, where, problems) for name, settings in toolkit.items()
    }
    configured = frozenset(name for name in toolkit if name in FIELDS)
    enabled = frozenset(name for name in configured if _is_enabled(toolkit[name]))
    for name in sorted(configured - effective_strategies(estimator, configured, enabled)):
        if name not in enabled or image is not None or not _is_rejected(name, framework):
            conflicts = "".join(
                f" beside {other}" for other in sorted(enabled & effective_strategies(estimator, configured, enabled))
            )
            problems.warn(where, f"{name} is ignored{conflicts}, as by the SDK")
            del remaining[name]
    return remaining


def _remove_ignored_options(estimator: str, name: str, settings: JSON, where: str, problems: Problems) -> JSON:
    option = _OPTIONS.get(name)
    if not isinstance(settings, dict) or option not in settings:
        return settings
    # Hugging Face's estimator does not read these.
    if _is_enabled(settings) and (estimator, name) != ("HuggingFace", "pytorchDdp"):
        return settings
    problems.warn(where, f"{option} of {name} are ignored, as by the SDK")
    return {key: value for key, value in settings.items() if key != option}


def _is_enabled(settings: JSON) -> bool:
    return isinstance(settings, dict) and settings.get("enabled") is True


def _is_rejected(name: str, framework: Mapping[str, JSON]) -> bool:
    """Whether the SDK rejects a strategy of Hugging Face's estimator, because SageMaker has no image for it."""
    if name == "dataParallel":
        base_versions = {"PyTorch": framework.get("pytorchVersion"), "TensorFlow": framework.get("tensorflowVersion")}
        return not any(version in DATA_PARALLEL_VERSIONS[trains] for trains, version in base_versions.items())
    return name == "modelParallel"
