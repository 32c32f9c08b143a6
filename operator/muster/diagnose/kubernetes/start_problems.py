"""Find out why container `trainer` of a scheduled pod can't start. Pure.

Causes are its image, missing Secrets and ConfigMaps, volumes, the sandbox or the command.
"""

import re
from collections.abc import Iterator

from muster.core.failure.problems import FETCHING_FILES
from muster.core.problem import Problem
from muster.diagnose.kubernetes.quoting import find_innermost_error, quote
from muster.objects.kubernetes.containers import Container, Running, Terminated, Waiting
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import (
    ATTACH_REASONS,
    MOUNT_REASONS,
    SANDBOX_REASONS,
    PodWarning,
    find_latest_message,
)
from muster.render.kubernetes import own_python, storage
from muster_worker.contract.schema import UNUSABLE_PYTHON

IMAGE_NOT_FOUND = "ImageNotFound"
IMAGE_PULL_FAILED = "ImagePullFailed"
INVALID_IMAGE_NAME = "InvalidImageName"
CONFIG_MISSING = "ConfigMissing"
VOLUME_NOT_MOUNTED = "VolumeNotMounted"
SANDBOX_FAILED = "SandboxFailed"
AGENT_NEEDS_PYTHON = "AgentNeedsPython"
CONTAINER_NOT_STARTED = "ContainerNotStarted"

PROBLEMS_BEFORE_START = frozenset(
    (
        IMAGE_NOT_FOUND,
        IMAGE_PULL_FAILED,
        INVALID_IMAGE_NAME,
        CONFIG_MISSING,
        VOLUME_NOT_MOUNTED,
        SANDBOX_FAILED,
        CONTAINER_NOT_STARTED,
    )
)
"""The problems that are over once `trainer` runs. The pod's status may still contain them."""

_PULL_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "RegistryUnavailable",
    "SignatureValidationFailed",
)
_CREATION_REASONS = ("CreateContainerConfigError", "CreateContainerError", "ImageInspectError", "PreCreateHookError")
_START_REASONS = ("StartError", "RunContainerError", "ContainerCannotRun", "PostStartHookError", "PreStartHookError")

_NO_SUCH_IMAGE = re.compile(r"not found|manifest unknown|NotFound|does not exist", re.IGNORECASE)
_ACCESS_DENIED = re.compile(
    r"unauthorized|denied|forbidden|authentication required|insufficient_scope|no basic auth", re.IGNORECASE
)
_MISSING_OBJECT = re.compile(r'\b(secret|configmap) "([^"]{1,253})" not found', re.IGNORECASE)
_MISSING_KEY = re.compile(r"couldn't find key (\S{1,253}) in (Secret|ConfigMap) \S*?/?([\w.-]{1,253})$")
_MISSING_FILE = re.compile(r"references non-existent (secret|config) key: (\S{1,253})")
_VOLUME = re.compile(r'for volume "([^"]{1,253})"')
_OUTPUT = re.compile(r"Output: ([^\n]{1,1000})")
_NO_PYTHON = re.compile(
    # These are messages of runc and crun.
    r'"python3": (?:executable file not found|stat python3|no such file)|executable file `python3` not found'
)
_KINDS = {"secret": "Secret", "configmap": "ConfigMap", "config": "ConfigMap"}


def find_missing_image(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem of an image that can't be pulled."""
    for container, waiting in _list_waiting_containers(pod):
        image = quote(container.image, 200)
        if waiting.reason == "InvalidImageName":
            return Problem(INVALID_IMAGE_NAME, f"{image!r} is not an image name: correct {_get_image_field(container)}")
        if waiting.reason == "ErrImageNeverPull":
            text = f"image {image} is not on {pod.kube_node}, and imagePullPolicy is Never: load it there"
            return Problem(IMAGE_NOT_FOUND, text)
        if waiting.reason in _PULL_REASONS:
            return _build_pull_problem(container, image, waiting.message)
    return None


def _build_pull_problem(container: Container, image: str, message: str) -> Problem:
    # Some registries deny access to images that don't exist.
    is_denied, is_missing = _ACCESS_DENIED.search(message), _NO_SUCH_IMAGE.search(message)
    if is_denied:
        why = "the registry denies it: set a secret for it in spec.template.spec.imagePullSecrets"
        if is_missing:
            why = f"it doesn't exist, or {why}"
        return Problem(IMAGE_NOT_FOUND if is_missing else IMAGE_PULL_FAILED, f"image {image} can't be fetched; {why}")
    if is_missing:
        return Problem(IMAGE_NOT_FOUND, f"image {image} doesn't exist: correct {_get_image_field(container)}")
    cause = find_innermost_error(message) or "the registry gives no reason yet"
    return Problem(IMAGE_PULL_FAILED, f"image {image} can't be fetched: {cause}")


def find_missing_config(pod: PodView, warnings: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem that a Secret, a ConfigMap or a key in it is missing."""
    for container, waiting in _list_waiting_containers(pod):
        missing = (
            _describe_missing_object(pod, waiting.message) if waiting.reason == "CreateContainerConfigError" else None
        )
        if missing is not None:
            return _build_missing_problem(missing, f"container {container.name} reads a variable from it")
    message = find_latest_message(warnings, MOUNT_REASONS) if not _has_sandbox(pod) else ""
    missing = _describe_missing_object(pod, message)
    return None if missing is None else _build_missing_problem(missing, f"volume {_find_volume(message)} contains it")


def _build_missing_problem(sentence: str, use: str) -> Problem:
    return Problem(CONFIG_MISSING, f"{sentence}, and {use}: create it")


def _describe_missing_object(pod: PodView, message: str) -> str | None:
    object_match = _MISSING_OBJECT.search(message)
    if object_match is not None:
        kind, name = _KINDS[object_match.group(1).lower()], object_match.group(2)
        return f"{kind} {name} doesn't exist in namespace {pod.namespace}"
    key = _MISSING_KEY.search(message)
    if key is not None:
        return f"{key.group(2)} {key.group(3)} has no key {key.group(1)}"
    file = _MISSING_FILE.search(message)
    return None if file is None else f"{_KINDS[file.group(1)]} has no key {file.group(2)}"


def find_mount_failure(pod: PodView, warnings: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem that a volume can't be attached or mounted."""
    message = find_latest_message(warnings, (*MOUNT_REASONS, *ATTACH_REASONS))
    if not message or _has_sandbox(pod):
        return None
    # In the message, the output of a mount program follows its command line.
    output = _OUTPUT.search(message)
    why = output.group(1) if output is not None else re.sub(r"^.*?for volume \"[^\"]*\" ?:? ?", "", message, count=1)
    text = f"volume {_find_volume(message)} can't be mounted on {pod.kube_node}: {_remove_paths(why)}"
    return Problem(VOLUME_NOT_MOUNTED, quote(text))


def find_sandbox_failure(pod: PodView, warnings: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem that the kubelet can't set up the pod's network or sandbox."""
    message = find_latest_message(warnings, SANDBOX_REASONS)
    if not message or _has_sandbox(pod):
        return None
    return Problem(SANDBOX_FAILED, f"{pod.kube_node} can't set up the pod: {find_innermost_error(message)}")


def find_creation_failure(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem that the container runtime can't create a container."""
    for container, waiting in _list_waiting_containers(pod):
        if waiting.reason in _CREATION_REASONS:
            return Problem(CONTAINER_NOT_STARTED, f"container {container.name}: {quote(waiting.message)}")
    return None


def find_unusable_python(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem that the image's Python can't run the agent, as the agent reports."""
    state = pod.trainer.state
    if not isinstance(state, Terminated) or not state.message.startswith(UNUSABLE_PYTHON):
        return None
    why = quote(state.message.removeprefix(UNUSABLE_PYTHON), 100)
    python_image = next(
        (container for container in pod.init_containers if container.name == own_python.CONTAINER), None
    )
    if python_image is None:
        return _build_python_problem(pod, f"has a python3 that can't run muster's agent: {why}")
    text = f"the Python from image {quote(python_image.image, 200)} can't run muster's agent: {why}"
    return Problem(AGENT_NEEDS_PYTHON, f"{text}: {_get_image_field(python_image)} has to be of the operator's version")


def find_running_download(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return the problem that the init container still downloads code, data or checkpoints."""
    download = next((container for container in pod.init_containers if container.name == storage.DOWNLOAD), None)
    if download is None or not isinstance(download.state, Running):
        return None
    log = f"`kubectl logs {pod.name} -c {storage.DOWNLOAD}` shows the progress"
    return Problem(FETCHING_FILES, f"code, data and checkpoints are being downloaded; {log}")


def find_start_failure(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return why the container runtime could not start the agent. The usual cause is an image without Python."""
    state = pod.trainer.state
    if not isinstance(state, Terminated | Waiting) or state.reason not in _START_REASONS:
        return None
    if _NO_PYTHON.search(state.message):
        return _build_python_problem(pod, "has no python3, which muster's agent needs")
    return Problem(
        CONTAINER_NOT_STARTED,
        f"container {pod.trainer.name} could not be started: {find_innermost_error(state.message)}",
    )


def _build_python_problem(pod: PodView, deficiency: str) -> Problem:
    remedy = "set spec.agent.inject to InitContainer, which provides Python, or use an image with Python 3.8 or later"
    return Problem(AGENT_NEEDS_PYTHON, f"image {quote(pod.trainer.image, 200)} {deficiency}: {remedy}")


def _list_waiting_containers(pod: PodView) -> Iterator[tuple[Container, Waiting]]:
    for container in (*pod.init_containers, pod.trainer, *pod.other_containers):
        if isinstance(container.state, Waiting):
            yield container, container.state


def _has_sandbox(pod: PodView) -> bool:
    """Whether the volumes and the sandbox are ready. Then earlier warnings about them are outdated."""
    ready = pod.find_condition("PodReadyToStartContainers")
    return bool(pod.ip) or (ready is not None and ready.is_true)


def _find_volume(message: str) -> str:
    match = _VOLUME.search(message)
    return "" if match is None else match.group(1)


def _remove_paths(text: str) -> str:
    return re.sub(r"/var/lib/kubelet/\S+: ", "", text)


def _get_image_field(container: Container) -> str:
    if container.name in storage.CONTAINERS:
        return "the operator's --storage-image (the chart's storage.image, or the one in spec.template)"
    if container.name == own_python.CONTAINER:
        return "the operator's --agent-image (the chart's agent.image, or the one in spec.template)"
    return "spec.image" if container.name == "trainer" else f"the image of container {container.name} in spec.template"
