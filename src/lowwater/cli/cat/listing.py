"""-L: brokers, topics and partitions. -Q: offsets by time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lowwater.cli.cat.asked import Question
from lowwater.cli.cat.envelope import Json, compact
from lowwater.cli.cat.talk import CatError
from lowwater.cli.connecting import Connected
from lowwater.cli.topics.choosing import meant
from lowwater.client.config import Address
from lowwater.client.errors import BrokerError, ClientError
from lowwater.errors import ErrorCode
from lowwater.types import TopicPartition
from lowwater.wire.messages import MetadataRequest
from lowwater.wire.messages.metadata import MetadataRequestTopic

if TYPE_CHECKING:
    from lowwater.client.cluster import Cluster

NO_OFFSET = -1
NAMES_MS = 2_000
# librdkafka's words, which kcat's users look for.
_WORDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Unknown topic or partition",
    ErrorCode.LEADER_NOT_AVAILABLE: "Leader not available",
    ErrorCode.REPLICA_NOT_AVAILABLE: "Replica not available",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Invalid topic",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed",
}
_UNKNOWN = "Broker: Unknown topic or partition"


async def topics_meant(cluster: Cluster, name: str, problem: BrokerError) -> str:
    """A line more for an error: the topics that are called about the same, if there are any and brokers tell them."""
    if problem.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return ""
    with contextlib.suppress(ClientError):
        if question := meant([name], await cluster.all_topics(NAMES_MS)):
            return f"\n% {question}"
    return ""


# -- -L


def list_metadata(connected: Connected, topics: Sequence[str], *, as_json: bool) -> bytes:
    """Nothing is created by asking for it."""
    asked = [MetadataRequestTopic(name=topic) for topic in topics] or None
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    address = connected.network.best().address

    async def ask() -> Any:
        return await connected.network.ask_any(request)

    response = connected.run(ask())
    origin = _origin(response, address, connected.config.str("security.protocol"))
    asked_for = ", ".join(topics) or None
    if as_json:
        return compact(_as_json(response, origin, asked_for))
    return "".join(f"{line}\n" for line in _as_text(response, origin, asked_for)).encode()


def _origin(response: Any, address: Address, protocol: str) -> tuple[int, str]:
    """Who answered: the broker at that address, or the address alone where brokers call it otherwise."""
    name = f"{address}" if protocol == "PLAINTEXT" else f"{protocol.lower()}://{address}"
    for broker in response.brokers:
        if (broker.host, broker.port) == (address.host, address.port):
            return broker.node_id, f"{name}/{broker.node_id}"
    return -1, f"{name}/bootstrap"


def _as_text(response: Any, origin: tuple[int, str], asked_for: str | None) -> Iterator[str]:
    yield f"Metadata for {asked_for or 'all topics'} (from broker {origin[0]}: {origin[1]}):"
    yield f" {len(response.brokers)} brokers:"
    for broker in response.brokers:
        controller = " (controller)" if broker.node_id == response.controller_id else ""
        yield f"  broker {broker.node_id} at {broker.host}:{broker.port}{controller}"
    yield f" {len(response.topics)} topics:"
    for topic in response.topics:
        problem = f" {error_words(topic.error_code)}" if topic.error_code else ""
        again = " (try again)" if topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE else ""
        yield f'  topic "{topic.name}" with {len(topic.partitions)} partitions:{problem}{again}'
        for one in topic.partitions:
            problem = f", {error_words(one.error_code)}" if one.error_code else ""
            yield (
                f"    partition {one.partition_index}, leader {one.leader_id}, "
                f"replicas: {_listed(one.replica_nodes)}, isrs: {_listed(one.isr_nodes)}{problem}"
            )


def _listed(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def _as_json(response: Any, origin: tuple[int, str], asked_for: str | None) -> Json:
    return {
        "originating_broker": {"id": origin[0], "name": origin[1]},
        "query": {"topic": asked_for or "*"},
        "controllerid": response.controller_id,
        "brokers": [{"id": each.node_id, "name": f"{each.host}:{each.port}"} for each in response.brokers],
        "topics": [_topic_json(topic) for topic in response.topics],
    }


def _topic_json(topic: Any) -> Json:
    partitions: list[Json] = [
        {"partition": one.partition_index}
        | _error_json(one.error_code)
        | {
            "leader": one.leader_id,
            "replicas": [{"id": node} for node in one.replica_nodes],
            "isrs": [{"id": node} for node in one.isr_nodes],
        }
        for one in topic.partitions
    ]
    return {"topic": topic.name} | _error_json(topic.error_code) | {"partitions": partitions}


def _error_json(code: int) -> dict[str, Json]:
    return {"error": error_words(code)} if code else {}


def error_words(code: int) -> str:
    known = {int(each): each for each in ErrorCode}.get(code)
    return f"Broker: {_WORDS.get(known) or known.text if known is not None else f'error {code}'}"


# -- -Q


def query_offsets(connected: Connected, questions: Sequence[Question], *, as_json: bool) -> tuple[bytes, bool]:
    """The text, and whether every question has an answer. CatError when none has."""
    ordered = sorted(questions, key=lambda question: question.partition)
    answers = connected.run(_answers(connected.cluster, ordered))
    if all(answer is None for answer in answers):
        raise CatError("offsets_for_times failed: Local: Unknown partition")
    told = list(zip(ordered, answers, strict=True))
    text = compact(_offsets_json(told)) if as_json else "".join(map(_offset_line, told)).encode()
    return text, None not in answers


async def _answers(cluster: Cluster, questions: Sequence[Question]) -> list[int | None]:
    """One offset per question, -1 where no record is that late; None for a partition that is not there."""
    topics = await cluster.present({question.partition.topic for question in questions})
    there = {
        place: question
        for place, question in enumerate(questions)
        if (topic := topics.get(question.partition.topic)) and question.partition.partition in topic.partitions
    }
    answers = await _at_times(cluster, there) | await _at_positions(cluster, there)
    return [answers.get(place) for place in range(len(questions))]


async def _at_times(cluster: Cluster, questions: Mapping[int, Question]) -> dict[int, int]:
    from lowwater.client.offsets import list_offsets_many

    times = {place: when for place, (_, when) in questions.items() if isinstance(when, int)}
    rounds = _rounds(times, questions)
    asked = [{one: times[place] for one, place in each.items()} for each in rounds]
    found = await list_offsets_many(cluster, asked) if asked else []
    return {
        place: answer[one].offset for each, answer in zip(rounds, found, strict=True) for one, place in each.items()
    }


async def _at_positions(cluster: Cluster, questions: Mapping[int, Question]) -> dict[int, int]:
    """Where -o would start, by one "now"."""
    from lowwater.cli.cat.consuming import resolve_starts

    wishes = {place: when for place, (_, when) in questions.items() if not isinstance(when, int)}
    group, now_ms = cluster.network.config.maybe_str("group.id"), cluster.network.driver.now_ms()
    answers: dict[int, int] = {}
    for each in _rounds(wishes, questions):
        asked = {one: wishes[place] for one, place in each.items()}
        starts = (await resolve_starts(cluster, asked, group, now_ms=now_ms, ends=False)).starts
        answers |= {place: starts[one] for one, place in each.items()}
    return answers


def _rounds(places: Iterable[int], questions: Mapping[int, Question]) -> list[dict[TopicPartition, int]]:
    """What can be asked at once: of each partition one thing. By partition, the place of its question."""
    rounds: list[dict[TopicPartition, int]] = []
    for place in places:
        one = questions[place].partition
        free = next((each for each in rounds if one not in each), None)
        if free is None:
            rounds.append(free := {})
        free[one] = place
    return rounds


def _offset_line(told: tuple[Question, int | None]) -> str:
    (partition, _), offset = told
    problem = f": {_UNKNOWN}" if offset is None else ""
    return f"{partition.topic} [{partition.partition}] offset {NO_OFFSET if offset is None else offset}{problem}\n"


def _offsets_json(told: Sequence[tuple[Question, int | None]]) -> Mapping[str, Json]:
    topics: dict[str, dict[str, Json]] = {}
    for (partition, _), offset in told:
        entry: dict[str, Json] = {"partition": partition.partition, "offset": NO_OFFSET if offset is None else offset}
        if offset is None:
            entry["error"] = _UNKNOWN
        topic = topics.setdefault(partition.topic, {"topic": partition.topic})
        topic[str(partition.partition)] = entry
    return topics
