"""Add an init container that copies a Python for the agent into the pod, for images without Python."""

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.core.problem import Problem
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.muster_containers import (
    SAME_RESOURCES_REASON,
    get_trainer_resources,
    make_restricted_security_context,
)
from muster.render.kubernetes.not_renderable import AGENT_IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.pod_patch import PodPatch, get_pod_spec, wrap_in_spec, wrap_in_trainer
from muster.render.kubernetes.pod_settings import PodSettings

_SOURCE = "spec.agent.inject"

PYTHON_FOLDER = "/muster-python"
"""The folder of this Python, in the operator's image and in the pod: its files contain the absolute path."""

CONTAINER = "muster-python"

_PROGRAM = f"{PYTHON_FOLDER}/bin/python3"
_COPY = "/muster-python-copy"


def get_agent_python(job: Job) -> str:
    """Return the Python that runs the agent: the image's Python on PATH, or the copied Python."""
    return _PROGRAM if uses_own_python(job) else "python3"


def make_python_container_patches(job: Job, pod: Fields, pod_settings: PodSettings) -> tuple[PodPatch, ...]:
    """Return the init container for `pod`. Raises `NotRenderable` if the operator's image is unknown.

    It is the first init container, so that no other container has run if it fails. It runs before the job's sidecars,
    so Kubernetes doesn't add their requests to its own.
    """
    if not uses_own_python(job):
        return ()
    if not pod_settings.agent_image:
        message = "is InitContainer, but the operator doesn't know its own image"
        remedy = "start the operator with --agent-image (the chart does)"
        raise NotRenderable(Problem(AGENT_IMAGE_NOT_SET, f"{_SOURCE} {message}: {remedy}"))
    container: Fields = {
        "name": CONTAINER,
        "image": pod_settings.agent_image,
        "command": [_PROGRAM, "-I", f"{PYTHON_FOLDER}/copy.py", _COPY],
        # The last line of output becomes the job's message if the container fails.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if pod_settings.pull_policy:
        container["imagePullPolicy"] = pod_settings.pull_policy
    return (
        _make_init_container_patch(
            container, "copies the agent's own Python, for images without Python; before your own init containers"
        ),
        _make_init_container_patch(
            {"name": CONTAINER, "securityContext": _make_security_context(pod)}, "for the restricted Pod Security level"
        ),
        *_make_resource_patches(pod),
    )


def make_python_mount_patches(job: Job) -> tuple[PodPatch, ...]:
    """Return the volume with the copied Python, and its mounts."""
    if not uses_own_python(job):
        return ()
    copy_mounts: list[JSON] = [{"name": CONTAINER, "mountPath": _COPY}]
    trainer_mounts: list[JSON] = [{"name": CONTAINER, "mountPath": PYTHON_FOLDER, "readOnly": True}]
    return (
        PodPatch(
            wrap_in_spec({"volumes": [{"name": CONTAINER, "emptyDir": {}}]}),
            _SOURCE,
            "contains the agent's own Python, 20 MB",
        ),
        _make_init_container_patch({"name": CONTAINER, "volumeMounts": copy_mounts}, "the target of the copy"),
        PodPatch(
            wrap_in_trainer({"volumeMounts": trainer_mounts}),
            _SOURCE,
            "the folder of the agent's Python; only the agent uses it",
        ),
    )


def uses_own_python(job: Job) -> bool:
    """Whether the agent uses the copied Python."""
    return job.spec.agent.inject == "InitContainer"


def _make_init_container_patch(container: Fields, reason: str) -> PodPatch:
    return PodPatch(wrap_in_spec({"initContainers": [container]}), _SOURCE, reason)


def _make_security_context(pod: Fields) -> Fields:
    context = make_restricted_security_context()
    # If the pod has no user, the operator's image runs as its own user, which is not root.
    if read_mapping(get_pod_spec(pod).get("securityContext")).get("runAsUser") != 0:
        context["runAsNonRoot"] = True
    return context


def _make_resource_patches(pod: Fields) -> tuple[PodPatch, ...]:
    resources = get_trainer_resources(pod)
    return (
        (_make_init_container_patch({"name": CONTAINER, "resources": resources}, SAME_RESOURCES_REASON),)
        if resources
        else ()
    )
