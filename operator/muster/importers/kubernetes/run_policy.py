"""Read runPolicy of Kubeflow's jobs. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.restarts import RestartLimit

_CLEAN_POD_POLICIES = ("Running", "All", "None")


@dataclass(frozen=True)
class RunPolicy:
    """The fields that depend on others: the limit of restarts, and whether the job is suspended."""

    fields: Fields
    backoff_limit: RestartLimit | None
    suspend: bool | None


def read_run_policy(spec: Fields, draft: Draft, controllers: tuple[str, ...]) -> RunPolicy:
    """Read the policy. `controllers` are the values of managedBy that mean the operator itself."""
    fields = spec.take_fields("runPolicy")
    set_clean_pod_policy(fields, draft)
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds"):
        copy_integer(fields, name, draft)
    check_manager(fields, controllers)
    return RunPolicy(fields, read_limit(fields, "backoffLimit"), fields.take_boolean("suspend"))


def set_clean_pod_policy(fields: Fields, draft: Draft) -> None:
    """Read cleanPodPolicy, which has the same values in muster."""
    policy = fields.take_choice("cleanPodPolicy", _CLEAN_POD_POLICIES)
    if policy is not None:
        draft.set("cleanPodPolicy", policy, fields.locate("cleanPodPolicy"))


def copy_integer(fields: Fields, name: str, draft: Draft) -> None:
    """Read a number that has the same name and meaning in muster."""
    draft.set(name, fields.take_integer(name), fields.locate(name))


def read_limit(fields: Fields, name: str) -> RestartLimit | None:
    """Read a number of retries."""
    count = fields.take_integer(name)
    return None if count is None else RestartLimit(count, fields.locate(name))


def check_manager(fields: Fields, controllers: tuple[str, ...]) -> None:
    """Read managedBy."""
    manager = fields.take_text("managedBy")
    if manager in controllers:
        fields.report.note(fields.locate("managedBy"), "muster runs the imported job")
    elif manager is not None:
        fields.report.add(
            fields.locate("managedBy"), f"found {manager}; only muster's operator runs its jobs: remove the field"
        )
