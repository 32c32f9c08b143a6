"""On any machine, the owner's devices, variables, volumes and tolerations are in the pod as written."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.core.instances import INSTANCE_TYPES
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.pod_patch import get_entries, get_trainer
from support.rows import check_rows
from unit.render.kubernetes.cluster_jobs import rendered
from unit.render.kubernetes.test_nothing_is_lost import TEMPLATES, WORD, fields, holds, job_of

TYPES = st.sampled_from([*sorted(INSTANCE_TYPES), "m7i.large"])
TOLERATIONS: st.SearchStrategy[JSON] = st.lists(
    fields(key=st.sampled_from(["nvidia.com/gpu", "aws.amazon.com/neuron", "team"]), operator=st.just("Exists")),
    max_size=2,
).map(list)
POOLS: st.SearchStrategy[JSON] = fields(
    instanceType=TYPES,
    nodeSelector=st.dictionaries(WORD, WORD, max_size=2).map(dict),
    tolerations=TOLERATIONS,
    zone=st.sampled_from(["Same", "Any"]),
    machine=st.sampled_from(["Own", "Any"]),
    sameLabels=st.lists(WORD, max_size=2).map(list),
).map(dict)
QUEUES: st.SearchStrategy[JSON] = st.sampled_from([{"kueue": "a"}, {"volcano": "a"}, {"coscheduling": {}}])
NAMES = st.sampled_from(
    ["cpu", "memory", "nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa", "hugepages-2Mi", "x.io/fpga"]
)
AMOUNTS: st.SearchStrategy[JSON] = st.dictionaries(NAMES, st.sampled_from(["1", "4", "8", "16"]), max_size=3).map(dict)
VARIABLES: st.SearchStrategy[JSON] = st.lists(
    st.builds(
        lambda name, value: {"name": name, "value": value},
        st.sampled_from(["FI_EFA_USE_HUGE_PAGE", "FI_PROVIDER", "NCCL_DEBUG"]),
        WORD,
    ),
    max_size=3,
    unique_by=lambda variable: variable["name"],
).map(list)
PLACES: st.SearchStrategy[Fields] = fields(
    nodeSelector=fields(**{"node.kubernetes.io/instance-type": TYPES, "team": WORD}).map(dict),
    tolerations=TOLERATIONS,
    schedulerName=st.just("mine"),
    schedulingGates=st.just([{"name": "mine"}]),
    affinity=st.just(
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]}}
    ),
)
SPECS: st.SearchStrategy[Fields] = fields(
    nodePool=POOLS,
    queue=QUEUES,
    network=st.sampled_from(["Auto", "All", "None"]).map(lambda efa: {"efa": efa}),
    resources=fields(limits=AMOUNTS, requests=AMOUNTS).map(dict),
    env=VARIABLES,
    nodes=st.integers(1, 3),
)


def pod_of(spec: Fields) -> Fields:
    """Return the pod, or None for a job that contradicts itself."""
    try:
        return rendered(job_of(spec))
    except NotRenderable:
        assume(False)
        raise


@settings(deadline=None)
@given(SPECS, TEMPLATES, PLACES)
def test_the_template_stands_in_the_pod_of_any_machine(spec: Fields, template: Fields, places: Fields) -> None:
    pod_spec = {**read_mapping(template["spec"]), **places}
    result = pod_of({**spec, "template": {**template, "spec": pod_spec}})
    # Their order has no meaning, and one that the pool has, too, is at the pool's position.
    tolerated = get_entries(pod_spec, "tolerations")
    pod_spec.pop("tolerations", None)
    assert holds(result, {**template, "spec": pod_spec})
    assert all(each in get_entries(read_mapping(result["spec"]), "tolerations") for each in tolerated)


@settings(deadline=None)
@given(SPECS, AMOUNTS, VARIABLES)
def test_devices_and_variables_are_the_owner_s(spec: Fields, limits: JSON, variables: JSON) -> None:
    trainer: Fields = {"name": "trainer", "resources": {"limits": limits}, "env": variables}
    result = get_trainer(pod_of({**spec, "template": {"spec": {"containers": [trainer]}}}))
    resources, asked = read_mapping(result.get("resources")), read_mapping(spec.get("resources"))
    for part, later in (("requests", {}), ("limits", read_mapping(limits))):
        theirs = {**read_mapping(asked.get(part)), **later}
        amounts = read_mapping(resources.get(part))
        assert {name: amounts.get(name) for name in theirs} == theirs
        # Fields beside it are of other kinds than all fields of the owner.
        assert amounts.keys() - theirs.keys() <= {*OURS} - {name for name in theirs if name in OURS}
    variables = {str(each["name"]): each["value"] for each in get_entries(result, "env")}
    wanted = {str(each["name"]): each["value"] for each in [*get_entries(spec, "env"), *get_entries(trainer, "env")]}
    assert {name: variables[name] for name in wanted} == wanted
    assert variables.keys() - wanted.keys() <= OUR_VARIABLES


AN_INSTANCE_TYPE_ADDS_NO_OTHER_ROWS: list[str] = [*sorted(INSTANCE_TYPES), "m7i.large"]


def test_an_instance_type_adds_no_other_variables() -> None:
    def check(instance_type: str) -> None:
        pod = rendered(job_of({"nodes": 2, "nodePool": {"instanceType": instance_type}}))
        assert {entry["name"] for entry in get_entries(get_trainer(pod), "env")} <= OUR_VARIABLES

    check_rows(AN_INSTANCE_TYPE_ADDS_NO_OTHER_ROWS, check)


OUR_VARIABLES = {"FI_EFA_USE_HUGE_PAGE", "SM_CURRENT_INSTANCE_TYPE"}
OURS = ("nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa", "hugepages-2Mi", "memory")


@settings(deadline=None)
@given(SPECS, TOLERATIONS)
def test_no_toleration_is_lost(spec: Fields, theirs: JSON) -> None:
    pod = read_mapping(pod_of({**spec, "template": {"spec": {"tolerations": theirs}}})["spec"])
    tolerations = get_entries(pod, "tolerations")
    pools = get_entries(read_mapping(spec.get("nodePool")), "tolerations")
    assert all(toleration in tolerations for toleration in [*pools, *get_entries({"all": theirs}, "all")])
