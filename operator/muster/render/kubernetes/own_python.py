"""The Python that an agent brings into an image without one: an init container copies it out of the operator's."""

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
"""Where it lies in the operator's image and in the pod: the same place, for its loader is found by one path."""

CONTAINER = "muster-python"

_PROGRAM = f"{PLACE}/bin/python3"
_COPY = "/muster-python-copy"


def program(job: Job) -> str:
    """The Python that runs the agent: the image's, found on its PATH, or the one that is brought along."""
    return _PROGRAM if is_brought(job) else "python3"


def brought(job: Job, pod: Fields, setting: Setting) -> tuple[PodPatch, ...]:
    """What brings it into `pod`, as it is without that. Raises `NotRenderable` when the image is unknown.

    It stands first: should it fail, nobody has waited for the owner's own init containers, and no sidecar of theirs
    runs beside it yet, whose share of the machine would be added to its own.
    """
    if not is_brought(job):
        return ()
    if not setting.agent_image:
        words = (
            "InitContainer takes the agent's Python from the operator's image, and the operator wasn't told its name"
        )
        raise NotRenderable(
            Problem(AGENT_IMAGE_NOT_SET, f"{_SOURCE} {words}: start it with --agent-image (the chart does)")
        )
    container: Fields = {
        "name": CONTAINER,
        "image": setting.agent_image,
        "command": [_PROGRAM, "-I", f"{PLACE}/copy.py", _COPY],
        # what it says when it fails becomes the job's message
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
    """The volume that it is copied into, and where the ranks' container finds it."""
    if not is_brought(job):
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


def is_brought(job: Job) -> bool:
    """Whether the agent comes with its own Python."""
    return job.spec.agent.inject == "InitContainer"


def _init(container: Fields, why: str) -> PodPatch:
    return PodPatch(in_spec({"initContainers": [container]}), _SOURCE, why)


def _security(pod: Fields) -> Fields:
    context = restricted()
    # who it runs as is the pod's affair, else the image's, which names a user that isn't root
    if mapping(spec_of(pod).get("securityContext")).get("runAsUser") != 0:
        context["runAsNonRoot"] = True
    return context


def _resources(pod: Fields) -> tuple[PodPatch, ...]:
    same = as_trainer(pod)
    return (_init({"name": CONTAINER, "resources": same}, AS_TRAINER),) if same else ()
