"""Messages of registries, schedulers and kubelets that the recorded pods don't have, and texts that must not be
copied.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.core.problem import Problem
from muster.diagnose.kubernetes.problems import find_problem
from muster.diagnose.kubernetes.quoting import MAX_CHARS, quote
from muster.diagnose.kubernetes.scheduling import describe_scheduling_failure, describe_shortage
from muster.objects.kubernetes.warnings import PodWarning, read_warning
from muster_worker.contract.schema import UNUSABLE_PYTHON
from unit.diagnose.kubernetes.pod_cases import JSONObject, changed, part, view


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        (
            'rpc error: code = NotFound desc = failed to pull and unpack image "reg/vit:9": reg/vit:9: not found',
            "ImageNotFound",
            "image registry.invalid/vit:9 doesn't exist: correct spec.image",
        ),
        (
            "rpc error: code = Unknown desc = Error response from daemon: manifest unknown",
            "ImageNotFound",
            "image registry.invalid/vit:9 doesn't exist: correct spec.image",
        ),
        (
            "failed to resolve reference: pull access denied, repository does not exist or may require authorization",
            "ImageNotFound",
            (
                "image registry.invalid/vit:9 can't be fetched; it doesn't exist, or the registry denies it: set a "
                "secret for it in spec.template.spec.imagePullSecrets"
            ),
        ),
        (
            "failed to authorize: failed to fetch anonymous token: 401 Unauthorized",
            "ImagePullFailed",
            (
                "image registry.invalid/vit:9 can't be fetched; the registry denies it: set a secret for it in "
                "spec.template.spec.imagePullSecrets"
            ),
        ),
        ("", "ImagePullFailed", "image registry.invalid/vit:9 can't be fetched: the registry gives no reason yet"),
    ],
)
def test_why_an_image_does_not_come(message: str, reason: str, words: str) -> None:
    def wait(pod: JSONObject) -> None:
        part(pod, "status", "containerStatuses", 0, "state", "waiting").update(message=message)

    assert find_problem(changed("image-missing", wait)) == Problem(reason, words)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            (
                "0/9 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: present}, 4 Insufficient "
                "nvidia.com/gpu, 2 node(s) were unschedulable. preemption: 0/9 nodes are available: 9 No preemption "
                "victims found for incoming pod."
            ),
            (
                "none of 9 nodes has room: 3 have a taint that it doesn't tolerate {nvidia.com/gpu: present}, 4 lack "
                "nvidia.com/gpu, 2 are cordoned"
            ),
        ),
        ("0/1 nodes are available: 1 Too many pods.", "the only node has no room: 1 can't run another pod"),
        (
            "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
            "none of 3 nodes fits: 3 can't reach its volume",
        ),
        ("0/2 nodes are available: 2 something new.", "none of 2 nodes fits: 2 something new"),
        ("no nodes available to schedule pods", "the scheduler can't place it: no nodes available to schedule pods"),
        ("", "the scheduler can't place it: "),
    ],
)
def test_what_the_scheduler_misses(message: str, words: str) -> None:
    assert describe_scheduling_failure(message) == words


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("0/5 nodes are available: 5 Insufficient nvidia.com/gpu.", "insufficient nvidia.com/gpu"),
        (
            (
                "0/9 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
                "3 node(s) had untolerated taint {nvidia.com/gpu: present}, 2 node(s) were unschedulable, 3 "
                "Insufficient vpc.amazonaws.com/efa, 1 Insufficient cpu. preemption: 0/9 nodes are available: 9 "
                "Preemption is not helpful for scheduling."
            ),
            (
                "insufficient cpu, insufficient vpc.amazonaws.com/efa, machines that are cordoned, untolerated taint "
                "{nvidia.com/gpu: present}"
            ),
        ),
        (
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
            "machines that don't match its node selector or node affinity",
        ),
        ("no nodes available to schedule pods", ""),
    ],
)
def test_what_is_missing_has_words_that_pods_share(message: str, words: str) -> None:
    assert describe_shortage(message) == words


@pytest.mark.parametrize(
    "message",
    [
        "0/1 nodes are available: 1 optimistic rejection in PostFilter.",
        "0/1 nodes are available: 1 rejection in Unreserve.",
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Coscheduling.",
        (
            "0/2 nodes are available: pre-filter pod vit-0-0 cannot find enough sibling pods, current pods number: 1, "
            "minMember of group: 3."
        ),
        "0/2 nodes are available: podGroup vision/vit-muster failed recently.",
    ],
)
def test_a_pod_that_waits_for_the_rest_of_its_gang(message: str) -> None:
    """The messages of scheduler-plugins 0.33 on a real cluster, and from pkg/coscheduling."""
    pod = changed("unschedulable-gpu", lambda pod: part(pod, "status", "conditions", 0).update(message=message))
    problem = find_problem(pod)
    assert problem is not None
    assert (problem.reason, problem.shortage) == ("Unschedulable", "no room for the whole gang")
    assert problem.message == "coscheduling places it once all pods of its gang have room"


def test_a_key_that_a_volume_lacks() -> None:
    pod = view("hostpath-missing")
    words = 'MountVolume.SetUp failed for volume "d" : references non-existent secret key: token'
    result = find_problem(pod, (PodWarning(pod.uid, "FailedMount", words),))
    assert result == Problem("ConfigMissing", "Secret has no key token, and volume d contains it: create it")


@pytest.mark.parametrize(
    "message",
    [
        '0/2 nodes are available: persistentvolumeclaim "data" not found. not found',
        (
            'running PreFilter plugin "VolumeBinding": error getting PVC "vision/data": could not find '
            'v1.PersistentVolumeClaim "vision/data"'
        ),
    ],
)
def test_a_missing_claim(message: str) -> None:
    def say(pod: JSONObject) -> None:
        part(pod, "status", "conditions", 0)["message"] = message

    words = "PersistentVolumeClaim data doesn't exist in namespace vision: create it"
    assert find_problem(changed("claim-missing", say)) == Problem("VolumeClaimMissing", words)


def test_a_deleted_pod_that_had_not_begun_was_not_lost_by_its_machine() -> None:
    def end(pod: JSONObject) -> None:
        ended: JSONObject = {"exitCode": 137, "reason": "ContainerStatusUnknown"}
        part(pod, "status", "containerStatuses", 0)["state"] = {"terminated": ended}

    result = find_problem(changed("deleted", end))
    assert result is not None
    assert result.reason == "PodDeleted"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ('{"jobUid": "3a5c", "node": 0, "replacement": 0, "attempt": 1, "exitCode": 137, "ranks": 1}', None),
        ("", "ContainerKilled"),
    ],
)
def test_an_agent_that_leaves_with_the_code_of_a_killed_rank_was_not_killed(message: str, reason: str | None) -> None:
    def end(pod: JSONObject) -> None:
        ended: JSONObject = {"exitCode": 137, "reason": "Error", "message": message}
        part(pod, "status", "containerStatuses", 0)["state"] = {"terminated": ended}

    result = find_problem(changed("running", end))
    assert (None if result is None else result.reason) == reason


def test_a_kubelet_that_has_not_read_a_config_map_yet_warns_of_nothing() -> None:
    words = 'MountVolume.SetUp failed for volume "muster" : failed to sync configmap cache: timed out waiting for it'
    event: dict[str, JSON] = {
        "type": "Warning",
        "reason": "FailedMount",
        "metadata": {"namespace": "team"},
        "involvedObject": {"kind": "Pod", "namespace": "team", "uid": "uid"},
    }
    assert read_warning({**event, "message": words}) is None
    assert read_warning({**event, "message": 'configmap "settings" not found'}) is not None


def test_a_volume_that_another_machine_holds() -> None:
    pod = view("hostpath-missing")
    words = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other-0'
    result = find_problem(pod, (PodWarning(pod.uid, "FailedAttachVolume", words),))
    why = "volume pvc-1 can't be mounted on node-1: Volume is already used by pod(s) other-0"
    assert result == Problem("VolumeNotMounted", why)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Get https://blobs.example/x?X-Amz-Signature=s3cret&y=1: 403", "Get https://blobs.example/x 403"),
        ("Get https://me:s3cret@example/x: 403", "Get https://example/x: 403"),
        ("Authorization: Bearer s3cretS3cret", "Authorization: Bearer ***"),
        ("dial \x1b[31mred\x1b[0m\nagain", "dial red again"),
        ("sandbox 0123456789abcdef0123456789abcdef0123456789abcdef is gone", "sandbox ... is gone"),
        ("read tcp 10.0.0.1:5->10.0.0.2:443: reset", "read from 10.0.0.2:443: reset"),
    ],
)
def test_credentials_and_restless_words_are_left_out(text: str, shown: str) -> None:
    assert quote(text) == shown


@given(st.text(max_size=6000))
def test_every_message_of_a_kubelet_becomes_one_short_line(text: str) -> None:
    shown = quote(text)
    assert len(shown) <= MAX_CHARS
    assert "\n" not in shown
    assert "\x1b" not in shown


def test_a_containers_last_line_is_shown_without_its_secrets() -> None:
    def fail(pod: JSONObject) -> None:
        ended = part(pod, "status", "initContainerStatuses", 0, "state", "terminated")
        ended.update(message="Traceback:\nIOError: https://me:pw@example/x\n", exitCode=2)

    words = "init container fetch failed with exit code 2: IOError: https://example/x"
    assert find_problem(changed("init-failed", fail)) == Problem("InitContainerFailed", words)


def test_a_failed_download_has_its_own_reason() -> None:
    def fail(pod: JSONObject) -> None:
        part(pod, "spec", "initContainers", 0).update(name="muster-download")
        status = part(pod, "status", "initContainerStatuses", 0)
        status.update(name="muster-download")
        said = "[muster] code: 2 files\nS3AccessDenied: spec.inputs[0].s3.uri: s3:GetObject on s3://data/a is denied\n"
        part(status, "state", "terminated").update(message=said, exitCode=1)

    words = "spec.inputs[0].s3.uri: s3:GetObject on s3://data/a is denied"
    assert find_problem(changed("init-failed", fail)) == Problem("S3AccessDenied", words)


def test_a_running_download_is_a_reason_of_its_own() -> None:
    def rename(pod: JSONObject) -> None:
        part(pod, "spec", "initContainers", 0).update(name="muster-download")
        part(pod, "status", "initContainerStatuses", 0).update(name="muster-download")

    result = find_problem(changed("init-running", rename))
    assert result is not None
    assert result.reason == "FetchingFiles"
    assert "-c muster-download` shows the progress" in result.message


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        (
            "StartError",
            "crun: executable file `python3` not found in $PATH: No such file or directory",
            "has no python3",
        ),
        (
            "Error",
            f"{UNUSABLE_PYTHON}it is Python 3.6",
            "has a python3 that can't run muster's agent: it is Python 3.6",
        ),
        (
            "Error",
            f"{UNUSABLE_PYTHON}it is Python 3.11 without the module ssl",
            "has a python3 that can't run muster's agent: it is Python 3.11 without the module ssl",
        ),
    ],
)
def test_the_message_about_an_unsuitable_python_names_init_container(reason: str, message: str, words: str) -> None:
    def end(pod: JSONObject) -> None:
        ended = part(pod, "status", "containerStatuses", 0, "state", "terminated")
        ended.update(reason=reason, message=message, exitCode=69)

    result = find_problem(changed("no-python", end))
    assert result is not None
    assert result.reason == "AgentNeedsPython"
    assert words in result.message
    assert "set spec.agent.inject to InitContainer" in result.message


@pytest.mark.parametrize(
    ("reason", "message", "kind"),
    [
        ("ErrImagePull", "manifest unknown", "ImageNotFound"),
        ("InvalidImageName", "couldn't parse image name", "InvalidImageName"),
    ],
)
def test_an_operator_s_image_that_cannot_be_had_is_no_fault_of_the_job(reason: str, message: str, kind: str) -> None:
    def wait(pod: JSONObject) -> None:
        part(pod, "spec", "initContainers", 0)["name"] = "muster-python"
        status = part(pod, "status", "initContainerStatuses", 0)
        status.update(name="muster-python", state={"waiting": {"reason": reason, "message": message}})

    result = find_problem(changed("init-running", wait))
    assert result is not None
    assert result.reason == kind
    assert "correct the operator's --agent-image" in result.message


def test_a_python_of_another_release_of_the_operator_is_called_so() -> None:
    def end(pod: JSONObject) -> None:
        part(pod, "spec")["initContainers"] = [{"name": "muster-python", "image": "mirror.example/muster:0"}]
        ended = part(pod, "status", "containerStatuses", 0, "state", "terminated")
        ended.update(reason="Error", message=f"{UNUSABLE_PYTHON}it is Python 3.11 without the module csv", exitCode=69)

    result = find_problem(changed("no-python", end))
    assert result is not None
    assert result.reason == "AgentNeedsPython"
    assert "the Python from image mirror.example/muster:0 can't run muster's agent" in result.message
    assert result.message.endswith("has to be of the operator's version")
