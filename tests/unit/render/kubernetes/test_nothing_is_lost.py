"""Everything that a job's owner writes into a template is in the pod, at its place and unchanged."""
# ruff: noqa: S108 - a pod's folders, not this machine's

import json

from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON, Document
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.api.validation.validate import validate
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import get_entries, get_trainer
from unit.render.kubernetes.cluster_jobs import IMAGE, UID, rendered

WORD = st.text("abc", min_size=1, max_size=3)
TEXTS: st.SearchStrategy[JSON] = st.dictionaries(WORD, WORD, max_size=3).map(dict)
FOLDER = st.sampled_from(
    ["/data", "/data/", "/dev/shm", "/opt/ml/model", "/opt/ml/input", "/opt/ml/code", "/tmp", "/x"]
)
AMOUNTS: st.SearchStrategy[JSON] = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from(["1", "2", "8"]), max_size=3
).map(dict)


def fields(**parts: st.SearchStrategy[JSON]) -> st.SearchStrategy[Fields]:
    return st.fixed_dictionaries({}, optional=parts)


def some(entry: st.SearchStrategy[Fields], *, by: str) -> st.SearchStrategy[JSON]:
    """Return a list of such entries, all different."""
    return st.lists(entry, max_size=3, unique_by=lambda item: str(item[by]).rstrip("/")).map(list)


VARIABLES = some(
    st.one_of(
        st.builds(lambda name, value: {"name": name, "value": value}, WORD, WORD),
        st.builds(lambda name, key: {"name": name, "valueFrom": {"fieldRef": {"fieldPath": key}}}, WORD, WORD),
    ),
    by="name",
)
MOUNTS = some(
    st.builds(
        lambda name, path, only: {"name": name, "mountPath": path, "readOnly": only}, WORD, FOLDER, st.booleans()
    ),
    by="mountPath",
)
SECURITY: st.SearchStrategy[JSON] = fields(
    runAsUser=st.integers(0, 9), readOnlyRootFilesystem=st.booleans(), capabilities=st.just({"drop": ["ALL"]})
).map(dict)
DETAILS = {
    "env": VARIABLES,
    "volumeMounts": MOUNTS,
    "resources": fields(limits=AMOUNTS, requests=AMOUNTS).map(dict),
    "securityContext": SECURITY,
    "workingDir": WORD,
    "terminationMessagePath": WORD,
    "imagePullPolicy": st.sampled_from(["Never", "Always"]),
}
TRAINER_CONTAINER = fields(**DETAILS).map(lambda item: {"name": "trainer", **item})
SIDECAR = st.builds(
    lambda name, item: {"name": f"side-{name}", "image": "i", "args": ["-v", "-v"], **item}, WORD, fields(**DETAILS)
)
VOLUMES = some(
    st.builds(
        lambda name, source: {"name": name, **source},
        WORD,
        st.sampled_from([{"emptyDir": {}}, {"hostPath": {"path": "/d"}}, {"configMap": {"name": "c"}}]),
    ),
    by="name",
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TOLERATIONS: st.SearchStrategy[JSON] = st.lists(fields(key=WORD, operator=st.just("Exists")), max_size=3).map(list)
POD = st.builds(
    lambda trainer, sidecars, rest: {"containers": [*([trainer] if trainer else []), *sidecars], **rest},
    st.none() | TRAINER_CONTAINER,
    some(SIDECAR, by="name"),
    fields(
        volumes=VOLUMES,
        initContainers=some(SIDECAR, by="name"),
        tolerations=TOLERATIONS,
        nodeSelector=TEXTS,
        hostNetwork=st.booleans(),
        dnsPolicy=st.sampled_from(["None", "Default"]),
        shareProcessNamespace=st.just(value=True),
        automountServiceAccountToken=st.booleans(),
        enableServiceLinks=st.booleans(),
        terminationGracePeriodSeconds=st.integers(0, 99),
        serviceAccountName=WORD,
        hostAliases=some(st.builds(lambda ip, name: {"ip": ip, "hostnames": [name]}, WORD, WORD), by="ip"),
        imagePullSecrets=some(st.builds(lambda name: {"name": name}, WORD), by="name"),
        dnsConfig=st.builds(lambda name: {"searches": [name]}, WORD),
        affinity=st.builds(lambda name: {"podAffinity": {REQUIRED: [{"topologyKey": name}]}}, WORD),
        securityContext=fields(fsGroup=st.integers(0, 9)).map(dict),
    ),
)
TEMPLATES: st.SearchStrategy[Fields] = st.builds(
    lambda metadata, pod: {"metadata": metadata, "spec": pod}, fields(labels=TEXTS, annotations=TEXTS), POD
)
AGENTS: st.SearchStrategy[JSON] = st.sampled_from([{"inject": "ConfigMap"}, {"inject": "InitContainer"}])


def job_of(spec: Fields) -> Job:
    """Return the job as the API server returns it; jobs that the rules refuse are no examples."""
    whole: Fields = {
        "nodes": 2,
        "procsPerNode": 1,
        "launcher": {"direct": {}},
        "image": IMAGE,
        "command": ["c"],
        **spec,
    }
    metadata: Fields = {"name": "vit", "namespace": "team", "uid": UID}
    head: Fields = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob"}
    return validate(Document({**head, "metadata": metadata, "spec": whole}))


def holds(result: JSON, wanted: JSON) -> bool:
    """Whether `result` contains all of `wanted`; in lists, each entry in a separate one."""
    if isinstance(wanted, dict):
        return isinstance(result, dict) and all(name in result and holds(result[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return isinstance(result, list) and _in_order(result, wanted)
    return json.dumps(result) == json.dumps(wanted)


def _in_order(result: list[JSON], wanted: list[JSON]) -> bool:
    rest = iter(result)
    return all(any(holds(entry, each) for entry in rest) for each in wanted)


@given(TEMPLATES, AGENTS)
def test_the_pod_holds_all_of_the_template(template: Fields, agent: JSON) -> None:
    assert holds(rendered(job_of({"template": template, "agent": agent})), template)


@given(TEMPLATES, AGENTS)
def test_nothing_of_the_template_is_changed(template: Fields, agent: JSON) -> None:
    """The owner's own entries contain exactly the owner's fields, unchanged."""
    pod = read_mapping(rendered(job_of({"template": template, "agent": agent}))["spec"])
    ours = ("muster", "trainer")
    for name in ("containers", "initContainers", "volumes"):
        owners = [entry for entry in get_entries(pod, name) if not str(entry["name"]).startswith(ours)]
        written = [entry for entry in get_entries(read_mapping(template["spec"]), name) if entry["name"] != "trainer"]
        assert owners == written


@given(TEMPLATES, VARIABLES, AMOUNTS)
def test_the_short_fields_stay_unless_the_template_says_otherwise(
    template: Fields, variables: JSON, amounts: JSON
) -> None:
    allowed = [{"value": "v", **each} for each in get_entries({"env": variables}, "env") if "value" in each]
    job = job_of({"template": template, "env": list(allowed), "resources": {"limits": amounts}})
    theirs, result = get_trainer(template), get_trainer(rendered(job))
    named = {each["name"] for each in get_entries(theirs, "env")}
    assert holds(result.get("env", []), [each for each in allowed if each["name"] not in named])
    limits = read_mapping(read_mapping(theirs.get("resources")).get("limits"))
    assert holds(read_mapping(result.get("resources")).get("limits", {}), {**read_mapping(amounts), **limits})


@given(TEMPLATES, TEMPLATES)
def test_what_is_said_of_a_node_counts_for_that_node_alone(template: Fields, override: Fields) -> None:
    job = job_of({"template": template, "nodeOverrides": [{"nodes": "1", "template": override}]})
    assert holds(rendered(job, 0), template)
    for name, value in read_mapping(read_mapping(override["metadata"]).get("labels")).items():
        assert read_mapping(read_mapping(rendered(job, 1)["metadata"])["labels"])[name] == value
    for variable in get_entries(get_trainer(override), "env"):
        assert variable in get_entries(get_trainer(rendered(job, 1)), "env")
    for mount in get_entries(get_trainer(override), "volumeMounts"):
        assert any(holds(each, mount) for each in get_entries(get_trainer(rendered(job, 1)), "volumeMounts"))
