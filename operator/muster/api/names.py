"""The resource's group, version and kind, and the rules for its metadata.name."""

from typing import Final

GROUP = "muster.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "DistributedTrainingJob"
PLURAL = "distributedtrainingjobs"
SHORT_NAME = "dtj"

TEMPLATE_KIND: Final = "TrainingTemplate"
TEMPLATE_PLURAL = "trainingtemplates"
CLUSTER_TEMPLATE_KIND: Final = "ClusterTrainingTemplate"
CLUSTER_TEMPLATE_PLURAL = "clustertrainingtemplates"

MAX_NAME_CHARS = 40
"""The names of pods, Services and SageMaker jobs contain the job's name, and may have at most 63 characters."""

NAME_PATTERN = r"[a-z]([-a-z0-9]*[a-z0-9])?"
"""A DNS label that begins with a letter, as a Service's name must."""

NAME_MESSAGE = (
    "a job's name has at most 40 small letters, digits and dashes, begins with a letter and ends with a letter or digit"
)

MAX_NAMESPACE_CHARS = 63
NAMESPACE_PATTERN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"

METADATA_FIELDS = (
    "name",
    "generateName",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "selfLink",
)
"""The fields of metav1.ObjectMeta; muster rejects other keys in metadata."""

JOB_UID_LABEL = f"{GROUP}/job-uid"
"""The label of a pod whose value is the uid of the pod's job."""

RESTART_ANNOTATION = f"{GROUP}/restart-requested-at"
"""A new value of this annotation requests a restart of the job.

The value may be any text. `muster restart` writes the time.
"""

MAX_RESTART_REQUEST_CHARS = 64
"""muster compares and stores only this many characters of the annotation's value."""

SOURCE_ANNOTATION = f"{GROUP}/rerun-source"
"""The annotation with the name of the ConfigMap that contains edited code. The job's next attempts run this code."""

TEMPLATE_ANNOTATION = f"{GROUP}/template"
"""The annotation with the spec of the job's template, as JSON, as it was when the job was created."""

MAX_TEMPLATE_CHARS = 65536
"""The maximum length of that annotation. An object's annotations together may have 256 KiB."""

MAX_CONFIG_MAP_NAME_CHARS = 253

TRAINER_CONTAINER = "trainer"
"""The name of the container in which the ranks run."""
