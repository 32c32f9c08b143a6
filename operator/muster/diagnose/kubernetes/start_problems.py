"""What keeps a placed pod's container `trainer` from beginning: image, references, volumes, sandbox, command. Pure."""

import re
from collections.abc import Iterator

from muster.core.facts import Problem
from muster.core.failure.problems import FETCHING_FILES
from muster.diagnose.kubernetes.quoting import innermost, quote
from muster.objects.kubernetes.containers import Container, Running, Terminated, Waiting
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import ATTACH, MOUNT, SANDBOX, Warned, latest
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

OVERCOME = frozenset(
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
"""What a trainer that has begun is past, whatever is still said of its pod."""

_PULLS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable", "SignatureValidationFailed")
_CREATIONS = ("CreateContainerConfigError", "CreateContainerError", "ImageInspectError", "PreCreateHookError")
_STARTS = ("StartError", "RunContainerError", "ContainerCannotRun", "PostStartHookError", "PreStartHookError")

_NO_SUCH_IMAGE = re.compile(r"not found|manifest unknown|NotFound|does not exist", re.IGNORECASE)
_NOT_ALLOWED = re.compile(
    r"unauthorized|denied|forbidden|authentication required|insufficient_scope|no basic auth", re.IGNORECASE
)
_LACKS_OBJECT = re.compile(r'\b(secret|configmap) "([^"]{1,253})" not found', re.IGNORECASE)
_LACKS_KEY = re.compile(r"couldn't find key (\S{1,253}) in (Secret|ConfigMap) \S*?/?([\w.-]{1,253})$")
_LACKS_FILE = re.compile(r"references non-existent (secret|config) key: (\S{1,253})")
_VOLUME = re.compile(r'for volume "([^"]{1,253})"')
_OUTPUT = re.compile(r"Output: ([^\n]{1,1000})")
_NO_PYTHON = re.compile(
    # runc's words, and crun's
    r'"python3": (?:executable file not found|stat python3|no such file)|executable file `python3` not found'
)
_WRITTEN = {"secret": "Secret", "configmap": "ConfigMap", "config": "ConfigMap"}


def image_missing(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """An image that can't be fetched."""
    for container, waiting in _waiting(pod):
        image = quote(container.image, 200)
        if waiting.reason == "InvalidImageName":
            return Problem(INVALID_IMAGE_NAME, f"{image!r} is no image's name: correct {_field(container)}")
        if waiting.reason == "ErrImageNeverPull":
            words = (
                f"image {image} is not on {pod.machine}, and imagePullPolicy Never forbids fetching it: load it there"
            )
            return Problem(IMAGE_NOT_FOUND, words)
        if waiting.reason in _PULLS:
            return _unfetched(container, image, waiting.message)
    return None


def _unfetched(container: Container, image: str, message: str) -> Problem:
    # Of an image that doesn't exist some registries say only that this user may not see it.
    denied, absent = _NOT_ALLOWED.search(message), _NO_SUCH_IMAGE.search(message)
    if denied:
        why = "the registry denies it: name a secret for it in spec.template.spec.imagePullSecrets"
        if absent:
            why = f"it doesn't exist, or {why}"
        return Problem(IMAGE_NOT_FOUND if absent else IMAGE_PULL_FAILED, f"image {image} can't be fetched; {why}")
    if absent:
        return Problem(IMAGE_NOT_FOUND, f"image {image} doesn't exist: correct {_field(container)}")
    words = innermost(message) or "the registry gives no reason yet"
    return Problem(IMAGE_PULL_FAILED, f"image {image} can't be fetched: {words}")


def config_missing(pod: PodView, warnings: tuple[Warned, ...]) -> Problem | None:
    """A Secret or ConfigMap, or a key of it, that isn't there: for a variable or for a volume."""
    for container, waiting in _waiting(pod):
        absent = _absent(pod, waiting.message) if waiting.reason == "CreateContainerConfigError" else None
        if absent is not None:
            return _missing(absent, f"container {container.name} takes its environment from it")
    message = latest(warnings, MOUNT) if not _has_sandbox(pod) else ""
    absent = _absent(pod, message)
    return None if absent is None else _missing(absent, f"volume {_volume(message)} is made of it")


def _missing(absent: str, use: str) -> Problem:
    return Problem(CONFIG_MISSING, f"{absent}, and {use}: create it")


def _absent(pod: PodView, message: str) -> str | None:
    lacks = _LACKS_OBJECT.search(message)
    if lacks is not None:
        return f"{_WRITTEN[lacks.group(1).lower()]} {lacks.group(2)} doesn't exist in namespace {pod.namespace}"
    key = _LACKS_KEY.search(message)
    if key is not None:
        return f"{key.group(2)} {key.group(3)} has no key {key.group(1)}"
    file = _LACKS_FILE.search(message)
    return None if file is None else f"{_WRITTEN[file.group(1)]} has no key {file.group(2)}"


def volume_not_mounted(pod: PodView, warnings: tuple[Warned, ...]) -> Problem | None:
    """A volume that the machine can't attach or mount."""
    message = latest(warnings, (*MOUNT, *ATTACH))
    if not message or _has_sandbox(pod):
        return None
    # A program that mounts says why in its output, after its own command line.
    output = _OUTPUT.search(message)
    why = output.group(1) if output is not None else re.sub(r"^.*?for volume \"[^\"]*\" ?:? ?", "", message, count=1)
    words = f"volume {_volume(message)} can't be mounted on {pod.machine}: {_without_paths(why)}"
    return Problem(VOLUME_NOT_MOUNTED, quote(words))


def sandbox_failed(pod: PodView, warnings: tuple[Warned, ...]) -> Problem | None:
    """The pod's network or runtime can't be set up."""
    message = latest(warnings, SANDBOX)
    if not message or _has_sandbox(pod):
        return None
    return Problem(SANDBOX_FAILED, f"{pod.machine} can't set up the pod: {innermost(message)}")


def not_created(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """A container that the runtime refuses to make, for another reason than a missing reference."""
    for container, waiting in _waiting(pod):
        if waiting.reason in _CREATIONS:
            return Problem(CONTAINER_NOT_STARTED, f"container {container.name}: {quote(waiting.message)}")
    return None


def python_unusable(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The Python that was to run the agent can't, and says so itself."""
    state = pod.trainer.state
    if not isinstance(state, Terminated) or not state.message.startswith(UNUSABLE_PYTHON):
        return None
    why = quote(state.message.removeprefix(UNUSABLE_PYTHON), 100)
    brought = next((one for one in pod.inits if one.name == own_python.CONTAINER), None)
    if brought is None:
        return _needs_python(pod, f"has a python3 that can't run muster's agent: {why}")
    words = f"the Python from image {quote(brought.image, 200)} can't run muster's agent: {why}"
    return Problem(AGENT_NEEDS_PYTHON, f"{words}: {_field(brought)} has to be of the operator's version")


def files_fetched(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """Code, data and snapshots are on their way: large data takes its time."""
    download = next((one for one in pod.inits if one.name == storage.DOWNLOAD), None)
    if download is None or not isinstance(download.state, Running):
        return None
    log = f"`kubectl logs {pod.name} -c {storage.DOWNLOAD}` tells how far"
    return Problem(FETCHING_FILES, f"code, data and snapshots are being fetched; {log}")


def not_started(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """The agent could not be started: the image has no Python, most of all."""
    state = pod.trainer.state
    if not isinstance(state, Terminated | Waiting) or state.reason not in _STARTS:
        return None
    if _NO_PYTHON.search(state.message):
        return _needs_python(pod, "has no python3, which muster's agent needs")
    return Problem(
        CONTAINER_NOT_STARTED, f"container {pod.trainer.name} could not be started: {innermost(state.message)}"
    )


def _needs_python(pod: PodView, what: str) -> Problem:
    remedy = "set spec.agent.inject to InitContainer, which brings one, or use an image with Python 3.8 or later"
    return Problem(AGENT_NEEDS_PYTHON, f"image {quote(pod.trainer.image, 200)} {what}: {remedy}")


def _waiting(pod: PodView) -> Iterator[tuple[Container, Waiting]]:
    for container in (*pod.inits, pod.trainer, *pod.others):
        if isinstance(container.state, Waiting):
            yield container, container.state


def _has_sandbox(pod: PodView) -> bool:
    """Whether the kubelet is past volumes and sandbox: what it warned of before is overcome."""
    ready = pod.condition("PodReadyToStartContainers")
    return bool(pod.ip) or (ready is not None and ready.is_true)


def _volume(message: str) -> str:
    match = _VOLUME.search(message)
    return "" if match is None else match.group(1)


def _without_paths(text: str) -> str:
    return re.sub(r"/var/lib/kubelet/\S+: ", "", text)


def _field(container: Container) -> str:
    if container.name in storage.CONTAINERS:
        return "the operator's --storage-image (the chart's storage.image, or the one in spec.template)"
    if container.name == own_python.CONTAINER:
        return "the operator's --agent-image (the chart's agent.image, or the one in spec.template)"
    return "spec.image" if container.name == "trainer" else f"the image of container {container.name} in spec.template"
