"""Whom the connections of a cluster's board count for."""

from aiohttp import web

from muster.cli.web.served.connections import MAX_PER_READER, BoardConnection, BoardConnections


async def test_a_connection_that_changes_to_a_reader_with_too_many_still_counts_for_its_first_reader() -> None:
    connections, server = BoardConnections(), web.Server(_answer)
    first, *others, changed = [BoardConnection(server, connections) for _ in range(MAX_PER_READER + 1)]
    for connection in (first, *others, changed):
        assert connections.add(connection)
        assert connection.admit("bob" if connection is changed else "alice")

    assert not changed.admit("alice")
    assert connections.readers == {"alice": MAX_PER_READER, "bob": 1}
    assert first.admit("bob")
    assert changed.admit("alice")
    assert connections.readers == {"alice": MAX_PER_READER, "bob": 1}
    assert not connections.unknown


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    del request
    return web.Response()
