import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cluster.api_proxy import PASS, Answer, ApiProxy, Call, Drop, Fate, Stream, error_event
from cluster.kube.builders import config_map, meta
from cluster.shared import Kubectl
from muster.clients.kubernetes.client import Change, Client
from muster.clients.kubernetes.informer import Informer
from muster.clients.kubernetes.object_versions import NoObjectVersions
from muster.objects.kubernetes.kinds import CONFIG_MAPS, ParseOptions

MINE = "mine=yes"


@dataclass
class Listener:
    """Stores the reported changes; a test waits for a number of them, or makes the callback fail."""

    told: list[tuple[str, str]] = field(default_factory=list)
    last: Change | None = None
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, change: Change) -> None:
        self.told.append((change.type, meta(change.object, "name")))
        self.last = change
        self.came.set()

    async def until(self, count: int) -> list[tuple[str, str]]:
        async with asyncio.timeout(60):
            while len(self.told) < count:
                self.came.clear()
                await self.came.wait()
        return self.told


@contextlib.asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(60):
            await informer.synced.wait()
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def informer(client: Client, namespace: str, listener: Callable[[Change], None], silence: float = 60) -> Informer:
    return Informer(client, CONFIG_MAPS, (namespace,), listener, labels=MINE, silence_seconds=silence)


async def make(client: Client, namespace: str, name: str, label: str = "yes") -> None:
    await client.create(CONFIG_MAPS, namespace, config_map(name, {"mine": label}))


async def touch(client: Client, namespace: str, name: str) -> None:
    await client.merge(CONFIG_MAPS, namespace, name, {"data": {"touched": "yes"}})


async def test_what_is_there_and_what_happens_is_told_in_order(client: Client, namespace: str) -> None:
    listener = Listener()
    await make(client, namespace, "a")
    await client.create(CONFIG_MAPS, namespace, config_map("not-mine"))
    async with running(informer(client, namespace, listener)):
        assert listener.told == [("ADDED", "a")]
        await make(client, namespace, "b")
        await touch(client, namespace, "a")
        await client.delete(CONFIG_MAPS, namespace, "b")
        assert await listener.until(4) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


def once(matches: Callable[[Call], bool], fate: Fate) -> Callable[[Call], Fate]:
    """Return a decision for the first call that matches. Other calls pass."""
    fates: Iterator[Fate] = iter([fate])
    return lambda call: next(fates, PASS) if matches(call) else PASS


PROBLEMS: dict[str, Callable[[], Callable[[Call], Fate]]] = {
    "the list is too old": lambda: once(is_verb("list"), Answer(410, "Expired")),
    "the list is refused": lambda: once(is_verb("list"), Answer(403, "Forbidden")),
    "the list fails": lambda: once(is_verb("list"), Answer(500, "InternalError")),
    "the list has no answer": lambda: once(is_verb("list"), Drop()),
    "the watch is too old": lambda: once(is_verb("watch"), Answer(410, "Expired")),
    "the watch turns too old": lambda: once(is_verb("watch"), Stream(error_event(410, "Expired"))),
    "the watch turns wrong": lambda: once(is_verb("watch"), Stream(error_event(500, "InternalError"))),
    "there are too many requests": lambda: once(is_verb("watch"), Answer(429, "TooManyRequests", retry_after=1)),
    "the watch fails": lambda: once(is_verb("watch"), Answer(500, "InternalError")),
    "the watch is from the future": lambda: once(is_verb("watch"), Answer(504, "Timeout", retry_after=1)),
    "the watch has no answer": lambda: once(is_verb("watch"), Drop()),
    "the watch ends at once": lambda: once(is_verb("watch"), Stream(b"")),
    "a line is no JSON": lambda: once(is_verb("watch"), Stream(b'{"type": "ADDED", "obj\n')),
    "a line is no object": lambda: once(is_verb("watch"), Stream(b"[]\n")),
    "a change is of no known type": lambda: once(is_verb("watch"), Stream(b'{"type": "RENAMED", "object": {}}\n')),
}


def is_verb(verb: str) -> Callable[[Call], bool]:
    return lambda call: call.verb == verb


async def test_nothing_is_lost_or_told_twice(client: Client, kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    """All problems at the same time, because an informer waits before it tries again."""

    async def check(label: str, problem: Callable[[Call], Fate]) -> None:
        listener, folder, (a, b) = Listener(), tmp_path / label, (f"{label}-a", f"{label}-b")
        folder.mkdir()
        await make(client, namespace, a, label)
        async with ApiProxy.serve(folder, kubectl.kubeconfig) as proxy:
            proxied = await Client.connect(str(proxy.kubeconfig))
            proxy.decide = problem
            async with running(Informer(proxied, CONFIG_MAPS, (namespace,), listener, labels=f"mine={label}")):
                await make(client, namespace, b, label)
                assert await listener.until(2) == [("ADDED", a), ("ADDED", b)]
                await touch(client, namespace, a)
                assert (await listener.until(3))[2:] == [("MODIFIED", a)]
            await proxied.close()

    async with asyncio.TaskGroup() as group:
        for name, make_problem in PROBLEMS.items():
            group.create_task(check(name.replace(" ", "-").lower(), make_problem()), name=name)


async def test_a_watch_that_was_cut_goes_on_where_it_was(
    proxy: ApiProxy, proxied: Client, client: Client, namespace: str
) -> None:
    listener = Listener()
    async with running(informer(proxied, namespace, listener)):
        for number in range(3):
            await make(client, namespace, f"m{number}")
            await listener.until(number + 1)
            proxy.cut_watches()
        await make(client, namespace, "last")
        assert await listener.until(4) == [("ADDED", name) for name in ("m0", "m1", "m2", "last")]
    assert [call.verb for call in proxy.calls].count("list") == 1


async def test_what_vanished_in_a_gap_is_told(proxy: ApiProxy, proxied: Client, client: Client, namespace: str) -> None:
    listener = Listener()
    for name in ("gone", "kept", "touched", "replaced"):
        await make(client, namespace, name)
    first = await client.get(CONFIG_MAPS, namespace, "replaced")
    async with running(informer(proxied, namespace, listener)):
        await gap(proxy, listener, client, namespace)
        value = (await listener.until(9))[4:]
    assert value[:4] == [("ADDED", "new"), ("DELETED", "replaced"), ("ADDED", "replaced"), ("MODIFIED", "touched")]
    assert value[4:] == [("DELETED", "gone")]
    assert listener.last is not None
    assert meta(listener.last.object, "uid") not in ("", meta(first, "uid"))
    assert meta(listener.last.object, "name") == "gone"


async def gap(proxy: ApiProxy, listener: Listener, client: Client, namespace: str) -> None:
    """Changes inside the block are not reported, and can't be watched afterwards."""
    await listener.until(4)
    proxy.decide = lambda _: Answer(503, "ServiceUnavailable")
    proxy.cut_watches()
    await client.delete(CONFIG_MAPS, namespace, "gone")
    await touch(client, namespace, "touched")
    await client.delete(CONFIG_MAPS, namespace, "replaced")
    await make(client, namespace, "replaced")
    await make(client, namespace, "new")
    proxy.decide = once(is_verb("watch"), Answer(410, "Expired"))


async def test_a_silent_watch_is_dropped(proxy: ApiProxy, proxied: Client, client: Client, namespace: str) -> None:
    listener = Listener()
    watched = asyncio.Event()

    def decide(call: Call) -> Fate:
        if call.verb == "watch":
            watched.set()
        return PASS

    proxy.decide = decide
    async with running(informer(proxied, namespace, listener, silence=1.0)):
        await watched.wait()
        proxy.stall_watches()
        await make(client, namespace, "a")
        watched.clear()
        await watched.wait()
        assert listener.told == []
        proxy.release_watches()
        assert await listener.until(1) == [("ADDED", "a")]


async def test_a_listener_that_fails_hears_the_rest(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    listener = Listener()

    def fail_at_first(change: Change) -> None:
        listener(change)
        if len(listener.told) == 1:
            raise RuntimeError("a mistake")

    await make(client, namespace, "a")
    await make(client, namespace, "b")
    async with running(informer(client, namespace, fail_at_first)):
        assert listener.told == [("ADDED", "a"), ("ADDED", "b")]
    assert "a mistake" in caplog.text


async def test_an_object_of_which_a_part_cannot_be_read_is_told_of_and_hides_no_other(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    kind = replace(CONFIG_MAPS, parse_options=ParseOptions(max_bytes={"data": 1000}))
    listener = Listener()
    for name in ("a", "b", "c"):
        await client.create(CONFIG_MAPS, namespace, config_map(name, {"mine": "yes"}, x="y" * (2000 * (name == "b"))))
    async with running(Informer(client, kind, (namespace,), listener, labels=MINE)):
        assert await listener.until(2) == [("ADDED", "a"), ("ADDED", "c")]
        await touch(client, namespace, "b")
        await client.merge(CONFIG_MAPS, namespace, "c", {"data": {"x": "y" * 2000}})
        assert await listener.until(3) == [("ADDED", "a"), ("ADDED", "c"), ("MODIFIED", "c")]
        await client.delete(CONFIG_MAPS, namespace, "a")
        assert (await listener.until(4))[3:] == [("DELETED", "a")]
    skipped = [line for line in caplog.messages if "muster skips" in line]
    assert [line.split()[3].rstrip(":") for line in skipped] == [f"{namespace}/b", f"{namespace}/c"]


async def test_what_is_not_remembered_is_told_again_after_a_gap(
    proxy: ApiProxy, proxied: Client, client: Client, namespace: str
) -> None:
    listener = Listener()
    await make(client, namespace, "a")
    proxy.decide = once(is_verb("watch"), Stream(error_event(410, "Expired")))
    async with running(Informer(proxied, CONFIG_MAPS, (namespace,), listener, labels=MINE, versions=NoObjectVersions)):
        assert await listener.until(2) == [("ADDED", "a"), ("ADDED", "a")]
