"""Which groups there are, and deleting them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lowwater.client.admin.asking import ask_all
from lowwater.client.admin.by_coordinator import group_error, of_coordinators
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError, broker_error
from lowwater.wire.messages import DeleteGroupsRequest, ListGroupsRequest

CLASSIC, CONSUMER = "classic", "consumer"
"""How a group shares partitions: among its members, or by its coordinator."""

_STATES_SINCE = 4
_TYPES_SINCE = 5


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """`state` and `kind` are empty where the broker does not tell. `protocol` is "consumer" for readers of topics."""

    group: str
    state: str = ""
    kind: str = ""
    protocol: str = ""


@dataclass(frozen=True, slots=True)
class Groups:
    """What was found, and the brokers that did not answer: their groups are not among those found."""

    groups: Mapping[str, ListedGroup]
    failed: Mapping[int, ClientError]

    def checked(self) -> dict[str, ListedGroup]:
        """All groups there are; the first error when a broker did not answer."""
        for error in self.failed.values():
            raise error
        return dict(self.groups)


async def list_groups(cluster: Cluster, *, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> Groups:
    """Every group of every broker, or those in some states and of some kinds."""
    wanted_states, wanted_kinds = list(states), list(kinds)

    def request(version: int) -> ListGroupsRequest:
        return ListGroupsRequest(
            states_filter=wanted_states if version >= _STATES_SINCE else [],
            types_filter=wanted_kinds if version >= _TYPES_SINCE else [],
        )

    async def attempt(left: list[int], left_ms: float) -> dict[int, list[ListedGroup] | ClientError]:
        answers = await ask_all(cluster, dict.fromkeys(left, request), left_ms, api=ListGroupsRequest)
        return {node: each if isinstance(each, ClientError) else _listed(node, each) for node, each in answers.items()}

    outcomes = await settle(cluster, await cluster.brokers(), attempt)
    found = {one.group: one for groups in outcomes.values() for one in groups}
    # Brokers that do not know the filters send all.
    kept = {
        name: one
        for name, one in sorted(found.items())
        if _passes(one.state, wanted_states) and _passes(one.kind, wanted_kinds)
    }
    return Groups(kept, outcomes.failed)


def _passes(value: str, wanted: list[str]) -> bool:
    return not wanted or value.lower() in {each.lower() for each in wanted}


def _listed(node: int, answer: Any) -> list[ListedGroup] | ClientError:
    if answer.error_code:
        return broker_error(answer.error_code, f"broker {node} does not list its groups")
    return [
        ListedGroup(each.group_id, each.group_state, each.group_type.lower(), each.protocol_type)
        for each in answer.groups
    ]


async def delete_groups(cluster: Cluster, groups: Iterable[str]) -> Outcomes[str, None]:
    """Delete groups that have no members, with all they have committed."""

    def read(answer: Any, _: int) -> dict[str, ClientError | None]:
        return {
            each.group_id: group_error(each.error_code, each.group_id) if each.error_code else None
            for each in answer.results
        }

    return await of_coordinators(cluster, groups, lambda names: DeleteGroupsRequest(groups_names=names), read)
