"""The allowed fields of a template are those of a real API server's pods."""

import json
from collections.abc import Mapping

from cluster.shared import Cluster
from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.validation.rules.pods.schema import load_pod_schema
from muster.clients.kubernetes.client import Client

OF_THEIR_OWN = {"Quantity": "quantity", "IntOrString": "port", "Time": "text", "FieldsV1": "anything"}


def kind(schema: Mapping[str, JSON]) -> str:
    """Return the type of a field, as muster writes it."""
    listed = schema.get("allOf")
    referring = read_mapping(listed[0]) if isinstance(listed, list) else schema
    reference = read_string(referring.get("$ref")).rpartition(".")[2]
    if reference:
        return OF_THEIR_OWN.get(reference, reference)
    match schema.get("type"):
        case "array":
            return f"[{kind(read_mapping(schema.get('items')))}]"
        case "object":
            return f"{{{kind(read_mapping(schema.get('additionalProperties')))}}}"
        case "string":
            return "text"
        case other:
            return str(other)


async def test_what_the_api_server_knows_of_pods_muster_knows(cluster: Cluster) -> None:
    cluster.up()
    client = await Client.connect(str(cluster.kubeconfig))
    try:
        schemas = read_mapping(json.loads(await client.read("/openapi/v3/api/v1"))["components"]["schemas"])
    finally:
        await client.close()
    core = {name.rpartition(".")[2]: read_mapping(value) for name, value in schemas.items() if ".core.v1." in name}
    current = load_pod_schema().types
    told = {name: read_mapping(core[name].get("properties")) for name in current if name in core}
    assert {
        name: {field: kind(read_mapping(each)) for field, each in fields.items()} for name, fields in told.items()
    } == {
        name: {field: current[name][field] for field in fields if field in current[name]}
        for name, fields in told.items()
    }
    assert len(told) > len(current) * 0.9
