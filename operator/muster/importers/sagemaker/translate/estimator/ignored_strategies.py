"""Remove the strategies and settings of a distribution that the SDK ignores, with a warning. Pure.

The SDK also validates strategies that it ignores. Keep strategies that the SDK rejects, so that muster rejects the job.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.spec.sagemaker.strategies import STRATEGY_FIELDS, select_effective_strategies
from muster.api.spec.sagemaker.support import DATA_PARALLEL_VERSIONS, is_trainium
from muster.importers.sagemaker.translate.arguments import Problems

_CONDITIONAL_OPTIONS = {
    "pytorchDdp": "customMpiOptions",
    "dataParallel": "customMpiOptions",
    "modelParallel": "parameters",
}
"""The settings that the SDK reads only if their strategy is enabled."""


def remove_ignored_strategies(
    toolkit: Mapping[str, JSON],
    sagemaker_fields: Mapping[str, JSON],
    image: str | None,
    location: str,
    problems: Problems,
) -> dict[str, JSON]:
    """Return the distribution without the strategies and settings that the SDK ignores.

    `sagemaker_fields` has the framework and the instances; `image` is the user's image.
    """
    framework = sagemaker_fields.get("framework")
    if not isinstance(framework, dict) or is_trainium(str(sagemaker_fields.get("instanceType"))):
        return {**toolkit}
    estimator = str(framework["name"])
    remaining = {
        name: _remove_ignored_options(estimator, name, settings, location, problems)
        for name, settings in toolkit.items()
    }
    configured_strategies = frozenset(name for name in toolkit if name in STRATEGY_FIELDS)
    enabled_strategies = frozenset(name for name in configured_strategies if _is_enabled(toolkit[name]))
    for name in sorted(
        configured_strategies - select_effective_strategies(estimator, configured_strategies, enabled_strategies)
    ):
        if name not in enabled_strategies or image is not None or not _is_rejected(name, framework):
            conflicts = "".join(
                f" with {other}"
                for other in sorted(
                    enabled_strategies
                    & select_effective_strategies(estimator, configured_strategies, enabled_strategies)
                )
            )
            problems.warn(location, f"muster ignores {name}{conflicts}, as the SDK does")
            del remaining[name]
    return remaining


def _remove_ignored_options(estimator: str, name: str, settings: JSON, location: str, problems: Problems) -> JSON:
    option = _CONDITIONAL_OPTIONS.get(name)
    if not isinstance(settings, dict) or option not in settings:
        return settings
    # Hugging Face's estimator does not read the options of pytorchDdp.
    if _is_enabled(settings) and (estimator, name) != ("HuggingFace", "pytorchDdp"):
        return settings
    problems.warn(location, f"muster ignores {option} of {name}, as the SDK does")
    return {key: value for key, value in settings.items() if key != option}


def _is_enabled(settings: JSON) -> bool:
    return isinstance(settings, dict) and settings.get("enabled") is True


def _is_rejected(name: str, framework: Mapping[str, JSON]) -> bool:
    """Whether the SDK's Hugging Face estimator rejects the strategy, because SageMaker has no image for it."""
    if name == "dataParallel":
        base_versions = {"PyTorch": framework.get("pytorchVersion"), "TensorFlow": framework.get("tensorflowVersion")}
        return not any(
            version in DATA_PARALLEL_VERSIONS[framework_name] for framework_name, version in base_versions.items()
        )
    return name == "modelParallel"
