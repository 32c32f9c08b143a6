"""The status of a resource that was deleted, for as long as its training job has to be brought to its end."""

from muster.api.spec import Metadata
from muster.api.status import Condition, Status
from muster.api.timestamps import to_seconds
from muster.plan.outcome import final_condition
from muster.plan.training_job_course import told_of
from muster.plan.training_job_facts import TrainingFacts
from muster.plan.training_job_leaving import Leave, LetGo, Wait
from muster.plan.training_job_name import training_job_name
from muster.status.conditions import since
from muster.status.sentences import fit

LEFT_RUNNING = "TrainingJobLeftRunning"


def leaving(  # noqa: PLR0917 - all that was found out and decided in a turn
    metadata: Metadata, previous: Status, facts: TrainingFacts, todo: Leave, generation: int, now: float
) -> Status:
    """`previous` with what is done about the training job at `now` (Unix seconds)."""
    kept = previous.model_copy(update={"observed_generation": generation})
    told = told_of(previous)
    if told is None or (final_condition(previous) is not None and not _is_left(todo)):
        return kept
    # Made anew: others may write the status, too, and people do what it says.
    name = training_job_name(metadata, told.attempt)
    if isinstance(todo, LetGo):
        return (
            kept if todo.left_behind is None else _left(kept, name, told.region, todo.left_behind.trouble.message, now)
        )
    obstacle = facts.blind or facts.stale or facts.unclear or facts.setback
    why = f"; {obstacle.trouble.message}" if obstacle is not None and obstacle.tries > 1 else ""
    what = "is being stopped" if isinstance(todo, Wait) else "is stopped"
    message = fit(f"The resource was deleted: training job {name} {what}{why}")
    return kept.model_copy(update={"phase": "Stopping", "message": message})


def _is_left(todo: Leave) -> bool:
    return isinstance(todo, LetGo) and todo.left_behind is not None


def _left(kept: Status, name: str, region: str, why: str, now: float) -> Status:
    message = fit(
        f"Training job {name} may still run, and cost money: muster can't stop it, and lets its resource go. Stop it: "
        f"aws sagemaker stop-training-job --region {region} --training-job-name {name}. {why}"
    )
    stalled = Condition(
        type="Stalled",
        status="True",
        reason=LEFT_RUNNING,
        message=message,
        last_transition_time=since(kept, "Stalled", "True") or to_seconds(now),
        observed_generation=kept.observed_generation,
    )
    others = tuple(entry for entry in kept.conditions if entry.type != "Stalled")
    return kept.model_copy(update={"phase": "Stopping", "message": message, "conditions": (*others, stalled)})
