"""Copy a Python for the agent from the operator's image, with an init container, for images without Python."""

from muster.api.document import JSON
from muster.api.json_fields import mapping
from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import AGENT_IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.own_containers import AS_TRAINER, as_trainer, restricted
from muster.render.kubernetes.pod_patch import PodPatch, in_spec, in_trainer, spec_of
from muster.render.kubernetes.setting import Setting

_SOURCE = "spec.agent.inject"

PLACE = "/muster-python"
"""The Python's folder in the operator's image and in the pod: equal, because its loader has an absolute path."""

CONTAINER = "muster-python"

_PROGRAM = f"{PLACE}/bin/python3"
_COPY = "/muster-python-copy"


def program(job: Job) -> str:
    """The Python that runs the agent: the image's, found on PATH, or the copied one."""
    return _PROGRAM if uses_own_python(job) else "python3"


def brought(job: Job, pod: Fields, setting: Setting) -> tuple[PodPatch, ...]:
    """The init container for `pod`. Raises `NotRenderable` if the operator's image is unknown.

    It comes first: if it fails, no other init container has run, and the owner's sidecars, whose resources would add to
    its
    own, don't run yet.
    """
    if not uses_own_python(job):
        return ()
    if not setting.agent_image:
        message = (
            "InitContainer takes the agent's Python from the operator's image, and the operator wasn't told its name"
        )
        raise NotRenderable(
            Problem(AGENT_IMAGE_NOT_SET, f"{_SOURCE} {message}: start it with --agent-image (the chart does)")
        )
    container: Fields = {
        "name": CONTAINER,
        "image": setting.agent_image,
        "command": [_PROGRAM, "-I", f"{PLACE}/copy.py", _COPY],
        # The last line of output becomes the job's message if the container fails.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if setting.pull_policy:
        container["imagePullPolicy"] = setting.pull_policy
    return (
        _init(container, "the agent's own Python for an image without one; before your own init containers"),
        _init({"name": CONTAINER, "securityContext": _security(pod)}, "as restricted Pod Security wants it"),
        *_resources(pod),
    )


def mounted(job: Job) -> tuple[PodPatch, ...]:
    """The volume with the copied Python, and its mounts."""
    if not uses_own_python(job):
        return ()
    copied: list[JSON] = [{"name": CONTAINER, "mountPath": _COPY}]
    result: list[JSON] = [{"name": CONTAINER, "mountPath": PLACE, "readOnly": True}]
    return (
        PodPatch(
            in_spec({"volumes": [{"name": CONTAINER, "emptyDir": {}}]}), _SOURCE, "holds the agent's own Python, 20 MB"
        ),
        _init({"name": CONTAINER, "volumeMounts": copied}, "where it is copied to"),
        PodPatch(
            in_trainer({"volumeMounts": result}),
            _SOURCE,
            "where the agent's command finds it; nothing of yours uses it",
        ),
    )


def uses_own_python(job: Job) -> bool:
    """Whether the agent uses its own Python."""
    return job.spec.agent.inject == "InitContainer"


def _init(container: Fields, why: str) -> PodPatch:
    return PodPatch(in_spec({"initContainers": [container]}), _SOURCE, why)


def _security(pod: Fields) -> Fields:
    context = restricted()
    # Keep the pod's user, or else the image's, which is not root.
    if mapping(spec_of(pod).get("securityContext")).get("runAsUser") != 0:
        context["runAsNonRoot"] = True
    return context


def _resources(pod: Fields) -> tuple[PodPatch, ...]:
    resources = as_trainer(pod)
    return (_init({"name": CONTAINER, "resources": resources}, AS_TRAINER),) if resources else ()
