"""What is asked of the coordinators of many groups: each broker once, for all groups that it coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lowwater.client.admin.asking import ask_all
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import coordinators
from lowwater.client.errors import BrokerError, ClientError, broker_error
from lowwater.errors import ErrorCode

V = TypeVar("V")


async def of_coordinators(
    cluster: Cluster,
    groups: Iterable[str],
    request: Callable[[list[str]], Any],
    read: Callable[[Any, int], Mapping[str, V | ClientError]],
    api: type[Any] | None = None,
    versions: tuple[int, int] | None = None,
) -> Outcomes[str, V]:
    """Results by group: `request` asks for some groups, `read` finds them in the answer of a broker."""

    async def attempt(left: list[str], left_ms: float) -> dict[str, V | ClientError]:
        found = await coordinators(cluster, left, timeout_ms=left_ms)
        results: dict[str, V | ClientError] = {
            group: error for group, error in found.items() if isinstance(error, ClientError)
        }
        node_groups: dict[int, list[str]] = {}
        for group, node in found.items():
            if isinstance(node, int):
                node_groups.setdefault(node, []).append(group)
        requests = {node: request(names) for node, names in node_groups.items()}
        for node, answer in (await ask_all(cluster, requests, left_ms, api, versions)).items():
            results |= _read(answer, node, node_groups[node], read)
        return {group: results[group] if group in results else _left_out(group) for group in left}

    return await settle(cluster, groups, attempt)


def _read(
    answer: Any, node: int, groups: list[str], read: Callable[[Any, int], Mapping[str, V | ClientError]]
) -> Mapping[str, V | ClientError]:
    return dict.fromkeys(groups, answer) if isinstance(answer, ClientError) else read(answer, node)


def _left_out(group: str) -> ClientError:
    return group_error(ErrorCode.UNKNOWN_SERVER_ERROR, group, "a broker left it out of its answer")


def group_error(code: int, group: str, message: str | None = None) -> BrokerError:
    return broker_error(code, f"group {group!r}", advice=message or "")
