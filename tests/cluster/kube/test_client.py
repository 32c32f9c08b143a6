import asyncio
import contextlib
import json
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.api_proxy import PASS, Answer, ApiProxy, Call, Drop, Fate, Pass
from cluster.kube.builders import config_map, meta, pod
from muster.clients.kubernetes import client as client_module
from muster.clients.kubernetes import session
from muster.clients.kubernetes.adaptive_limit import INITIAL_LIMIT
from muster.clients.kubernetes.client import Change, Client, LogOptions
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError, Cause
from muster.objects.kubernetes.kinds import CONFIG_MAPS, PODS, Object, ParseOptions


async def created(client: Client, namespace: str, name: str = "one") -> Object:
    return await client.create(CONFIG_MAPS, namespace, config_map(name, a="1"))


async def test_what_is_created_is_read_back(client: Client, namespace: str) -> None:
    made = await created(client, namespace)
    assert await client.get(CONFIG_MAPS, namespace, "one") == made
    assert made["data"] == {"a": "1"}
    # Fields that the client itself never reads.
    stored = json.loads(await client.read(CONFIG_MAPS.build_path(namespace, "one")))
    assert [entry["manager"] for entry in stored["metadata"]["managedFields"]] == ["muster"]


async def test_a_name_that_is_taken_is_no_other_conflict(client: Client, namespace: str) -> None:
    await created(client, namespace)
    with pytest.raises(ApiError) as caught:
        await created(client, namespace)
    assert (caught.value.already_exists, caught.value.is_conflict) == (True, False)


async def test_a_large_object_is_created_without_returning_it(client: Client, namespace: str) -> None:
    await client.create_large(CONFIG_MAPS, namespace, config_map("one", a="1"))
    assert (await client.get(CONFIG_MAPS, namespace, "one"))["data"] == {"a": "1"}
    with pytest.raises(ApiError) as caught:
        await client.create_large(CONFIG_MAPS, namespace, config_map("one", a="1"))
    assert caught.value.already_exists


async def test_a_field_that_the_api_server_does_not_know_is_refused(client: Client, namespace: str) -> None:
    body: Object = {**config_map("one"), "dada": {}}
    for attempt in (client.create, client.dry_run_create):
        with pytest.raises(ApiError, match='unknown field "dada"') as caught:
            await attempt(CONFIG_MAPS, namespace, body)
        assert caught.value.is_refusal


async def test_what_is_wrong_is_told_by_field(client: Client, namespace: str) -> None:
    body: Object = {**pod("one"), "spec": {"containers": []}}
    with pytest.raises(ApiError) as caught:
        await client.dry_run_create(PODS, namespace, body)
    assert (caught.value.status, caught.value.reason) == (422, "Invalid")
    assert caught.value.causes == (Cause("spec.containers", "Required value"),)


async def test_a_rehearsal_creates_nothing(client: Client, namespace: str) -> None:
    rehearsed = await client.dry_run_create(CONFIG_MAPS, namespace, config_map("one"))
    assert meta(rehearsed, "uid")
    with pytest.raises(ApiError) as caught:
        await client.get(CONFIG_MAPS, namespace, "one")
    assert caught.value.is_not_found


async def test_a_subresource_is_merged_alone(client: Client, namespace: str) -> None:
    await client.create(PODS, namespace, pod("one", "true", scheduler="nobody"))
    patch: Object = {"status": {"message": "hello"}, "metadata": {"labels": {"x": "y"}}}
    merged = await client.merge(PODS, namespace, "one", patch, "status")
    assert merged["status"]["message"] == "hello"  # type: ignore[index,call-overload]


async def test_a_replacement_of_an_old_version_is_a_conflict(client: Client, namespace: str) -> None:
    first = await created(client, namespace)
    second = await client.replace(CONFIG_MAPS, namespace, "one", {**first, "data": {"a": "2"}})
    assert second["data"] == {"a": "2"}
    with pytest.raises(ApiError) as caught:
        await client.replace(CONFIG_MAPS, namespace, "one", {**first, "data": {"a": "3"}})
    assert (caught.value.is_conflict, caught.value.already_exists) == (True, False)


async def test_only_the_object_that_was_meant_is_deleted(client: Client, namespace: str) -> None:
    made = await created(client, namespace)
    await client.delete(CONFIG_MAPS, namespace, "one", uid="5d3a0c7e-0000-0000-0000-000000000000")
    assert await client.get(CONFIG_MAPS, namespace, "one") == made
    await client.delete(CONFIG_MAPS, namespace, "one", uid=meta(made, "uid"))
    with pytest.raises(ApiError):
        await client.get(CONFIG_MAPS, namespace, "one")
    await client.delete(CONFIG_MAPS, namespace, "one", uid=meta(made, "uid"))


async def test_grace_is_the_deleters(client: Client, namespace: str) -> None:
    await client.create(PODS, namespace, pod("one", "true", scheduler="nobody"))
    await client.delete(PODS, namespace, "one", grace_seconds=0)
    with pytest.raises(ApiError):
        await client.get(PODS, namespace, "one")


async def test_a_list_in_pages_is_whole(client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 2)
    names = [f"m{number}" for number in range(5)]
    for name in names:
        await client.create(CONFIG_MAPS, namespace, config_map(name, {"mine": "yes"}))
    listing = await client.list(CONFIG_MAPS, namespace, labels="mine=yes")
    assert [meta(item, "name") for item in listing.items] == names
    assert {(item["apiVersion"], item["kind"]) for item in listing.items} == {("v1", "ConfigMap")}
    everywhere = await client.list(CONFIG_MAPS, labels="mine=yes")
    assert set(names) <= {meta(item, "name") for item in everywhere.items}
    one = await client.list(CONFIG_MAPS, namespace, fields="metadata.name=m3")
    assert [meta(item, "name") for item in one.items] == ["m3"]


async def test_a_list_of_large_objects_comes_in_smaller_parts(
    proxy: ApiProxy, proxied: Client, client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 16)
    monkeypatch.setattr(client_module, "PAGE_BYTES", 40_000)
    names = [f"m{number}" for number in range(6)]
    for name in names:
        await client.create(CONFIG_MAPS, namespace, config_map(name, {"mine": "yes"}, x="y" * 30_000))
    listing = await proxied.list(CONFIG_MAPS, namespace, labels="mine=yes")
    assert [meta(item, "name") for item in listing.items] == names
    # 16 requests at once are too many, and 2 are too many as well. Then the client sends each request alone.
    assert [call.verb for call in proxy.calls].count("list") == 2 + len(names)


async def test_one_object_may_be_longer_than_a_part_of_a_list(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PAGE_BYTES", 1000)
    await client.create(CONFIG_MAPS, namespace, config_map("m", {"mine": "yes"}, x="y" * 30_000))
    assert len((await client.list(CONFIG_MAPS, namespace, labels="mine=yes")).items) == 1


async def test_only_metadata_is_sent_where_nothing_else_is_read(client: Client, namespace: str) -> None:
    kind = replace(CONFIG_MAPS, parse_options=ParseOptions(metadata=frozenset({"name"}), parts=frozenset()))
    await client.create(CONFIG_MAPS, namespace, config_map("m", {"mine": "yes"}, x="y"))
    (item,) = (await client.list(kind, namespace, labels="mine=yes")).items
    assert (item["metadata"], "data" in item) == ({"name": "m"}, False)
    assert (await client.get(CONFIG_MAPS, namespace, "m"))["data"] == {"x": "y"}


async def test_a_watch_tells_what_happens_after_a_list(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, namespace, config_map("before", {"mine": "yes"}))
    since = (await client.list(CONFIG_MAPS, namespace, labels="mine=yes")).resource_version
    made = await client.create(CONFIG_MAPS, namespace, config_map("one", {"mine": "yes"}))
    await client.merge(CONFIG_MAPS, namespace, "one", {"data": {"a": "é" * 70_000}})
    await client.delete(CONFIG_MAPS, namespace, "one")
    value: list[Change] = []
    watch = client.watch(CONFIG_MAPS, namespace, resource_version=since, labels="mine=yes")
    async with aclosing(watch) as changes:
        async for change in changes:
            value.append(change)
            if change.type == "DELETED":
                break
    assert [change.type for change in value] == ["ADDED", "MODIFIED", "DELETED"]
    assert value[0].object == made
    assert value[1].object["data"] == {"a": "é" * 70_000}


async def test_other_paths_are_read(client: Client) -> None:
    assert "keys" in json.loads(await client.read("/openid/v1/jwks"))
    with pytest.raises(ApiError) as caught:
        await client.read("/nothing/here")
    assert caught.value.is_not_found


async def test_logs_are_followed_to_their_end(client: Client, namespace: str) -> None:
    script = "import time\nfor i in range(3): print('line', i, flush=True); time.sleep(0.2)"
    await client.create(PODS, namespace, pod("one", "python3", "-c", script))
    whole = await log_once_started(client, namespace)
    assert whole == b"line 0\nline 1\nline 2\n"
    options = LogOptions(container="only", tail_lines=1, timestamps=True)
    last = b"".join([chunk async for chunk in client.log(namespace, "one", options)])
    assert last.endswith(b"Z line 2\n")
    later = LogOptions(since_time="2099-01-01T00:00:00Z")
    assert b"".join([chunk async for chunk in client.log(namespace, "one", later)]) == b""


async def log_once_started(client: Client, namespace: str) -> bytes:
    """Wait until the container has started: the API server first refuses, and a kubelet returns an empty log for a
    container that was created and not started.
    """
    while True:
        with contextlib.suppress(ApiError):
            whole = b"".join([chunk async for chunk in client.log(namespace, "one", LogOptions(follow=True))])
            if whole:
                return whole
        await asyncio.sleep(0.1)


async def test_what_was_never_sent_was_not_done(
    proxy: ApiProxy, proxied: Client, client: Client, namespace: str
) -> None:
    proxy.decide = lambda call: Drop() if call.verb == "create" else PASS
    with pytest.raises(ApiError) as caught:
        await created(proxied, namespace)
    assert caught.value.status == NO_RESPONSE
    with pytest.raises(ApiError):
        await client.get(CONFIG_MAPS, namespace, "one")
    assert [(call.verb, call.resource, call.namespace) for call in proxy.calls] == [("create", "configmaps", namespace)]


async def test_a_question_is_asked_again_when_its_connection_was_closed(
    proxy: ApiProxy, proxied: Client, namespace: str
) -> None:
    await proxied.list(CONFIG_MAPS, namespace)
    proxy.decide = lambda call: Drop() if call.number == 1 else PASS
    await proxied.list(CONFIG_MAPS, namespace)
    assert [call.verb for call in proxy.calls] == ["list"] * 3


async def test_a_late_answer_is_no_answer(
    proxy: ApiProxy, proxied: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "RESPONSE_SECONDS", 0.2)
    proxy.decide = lambda _: Pass(seconds=5)
    with pytest.raises(ApiError, match="within") as caught:
        await proxied.get(CONFIG_MAPS, namespace, "one")
    assert caught.value.status == NO_RESPONSE


async def test_a_namespace_begins_with_8_requests_at_once_and_watches_are_not_counted(
    proxy: ApiProxy, proxied: Client, namespace: str
) -> None:
    watches = [proxied.watch(CONFIG_MAPS, namespace, resource_version="0") for _ in range(70)]
    for watch in watches:
        await anext(watch)
    before, full = len(proxy.calls), asyncio.Event()

    def decide(call: Call) -> Fate:
        if call.number == before + int(INITIAL_LIMIT) - 1:
            full.set()
        return Pass(seconds=3)

    proxy.decide = decide
    gets = [asyncio.create_task(proxied.list(CONFIG_MAPS, namespace)) for _ in range(80)]
    await full.wait()
    # Wait, so that an unexpected further request has time to arrive.
    await asyncio.sleep(0.1)
    assert len(proxy.calls) == before + int(INITIAL_LIMIT)
    proxy.decide = lambda _: PASS
    await asyncio.gather(*gets)
    for watch in watches:
        await watch.aclose()


async def test_an_expired_token_is_read_again(proxy: ApiProxy, namespace: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    document = json.loads(proxy.kubeconfig.read_text())
    document["users"][0]["user"] = {"tokenFile": str(token)}
    proxy.kubeconfig.write_text(json.dumps(document))
    client = await Client.connect(str(proxy.kubeconfig))
    token.write_text("new")

    def decide(call: Call) -> Fate:
        return PASS if call.authorization == "Bearer new" else Answer(401, "Unauthorized")

    proxy.decide = decide
    try:
        await asyncio.gather(*(client.list(CONFIG_MAPS, namespace) for _ in range(3)))
        token.write_text("worse")
        proxy.decide = lambda _: Answer(401, "Unauthorized")
        with pytest.raises(ApiError) as caught:
            await client.list(CONFIG_MAPS, namespace)
        assert caught.value.status == 401
    finally:
        await client.close()


async def test_a_stream_that_is_cut_is_no_end(proxy: ApiProxy, proxied: Client, namespace: str) -> None:
    watch = proxied.watch(CONFIG_MAPS, namespace, resource_version="0")
    await anext(watch)
    proxy.cut_watches()
    with pytest.raises(ApiError) as caught:
        # Earlier changes are reported first.
        [change async for change in watch]
    assert caught.value.status == NO_RESPONSE


async def test_it_says_who_it_is(proxy: ApiProxy, proxied: Client, namespace: str) -> None:
    await proxied.list(CONFIG_MAPS, namespace)
    assert proxy.calls[0].agent.startswith("muster/")
