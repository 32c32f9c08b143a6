"""Specs that change after a job has started: it uses only what tenancy allows, and muster still watches what runs."""

from __future__ import annotations

from functools import partial

from fakes.sagemaker_service.script import make_failing_script, make_stages_before_training
from fakes.sagemaker_site.life import Life, run_scenario_on
from fakes.sagemaker_site.site import HERE, THERE, Site, Wire, make_spec
from muster.api.backends import TRAINING_JOB_FINALIZER
from muster.api.config import tenancy
from muster.api.config.tenancy_spec import BucketGrant, Tenant
from support.training_job_requests import make_training_job_request
from unit.render.sagemaker.builders import ROLE

NAME = "vit-4a49acf8a6-1"
ADMIN = "arn:aws:iam::111122223333:role/Admin"
ELSEWHERE = "arn:aws:iam::444455556666:role/NotTheirs"
TENANTS = (Tenant(namespaces=("*",), roles=(ROLE,), buckets=(BucketGrant(name="team"),)),)
HOUR = 3600.0


def run_life(wire: Wire, life: Life) -> None:
    """Run a scenario with one operator, which lets jobs use one role and one bucket."""
    run_scenario_on(partial(Site, wire, admit=partial(tenancy.check_tenancy, tenants=TENANTS, default_region="")), life)


def block(**changes: object) -> dict[str, object]:
    """`spec.sagemaker` with changes."""
    return {**make_spec()["sagemaker"], **changes}


def roles_used(site: Site) -> set[str]:
    """Return the roles of all requested training jobs."""
    return {str(call.request["RoleArn"]) for call in site.service.list_calls("CreateTrainingJob")}


def test_what_sagemaker_refuses_opens_no_door(wire: Wire) -> None:
    async def life(site: Site) -> None:
        # the API server allows changes of any field while Accepted is False
        site.stored.create("vit", make_spec(command=["x"] * 120))
        await site.wait_until(lambda: site.find_condition("Accepted")[0] == "False")
        site.stored.change("vit", command=["python", "train.py"], sagemaker=block(role=ADMIN))
        await site.wait_until(lambda: "role is not allowed" in site.find_condition("Accepted")[2])
        await site.wait_until_settled(HOUR)
        assert not site.service.list_calls("CreateTrainingJob")
        site.kill_operator()
        await site.wait_until_settled(HOUR)
        assert not site.service.list_calls("CreateTrainingJob")
        assert "role is not allowed" in site.find_condition("Accepted")[2]
        site.stored.change("vit", sagemaker=block())
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        assert roles_used(site) == {ROLE}

    run_life(wire, life)


def test_an_unobserved_change_between_suspension_and_resumption_is_not_admitted_either(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_failing_script("AlgorithmError: x", 60.0)
        site.stored.create("vit", make_spec(failurePolicy={"maxRestarts": 3}))
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.stored.change("vit", suspend=True)
        site.stored.change("vit", suspend=False, sagemaker=block(role=ADMIN))
        await site.wait_until(lambda: site.find_condition("Accepted")[0] == "False")
        await site.wait_until_settled(HOUR)
        assert roles_used(site) == {ROLE}
        assert list(site.service.get_jobs().by_name) == [NAME]

    run_life(wire, life)


def test_what_is_not_allowed_any_more_hides_nothing_else(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().create({**make_training_job_request(NAME)}, site.service.now())
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.find_condition("Scheduled")[1] == "TrainingJobExists")
        site.stored.change("vit", sagemaker=block(role=ADMIN))
        await site.wait_until(lambda: "role is not allowed" in site.find_condition("Accepted")[2])
        assert site.find_condition("Scheduled")[:2] == ("False", "TrainingJobExists")

    run_life(wire, life)


def test_a_job_that_runs_goes_on_when_less_is_allowed(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.admit = partial(tenancy.check_tenancy, tenants=(), default_region="")
        site.kill_operator()
        await site.wait_until(lambda: site.get_phase() == "Succeeded")
        assert site.find_condition("Accepted")[0] == "True"

    run_life(wire, life)


def test_what_runs_is_looked_at_where_it_was_made(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.stored.change("vit", suspend=True)
        site.stored.change("vit", sagemaker=block(region="eu-west-1", assumeRoleArn=ELSEWHERE))
        await site.wait_until(lambda: site.get_phase() == "Suspended")
        assert [call.request["TrainingJobName"] for call in site.service.list_calls("StopTrainingJob")] == [NAME]
        assert site.record().region == HERE.region
        assert site.operator is not None
        assert set(site.operator.aws._connections) == {HERE, THERE}

    run_life(wire, life)


def test_a_role_that_is_not_allowed_is_not_even_asked_whether_something_runs(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.service.get_jobs().script = lambda _: make_stages_before_training()
        site.stored.create("vit", make_spec())
        await site.wait_until(lambda: site.get_phase() == "Running")
        site.stored.change("vit", suspend=True)
        site.stored.change("vit", sagemaker=block(assumeRoleArn=ELSEWHERE))
        site.kill_operator()
        await site.wait_until_settled(HOUR)
        # It was suspended, and muster refuses the spec with which it would be resumed.
        assert (site.get_phase(), site.find_condition("Suspended")[0]) == ("Refused", "True")
        assert site.operator is not None
        assert not any(place.assume_role_arn for place in site.operator.aws._connections)

    run_life(wire, life)


def test_who_puts_the_finalizer_on_a_refused_job_and_deletes_it_borrows_no_role(wire: Wire) -> None:
    async def life(site: Site) -> None:
        site.stored.create("vit", make_spec(sagemaker=block(assumeRoleArn=ELSEWHERE)))
        await site.wait_until(lambda: "assumeRoleArn" in site.find_condition("Accepted")[2])
        site.stored.forge("vit", [TRAINING_JOB_FINALIZER])
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert site.operator is not None
        assert not any(place.assume_role_arn for place in site.operator.aws._connections)

    run_life(wire, life)
