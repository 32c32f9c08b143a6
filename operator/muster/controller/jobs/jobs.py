"""All jobs of the operator, each with its controller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.api.json_fields import read_mapping, read_string
from muster.clients.kubernetes.client import Change
from muster.controller.jobs.job_controller import JobController, JobControllerDependencies
from muster.controller.jobs.shard_filter import ShardFilter
from muster.core.shard import Shard
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.resource import Resource

_log = logging.getLogger(__name__)


@dataclass
class Jobs:
    """Passes the changes of resources to their jobs' controllers.

    `on_added` is called with each new resource, `on_removed` with a job's uid after its resource is deleted.
    `on_relist` is called when kopf lists all resources again, because the list doesn't report missed deletions.
    """

    dependencies: JobControllerDependencies
    on_added: Callable[[Resource], None]
    on_removed: Callable[[str], None]
    on_relist: Callable[[], None]
    shard_filter: ShardFilter = field(default_factory=lambda: ShardFilter(Shard()))
    _controllers: dict[str, JobController] = field(default_factory=dict)
    _uids: dict[tuple[str, str], str] = field(default_factory=dict)

    def handle_change(self, change: Change) -> None:
        """Handle a change of a resource."""
        metadata = read_mapping(change.object.get("metadata"))
        uid = read_string(metadata.get("uid"))
        name = read_string(metadata.get("namespace")), read_string(metadata.get("name"))
        if change.type == "DELETED":
            self.remove(uid)
            return
        if change.type == "ADDED" and uid in self._controllers:
            self.on_relist()
        if uid not in self._controllers and not self.shard_filter.has_job(change.object):
            self.shard_filter.log_missing_shard(change.object)
            return
        # Another resource had the same name, and the watch missed its deletion.
        previous = self._uids.get(name)
        if previous is not None and previous != uid:
            self.remove(previous)
        self._add_or_update(uid, change.object)
        self._uids[name] = uid

    def wake(self, uid: str) -> None:
        """Reconcile the job soon, because one of its pods changed."""
        controller = self._controllers.get(uid)
        if controller is not None:
            controller.wake()

    def remove(self, uid: str) -> None:
        """Remove a deleted resource. Kubernetes' garbage collector deletes its objects."""
        resource = self._remove_controller(uid)
        self._drop_state(uid)
        if resource is not None:
            _log.info("%s: the resource was deleted", resource)

    def unload(self, uid: str) -> None:
        """Remove the controller of a job that has to wait for memory."""
        self._remove_controller(uid)

    def leave_to_other_shard(self, uid: str) -> None:
        """Remove the controller and the state of a job that another shard runs."""
        self._remove_controller(uid)
        self._drop_state(uid)

    def _drop_state(self, uid: str) -> None:
        self.dependencies.status_writer.job_memory.forget(uid)
        self.dependencies.store.remove_job(uid)
        self.on_removed(uid)

    def _remove_controller(self, uid: str) -> Resource | None:
        """Stop and remove the job's controller. Return its newest resource."""
        controller = self._controllers.pop(uid, None)
        if controller is None:
            return None
        resource = controller.resource
        if self._uids.get((resource.namespace, resource.name)) == uid:
            del self._uids[resource.namespace, resource.name]
        task = controller.stop()
        # The current reconcile may have called this method.
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        return resource

    def get_resources(self) -> tuple[Resource, ...]:
        """Return the newest known version of each job's resource."""
        return tuple(controller.resource for controller in self._controllers.values())

    async def stop(self, grace_seconds: float) -> None:
        """Start no more reconciles, and cancel the current ones after `grace_seconds`."""
        tasks = {task for controller in self._controllers.values() if (task := controller.stop()) is not None}
        if not tasks:
            return
        _, unfinished_tasks = await asyncio.wait(tasks, timeout=grace_seconds)
        for task in unfinished_tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _add_or_update(self, uid: str, source: Object) -> None:
        controller = self._controllers.get(uid)
        if controller is None:
            controller = self._controllers[uid] = JobController(
                source, self.dependencies, self.remove, self.unload, self.leave_to_other_shard
            )
            controller.wake()
            self.on_added(controller.resource)
        else:
            controller.handle_change(source)
