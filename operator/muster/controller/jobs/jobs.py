"""All jobs that the operator knows, each with its controller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.api.json_fields import mapping, string
from muster.clients.kubernetes.client import Change
from muster.controller.jobs.job_controller import JobController, JobControllerDependencies
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.resource import Resource

_log = logging.getLogger(__name__)


@dataclass
class Jobs:
    """Hears what happens to resources and passes it on to the job's controller.

    `met` is called with each resource when it is heard of first, `forget` with a job's uid when its resource is gone,
    `relisted` when the resources are being told all over again: no event tells what vanished meanwhile.
    """

    dependencies: JobControllerDependencies
    met: Callable[[Resource], None]
    forget: Callable[[str], None]
    relisted: Callable[[], None]
    _controllers: dict[str, JobController] = field(default_factory=dict)
    _uids: dict[tuple[str, str], str] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        """Hear of a change of a resource."""
        metadata = mapping(change.object.get("metadata"))
        uid, name = string(metadata.get("uid")), (string(metadata.get("namespace")), string(metadata.get("name")))
        if change.type == "DELETED":
            self.drop(uid)
            return
        if change.type == "ADDED" and uid in self._controllers:
            self.relisted()
        # There is only one resource of a name: the end of the other one was missed.
        former = self._uids.get(name)
        if former is not None and former != uid:
            self.drop(former)
        self._take(uid, change.object)
        self._uids[name] = uid

    def wake(self, uid: str) -> None:
        """Something else of the job changed: its pods."""
        controller = self._controllers.get(uid)
        if controller is not None:
            controller.wake()

    def drop(self, uid: str) -> None:
        """Forget a resource that was deleted. Kubernetes' garbage collector deletes its children."""
        self.dependencies.writing.room.forget(uid)
        resource = self._let_go(uid)
        self.dependencies.store.forget(uid)
        self.forget(uid)
        if resource is not None:
            _log.info("%s: the resource was deleted", resource)

    def let_wait(self, uid: str) -> None:
        """Forget a job for which there is no room until there is; its pods stay known."""
        self._let_go(uid)

    def _let_go(self, uid: str) -> Resource | None:
        """Forget the job; its resource as it was known."""
        controller = self._controllers.pop(uid, None)
        if controller is None:
            return None
        resource = controller.resource
        if self._uids.get((resource.namespace, resource.name)) == uid:
            del self._uids[resource.namespace, resource.name]
        task = controller.stop()
        # A turn that is under way may be this one, which found it out.
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        return resource

    def resources(self) -> tuple[Resource, ...]:
        """The newest known version of each job's resource."""
        return tuple(controller.resource for controller in self._controllers.values())

    async def stop(self, grace_seconds: float) -> None:
        """Begin no more turns; give those under way so many seconds."""
        tasks = {task for controller in self._controllers.values() if (task := controller.stop()) is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, uid: str, source: Object) -> None:
        controller = self._controllers.get(uid)
        if controller is None:
            controller = self._controllers[uid] = JobController(source, self.dependencies, self.drop, self.let_wait)
            controller.wake()
            self.met(controller.resource)
        else:
            controller.take(source)
