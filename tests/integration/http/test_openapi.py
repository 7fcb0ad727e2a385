"""The API keeps to its document, whatever is asked: generated requests, every answer checked against it."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.fresh import fresh
from tests.integration.http.served import Cluster, Served

import lowwater.http.app  # noqa: F401  declares all operations
from lowwater.http.openapi import document

ENDLESS = "/events"
# Start positions are a language of their own, a reset wants one of two fields, an offset may not be in the log, and a
# place in a list is only known to who gave it out.
UNSURE = (
    "/consumer-groups",
    "/consumer-groups/{group}/reset",
    "/topics/{topic}/records",
    "/topics/{topic}/partitions/{partition}/records",
)
ADDRESSES = [(path, method) for path, methods in document()["paths"].items() for method in methods if path != ENDLESS]


def takes_anything(path: str, method: str) -> bool:
    told = document()["paths"][path][method]
    return bool(told["parameters"] or "requestBody" in told)


@pytest.fixture(scope="module")
def api(served: Served, cluster: Cluster) -> schemathesis.Schema:
    """As the server tells it, with something to be found."""
    topic = cluster.create(fresh("known"), 2)
    cluster.write(topic, [b"x"] * 3)
    cluster.commit(fresh("known"), topic, {0: 1, 1: 0})
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


def check(api: schemathesis.Schema, path: str, method: str, mode: GenerationMode) -> None:
    operation = api[path][method.upper()]

    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: schemathesis.Case) -> None:
        unsure = [positive_data_acceptance] if path in UNSURE else []
        case.call_and_validate(timeout=60, excluded_checks=unsure)

    asked()


@pytest.mark.parametrize(("path", "method"), ADDRESSES)
def test_what_is_asked_as_documented_is_answered_as_documented(
    api: schemathesis.Schema, path: str, method: str
) -> None:
    check(api, path, method, GenerationMode.POSITIVE)


@pytest.mark.parametrize(("path", "method"), [one for one in ADDRESSES if takes_anything(*one)])
def test_what_is_asked_otherwise_is_refused_as_documented(api: schemathesis.Schema, path: str, method: str) -> None:
    check(api, path, method, GenerationMode.NEGATIVE)
