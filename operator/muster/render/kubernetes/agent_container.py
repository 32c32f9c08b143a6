"""Add the agent's command and folders to the ranks' container."""

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.core.world import uploads_to_s3
from muster.objects.kubernetes.names import ARCHIVE_KEY, PLAN_KEY, build_children_name
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.opt_ml import ROOT
from muster.render.kubernetes.own_python import get_agent_python, make_python_mount_patches, uses_own_python
from muster.render.kubernetes.pod_patch import (
    MUSTER,
    PodPatch,
    get_pod_spec,
    get_trainer,
    wrap_in_spec,
    wrap_in_trainer,
)
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.storage import SYNC_SOCKET
from muster_worker.contract.schema import TOKEN_AUDIENCE

AGENT_FOLDER = "/muster"
"""The folder with the agent, its plan and its token."""

RUN_FOLDER = "/muster-run"
"""The folder for the agent's sockets and for files shared with the ranks."""

DEFAULT_GRACE_SECONDS = 30
"""Kubernetes' default terminationGracePeriodSeconds."""

LAST_REPORT_SECONDS = 5
"""An agent kills its ranks this long before the end of the grace period, so that it can still report their end."""

_TERMINATION_LOG = "/dev/termination-log"
_TOKEN_SECONDS = 3600


def make_agent_patches(
    job: Job, node: int, replacement: int, user_fields: Fields, pod_settings: PodSettings
) -> tuple[PodPatch, ...]:
    """Return the patches that run the agent. `user_fields` are the pod fields that the job sets."""
    command: list[JSON] = list(make_agent_command(get_agent_python(job), node, replacement, user_fields))
    if uploads_to_s3(job):
        command += ["--sync", SYNC_SOCKET]
    needs = "has a Python of its own" if uses_own_python(job) else "needs any Python 3.8 or newer"
    return (
        PodPatch(
            wrap_in_trainer({"command": command}),
            MUSTER,
            f"the agent starts your command, reports the state of each rank, and {needs}",
        ),
        *_make_agent_file_patches(job, pod_settings),
        *_make_run_folder_patches(),
        *make_python_mount_patches(job),
    )


def make_agent_command(python: str, node: int, replacement: int, user_fields: Fields) -> tuple[str, ...]:
    """Return the command line of a node's agent."""
    return (
        # -I isolates the agent from the image's environment variables and working directory.
        *(python, "-I", f"{AGENT_FOLDER}/{ARCHIVE_KEY}", "node"),
        *("--plan", f"{AGENT_FOLDER}/{PLAN_KEY}"),
        *("--node", str(node)),
        *("--replacement", str(replacement)),
        *("--token", f"{AGENT_FOLDER}/token"),
        *("--root", ROOT),
        *("--run", RUN_FOLDER),
        *("--termination-log", _get_termination_log(user_fields)),
        *("--grace-seconds", str(_get_grace_seconds(user_fields))),
    )


def _get_termination_log(user_fields: Fields) -> str:
    path = get_trainer(user_fields).get("terminationMessagePath")
    return path if isinstance(path, str) and path else _TERMINATION_LOG


def _get_grace_seconds(user_fields: Fields) -> int:
    seconds = get_pod_spec(user_fields).get("terminationGracePeriodSeconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        seconds = DEFAULT_GRACE_SECONDS
    return get_rank_grace_seconds(seconds)


def get_rank_grace_seconds(pod_seconds: int) -> int:
    """Return the ranks' time between SIGTERM and SIGKILL, in a pod with this grace period."""
    return max(0, pod_seconds - LAST_REPORT_SECONDS)


def _make_agent_file_patches(job: Job, pod_settings: PodSettings) -> tuple[PodPatch, ...]:
    token: Fields = {"audience": TOKEN_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    sources: list[JSON] = [
        _make_file_source(build_children_name(job.metadata.name), PLAN_KEY),
        _make_file_source(pod_settings.agent_config_map, ARCHIVE_KEY),
        {"serviceAccountToken": token},
    ]
    return (
        PodPatch(
            wrap_in_spec({"volumes": [{"name": "muster", "projected": {"sources": sources}}]}),
            MUSTER,
            "the agent, its plan, and the token with which the pod authenticates to the operator",
        ),
        PodPatch(
            wrap_in_trainer({"volumeMounts": [{"name": "muster", "mountPath": AGENT_FOLDER, "readOnly": True}]}),
            MUSTER,
            "the folder with the agent's files",
        ),
    )


def _make_file_source(config_map: str, key: str) -> Fields:
    return {"configMap": {"name": config_map, "items": [{"key": key, "path": key}]}}


def _make_run_folder_patches() -> tuple[PodPatch, ...]:
    return (
        PodPatch(
            wrap_in_spec({"volumes": [{"name": "muster-run", "emptyDir": {"medium": "Memory"}}]}),
            MUSTER,
            "the agent's sockets and the ranks' step counts; in memory, because ranks write at every step",
        ),
        PodPatch(
            wrap_in_trainer({"volumeMounts": [{"name": "muster-run", "mountPath": RUN_FOLDER}]}),
            MUSTER,
            "a writable folder, even if the root file system is read-only",
        ),
    )
