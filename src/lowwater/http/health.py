"""Whether the cluster answers, what its brokers are, what the broker beside us counts, and metrics of all of it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from lowwater.client.errors import ClientError
from lowwater.http.metrics import CONTENT_TYPE, render
from lowwater.http.openapi import document
from lowwater.http.operations import Call, operation
from lowwater.http.problem import Problem
from lowwater.http.schema import array, boolean, integer, nullable, record, string

_BROKER = record(id=integer(), host=string(), port=integer(), rack=nullable(string()))
_CLUSTER = record(
    id=string("Of the cluster."),
    controller=integer("The id of a broker, or -1."),
    brokers=array(_BROKER),
    counters=nullable({"type": "object", "description": "What the broker beside this server counts of itself."}),
)


@operation("GET", "/healthz", "Whether the cluster answers", tag="health", answer=record(ok=boolean()), statuses=(503,))
async def healthz(call: Call) -> Any:
    try:
        await call.desk.admin.describe_cluster()
    except ClientError as error:
        raise Problem(503, "CLUSTER_UNREACHABLE", str(error)) from None
    return {"ok": True}


@operation("GET", "/cluster", "The brokers, and the counters of the embedded one", tag="health", answer=_CLUSTER)
async def cluster(call: Call) -> Any:
    told = await call.desk.admin.describe_cluster()
    return {
        "id": told.id,
        "controller": told.controller,
        "brokers": [{"id": one.id, "host": one.host, "port": one.port, "rack": one.rack} for one in told.brokers],
        "counters": await call.desk.counters(),
    }


@operation("GET", "/metrics", "Everything as Prometheus reads it", tag="health", answer=string())
async def metrics(call: Call) -> Response:
    return Response(await render(call.desk), media_type=CONTENT_TYPE)


@operation("GET", "/openapi.json", "This API, described", tag="health", answer={"type": "object"})
async def openapi(call: Call) -> Any:
    return document()


@operation("GET", "/events", "An event whenever there is something new to see", tag="health", answer=string())
async def events(call: Call) -> Response:
    return call.desk.events.stream()
