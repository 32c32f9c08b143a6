"""`muster explain` lists everything that muster adds, and marks the owner's own settings."""

import io
import re
import shlex

import pytest
from rich.console import Console

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.api.validation.rules.mpi.options import (
    REMOTE_SHELL_VARIABLES,
    is_option,
    list_remote_options,
    list_world_options,
)
from muster.cli.errors import BadInput
from muster.cli.explain.explain import build_tables, explain_job, format_plain_text
from muster.cli.explain.explanation import Explanation
from muster.cli.explain.explanations import GROUPS, explain_node
from muster.cli.explain.launch_preview import preview_launch
from muster.cli.render.placeholders import PLACEHOLDERS, simulate_apply
from muster.render.agent_plan import render_plan
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import merge_patches
from muster.render.kubernetes.render import render_pod
from muster.render.kubernetes.settings import flatten_settings
from muster.render.kubernetes.user_patches import collect_user_patches
from muster_worker.mpi.mpirun_variables import OLDER_NAMES, SETTINGS
from unit.render.kubernetes.cluster_jobs import cluster_job, with_trainer

CLAIM: Fields = {"persistentVolumeClaim": {"claimName": "c"}}
READ_ONLY = with_trainer(securityContext={"readOnlyRootFilesystem": True}, env=[{"name": "A", "value": "b"}])

JOBS = [
    cluster_job(procsPerNode=2),
    cluster_job(procsPerNode=1, launcher={"perNode": {}}, hyperparameters={"lr": 1}),
    cluster_job(procsPerNode=2, launcher={"perNode": {}}),
    cluster_job(procsPerNode=2, launcher={"direct": {}}, env=[{"name": "OMP_NUM_THREADS", "value": "4"}]),
    cluster_job(procsPerNode=2, launcher={"torchrun": None, "mpi": {}}, hyperparameters={"lr": 1}),
    cluster_job(
        procsPerNode=1,
        launcher={"torchrun": None, "mpi": {"implementation": "MPICH", "args": ["-genv", "A", "b"]}},
        env=[{"name": "I_MPI_PERHOST", "value": "2"}],
    ),
    cluster_job(procsPerNode=2, launcher={"torchrun": None, "mpi": {}}, command=["mpirun", "-np", "4", "./train"]),
    cluster_job(
        procsPerNode=2,
        launcher={"torchrun": {"args": ["--tee", "3"]}},
        hyperparameters={"lr": 0.1},
        inputs=[{"name": "train", "volume": CLAIM}],
        checkpoint={"volume": CLAIM},
        output={"volume": CLAIM},
        template=READ_ONLY,
        nodeOverrides=[{"nodes": "1", "template": {"spec": {"hostNetwork": True, "tolerations": [{"key": "a"}]}}}],
    ),
    cluster_job(procsPerNode=8, nodePool={"instanceType": "p5.48xlarge", "zone": "Same"}, queue={"kueue": "team"}),
    cluster_job(
        procsPerNode=4,
        nodePool={"instanceType": "p5.48xlarge", "tolerations": [{"key": "a"}]},
        network={"efa": "All"},
        queue={"volcano": "team"},
        template={
            "spec": {
                "nodeSelector": {"node.kubernetes.io/instance-type": "g5.12xlarge"},
                "containers": [{"name": "trainer", "env": [{"name": "FI_EFA_USE_HUGE_PAGE", "value": "1"}]}],
            }
        },
    ),
]

FULL, OF_A_TYPE, TYPE_IN_TEMPLATE = JOBS[-3:]


def said(job: Job, setting: str, node: int = 0) -> Explanation:
    (found,) = [each for each in explain_node(job, node) if each.setting == setting]
    return found


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("node", [0, 1])
def test_all_that_a_pod_has_beyond_its_owner_s_words_is_explained(job: Job, node: int) -> None:
    applied = simulate_apply(job)
    theirs = flatten_settings(merge_patches(collect_user_patches(applied, node)))
    result = {(each.setting, each.value) for each in explain_node(job, node)}
    texts = {value for _, value in result}
    beyond = {
        setting: value for setting, value in flatten_settings(dict(render_pod(applied, node, 0, PLACEHOLDERS))).items()
        if theirs.get(setting) != value and setting not in {"apiVersion", "kind"}
    }  # fmt: skip
    assert len(beyond) > 20
    for setting, value in beyond.items():
        name = setting.removeprefix("spec.containers[trainer].").partition("[]=")[0]
        assert name in {each for each, _ in result}, setting
        assert not isinstance(value, str) or value in texts, setting


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("node", [0, 1])
def test_all_that_the_ranks_see_and_are_started_with_is_explained(job: Job, node: int) -> None:
    result = explain_node(job, node)
    plan = render_plan(simulate_apply(job), PLACEHOLDERS.collector_url, "")
    start = preview_launch(simulate_apply(job), plan, node)
    names = {each.setting for each in result if each.group == "Environment"}
    assert set(start.environment) - set(start.user_variables) <= names
    values = {word for each in result if each.group == "Launcher" for word in (each.setting, *shlex.split(each.value))}
    theirs = {*job.spec.command, *plan.launcher_args}
    assert set(start.command) - theirs <= values


def test_the_groups_are_in_order_and_every_line_says_why() -> None:
    result = explain_node(FULL, 0)
    order = [GROUPS.index(each.group) for each in result]
    assert order == sorted(order)
    assert set(order) == set(range(len(GROUPS)))
    assert all(each.source and each.reason for each in result)


NO_DISRUPTION = "karpenter.sh/do-not-disrupt"


@pytest.mark.parametrize(
    ("spec", "value", "why"),
    [
        ({"command": ["python3", "train.py", "--epochs", "3"]}, "if train.py imports torch", "in less than a second"),
        ({"command": ["python3", "train.py"], "warmStart": "Off"}, "no", "turns it off"),
        ({"command": ["python3", "-m", "vit.train"]}, "no", "a module, not a script"),
        ({"command": ["python3", "-X", "dev", "train.py"]}, "no", "Python's option -X"),
        ({"command": ["bash", "train.sh"]}, "no", "not a Python"),
        ({"launcher": {"direct": None, "torchrun": None, "mpi": {}}}, "no", "mpirun starts the ranks"),
    ],
)
def test_a_warm_start_is_explained(spec: dict[str, JSON], value: str, why: str) -> None:
    (entry,) = (each for each in explain_node(cluster_job(**spec), 0) if each.setting == "warm start")
    assert (entry.value, entry.source) == (value, "spec.warmStart")
    assert why in entry.reason


@pytest.mark.parametrize(
    ("spec", "setting", "value", "source"),
    [
        pytest.param(
            {"template": {"metadata": {"annotations": {NO_DISRUPTION: "false"}}}},
            f"metadata.annotations.{NO_DISRUPTION}", "false", "spec.template", id="another value",
        ),
        pytest.param(
            {"template": {"metadata": {"annotations": {NO_DISRUPTION: None}}}},
            f"metadata.annotations.{NO_DISRUPTION}", "none", "spec.template", id="taken away",
        ),
        pytest.param(
            {"nodeOverrides": [{"nodes": "0", "template": {"spec": {"enableServiceLinks": True}}}]},
            "spec.enableServiceLinks", "true", "spec.nodeOverrides[0]", id="on one node",
        ),
        pytest.param(
            {"env": [{"name": "OMP_NUM_THREADS", "value": "4"}]},
            "OMP_NUM_THREADS", "4", "spec.env", id="a variable",
        ),
        pytest.param(
            {"template": with_trainer(volumeMounts=[{"name": "mine", "mountPath": "/opt/ml/model/"}])},
            "volumeMounts[/opt/ml/model]", '{"name": "mine"}', "spec.template", id="a folder",
        ),
    ],
)  # fmt: skip
def test_what_is_the_owner_s_is_called_so(spec: dict[str, JSON], setting: str, value: str, source: str) -> None:
    result = said(cluster_job(**spec), setting)
    assert (result.value, result.source) == (value, source)
    assert result.reason.startswith("yours takes precedence; muster's would be ")


def test_a_variable_that_gives_way_to_another_of_the_owner_s_is_not_shown() -> None:
    job = cluster_job(env=[{"name": "OMPI_MCA_btl_tcp_if_exclude", "value": "lo"}])
    assert "OMPI_MCA_btl_tcp_if_include" not in {each.setting for each in explain_node(job, 0)}


def test_the_text_has_a_line_for_each_setting() -> None:
    result = explain_node(FULL, 0)
    text = format_plain_text(result)
    lines = [line for line in text.splitlines() if re.match(r"  \S", line)]
    assert len(lines) == len(result)
    for line, each in zip(lines, result, strict=True):
        assert line.split()[0] == each.setting.split()[0]
        assert line.endswith(each.reason)
    whole = re.sub(r"\n {6}", "", text)
    assert all(" ".join(each.value.split()) in " ".join(whole.split()) for each in result)


@pytest.mark.parametrize("job", JOBS)
def test_no_line_of_the_text_is_very_long(job: Job) -> None:
    assert max(map(len, format_plain_text(explain_node(job, 0)).splitlines())) <= 300


def test_a_pipe_gets_the_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    explain_job(JOBS[0], 1)
    assert capsys.readouterr().out == format_plain_text(explain_node(JOBS[0], 1))


def test_the_tables_fit_a_terminal() -> None:
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(*build_tables(explain_node(FULL, 0)))
    lines = console.export_text().splitlines()
    assert [line.strip() for line in lines if line.strip() in GROUPS] == list(GROUPS)
    assert max(map(len, lines)) <= 100


def test_a_node_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="the job has the nodes 0 to 1"):
        explain_job(cluster_job(), 2)


def test_a_node_that_an_elastic_job_may_have_later_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    elastic = cluster_job(elastic={"minNodes": 1, "maxNodes": 4}, failurePolicy={})
    explain_job(elastic, 3)
    assert capsys.readouterr().out == format_plain_text(explain_node(elastic, 3))
    with pytest.raises(BadInput, match="the job has the nodes 0 to 3"):
        explain_job(elastic, 4)


def test_a_job_without_an_image_is_explained_and_says_what_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    explain_job(cluster_job(), 0)
    with_image = capsys.readouterr()
    explain_job(cluster_job(image=None), 0)
    without = capsys.readouterr()
    # all but the hash of the spec
    assert len(set(without.out.splitlines()) ^ set(with_image.out.splitlines())) == 2
    assert without.err.startswith("a cluster can't run this job yet: no image")


def test_a_job_whose_ranks_are_not_known_says_what_to_set() -> None:
    override: JSON = {"nodes": "1", "template": with_trainer(resources={"limits": {"nvidia.com/gpu": 2}})}
    with pytest.raises(BadInput, match=r"a cluster can't run this job yet: spec\.procsPerNode: found Auto"):
        explain_job(cluster_job(nodeOverrides=[override]), 0)


def test_the_machine_s_type_says_what_follows_from_it() -> None:
    assert said(OF_A_TYPE, "instance type").reason == "it has 8 GPUs, 32 EFA devices"
    assert said(TYPE_IN_TEMPLATE, "instance type").source == "spec.template"
    unknown = said(cluster_job(procsPerNode=1, nodePool={"instanceType": "m7i.large"}), "instance type")
    assert (unknown.value, unknown.source) == ("m7i.large", "spec.nodePool")
    assert unknown.reason.startswith("muster doesn't know this type")
    assert not [each for each in explain_node(JOBS[0], 0) if each.setting == "instance type"]


def test_what_the_agent_will_count_is_not_made_up() -> None:
    variables = ("SM_NUM_GPUS", "SM_NUM_CPUS", "OMP_NUM_THREADS")
    assert [said(FULL, name).value for name in variables] == ["0", "CPUS", "CPUS_PER_RANK"]
    assert [said(OF_A_TYPE, name).value for name in variables] == ["8", "CPUS", "CPUS_PER_RANK"]
    own = cluster_job(procsPerNode=2, env=[{"name": "OMP_NUM_THREADS", "value": "4"}])
    assert said(own, "OMP_NUM_THREADS").value == "4"
    assert (
        preview_launch(simulate_apply(own), render_plan(simulate_apply(own), "", ""), 0).environment["OMP_NUM_THREADS"]
        == "4"
    )


def test_a_network_check_is_explained_where_there_is_one() -> None:
    asked = cluster_job(procsPerNode=1, nodes=2, network={"check": True})
    assert said(asked, "network check").source == "spec.network.check"
    alone = cluster_job(procsPerNode=1, nodes=1, network={"check": True})
    for job in (alone, JOBS[0]):
        assert not [each for each in explain_node(job, 0) if each.setting == "network check"]


def test_users_may_not_set_the_variables_that_override_the_image() -> None:
    assert {*(setting.name for setting in SETTINGS if setting.overrides_image), *OLDER_NAMES} == set(
        REMOTE_SHELL_VARIABLES
    )


@pytest.mark.parametrize(
    ("implementation", "options"),
    [("OpenMPI", {"--hostfile", "-np", "--map-by"}), ("IntelMPI", {"-f", "-n", "-ppn", "-genvnone"})],
)
def test_mpiruns_options_are_explained_and_no_owner_may_set_them(implementation: str, options: set[str]) -> None:
    job = cluster_job(launcher={"torchrun": None, "mpi": {"implementation": implementation}}, procsPerNode=2)
    result = {each.setting for each in explain_node(job, 0) if each.group == "Launcher"}
    assert result == {"mpirun", "wrapper", "warm start", *options}
    names = (*list_world_options(implementation), *list_remote_options(implementation))
    assert all(is_option(option, names) for option in options)
