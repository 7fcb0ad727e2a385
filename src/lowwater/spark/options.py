"""The options of one source or sink: read once, checked as far as that goes without a broker, and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lowwater.spark.decoding.errors import DecodeError
from lowwater.spark.decoding.spec import DecodeSpec
from lowwater.spark.given import Given
from lowwater.spark.kafka_options import SINK_REFUSALS, SOURCE_REFUSALS, ClientSettings, client_settings
from lowwater.spark.option_table import OptionError, Where
from lowwater.spark.starts import check_no_stop, start_wish, stop_wish
from lowwater.spark.wishes import StartWish, StopWish, Topics, assigned, check_order, matching, subscribed

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS = "headers"
SOURCE_CLIENT_ID = "spark-lowwater-source"
SINK_CLIENT_ID = "spark-lowwater-sink"
ONCE_SETTINGS = {"transaction.timeout.ms": "900000"}
"""As long as brokers allow by default: a transaction is open from a task's first row to the commit of its batch."""
_STRATEGIES = {"subscribe": subscribed, "subscribePattern": matching, "assign": assigned}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Everything a reader was told. Can be pickled; its text shows no secrets. `warnings` are for the user's log."""

    topics: Topics
    start: StartWish
    stop: StopWish | None
    client: ClientSettings
    group: str | None
    commits: bool
    fail_on_loss: bool
    ledger: str
    offsets_max: int | None
    offsets_min: int | None
    delay_max_ms: int
    tasks_min: int | None
    tasks_max: int | None
    task_records_max: int | None
    columns: tuple[str, ...]
    decode: DecodeSpec | None
    poll_timeout_ms: int
    head_interval_ms: int
    stop_file: str | None
    cut_ms: int | None = None
    order: str = "none"
    out_of_order_ms: int = 0
    idle_ms: int = 10_000
    align_with: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def isolation(self) -> str:
        return self.client.settings["isolation.level"]

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
        """OptionError says which option cannot be taken and why, in the Kafka connector's words where it has some."""
        given = Given(options, Where.STREAM if streaming else Where.BATCH)
        topics = _topics(given)
        client, notes = _source_client(given)
        _check_time(given)
        start = start_wish(given, streaming=streaming)
        stop = _stop(given, start, streaming)
        return cls(
            topics=topics,
            start=start,
            stop=stop,
            client=client,
            group=given.value("group"),
            commits=streaming and given.value("group") is not None and given.value("commitOffsets"),
            fail_on_loss=given.value("failOnDataLoss"),
            ledger=given.value("lossLedger"),
            **_limits(given, streaming),
            tasks_min=given.value("minPartitions"),
            tasks_max=given.value("maxPartitions"),
            task_records_max=given.value("maxRecordsPerPartition"),
            columns=(*COLUMNS, HEADERS) if given.value("includeHeaders") else COLUMNS,
            decode=_decode(given, topics),
            poll_timeout_ms=given.value("kafkaConsumer.pollTimeoutMs"),
            head_interval_ms=given.value("headInterval"),
            stop_file=given.value("stopFile"),
            cut_ms=given.value("cut"),
            order=given.value("order"),
            out_of_order_ms=given.value("maxOutOfOrder"),
            idle_ms=given.value("idleTimeout"),
            align_with=given.value("alignWith") or (),
            warnings=(*notes, *given.notes()),
        )


class Once(NamedTuple):
    """Each row is written once. `run` names the write of a batch query; None: a stream, whose batches have numbers."""

    sink: str
    run: str | None
    ledger: str


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Everything a writer was told. Can be pickled; its text shows no secrets."""

    client: ClientSettings
    topic: str | None
    once: Once | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool = True) -> SinkOptions:
        given = Given(options, Where.SINK)
        _check_servers(given, "producer")
        once = _once(given, streaming)
        defaults = {"client.id": SINK_CLIENT_ID} if once is None else {"client.id": SINK_CLIENT_ID, **ONCE_SETTINGS}
        client, notes = client_settings(given.kafka(), SINK_REFUSALS, defaults)
        if once is not None:
            _check_transactional(client)
        return cls(client, given.value("topic"), once, (*notes, *given.notes()))


def _once(given: Given, streaming: bool) -> Once | None:
    if not given.value("exactlyOnce"):
        for name in ("sinkId", "runId", "sinkLedger"):
            if name in given:
                raise OptionError(f"{name} counts only with exactlyOnce=true")
        return None
    sink, run = given.value("sinkId"), given.value("runId")
    if sink is None:
        raise OptionError("exactlyOnce needs sinkId, a name of the sink that no other query has")
    if streaming and run is not None:
        raise OptionError("runId is for batch writes: the batches of a stream have numbers. Leave it out")
    if not streaming and not run:
        raise OptionError(
            "exactlyOnce in a batch write needs runId, a name of this write: one that is run again under the same name "
            "writes nothing when it was committed before"
        )
    return Once(sink, run, given.value("sinkLedger"))


def _check_transactional(client: ClientSettings) -> None:
    settings = client.settings
    if (
        settings.get("acks", "all") not in ("all", "-1")
        or settings.get("enable.idempotence", "true").lower() == "false"
    ):
        raise OptionError("exactlyOnce needs kafka.acks=all and kafka.enable.idempotence=true: leave both out")


# -- one thing after the other


def _topics(given: Given) -> Topics:
    chosen = [name for name in _STRATEGIES if name in given]
    if not chosen:
        raise OptionError(
            "One of the following options must be specified for Kafka source: subscribe, subscribePattern, assign"
        )
    if len(chosen) > 1:
        raise OptionError(
            "Only one of the following options can be specified for Kafka source: subscribe, subscribePattern, assign. "
            f"Given: {', '.join(chosen)}"
        )
    return _STRATEGIES[chosen[0]](given.text(chosen[0]))


def _check_servers(given: Given, role: str) -> None:
    if "kafka.bootstrap.servers" not in given:
        raise OptionError(f"Option 'kafka.bootstrap.servers' must be specified for configuring Kafka {role}")


def _source_client(given: Given) -> tuple[ClientSettings, tuple[str, ...]]:
    _check_servers(given, "consumer")
    group, other = given.value("group"), given.value("kafka.group.id")
    if group == "":
        raise OptionError("group is empty; it names the group whose committed offsets are used")
    if None not in (group, other) and group != other:
        raise OptionError(f"two groups are given: group={group} and kafka.group.id={other}")
    defaults = {
        # The connector's clients are Kafka's own, whose default it is.
        "isolation.level": "read_uncommitted",
        "client.id": given.value("groupIdPrefix") or SOURCE_CLIENT_ID,
    }
    if "fetchOffset.retryIntervalMs" in given:
        defaults["retry.backoff.ms"] = str(given.value("fetchOffset.retryIntervalMs"))
    given.value("fetchOffset.numRetries")  # whether it can be read at all
    client, notes = client_settings(given.kafka(), SOURCE_REFUSALS, defaults)
    if other is not None and group is None:
        notes += ("nothing is committed to kafka.group.id: to start from a group and commit to it, say group",)
    return client, notes


def _limits(given: Given, streaming: bool) -> dict[str, Any]:
    least, most = given.value("minOffsetsPerTrigger"), given.value("maxOffsetsPerTrigger")
    if None not in (least, most) and least > most:
        raise OptionError(f"The value of minOffsetPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most}).")
    delay_ms = given.value("maxTriggerDelay")
    return {
        "offsets_max": most if streaming else None,
        "offsets_min": least if streaming else None,
        "delay_max_ms": delay_ms,
    }


def _stop(given: Given, start: StartWish, streaming: bool) -> StopWish | None:
    if streaming:
        check_no_stop(given)
        return None
    stop = stop_wish(given)
    check_order(start, stop)
    return stop


def _decode(given: Given, topics: Topics) -> DecodeSpec | None:
    try:
        spec = DecodeSpec.parse(given.texts())
    except DecodeError as error:
        raise OptionError(str(error)) from None
    return spec if spec is None or topics.only is None else spec.with_subject(topics.only)


def _check_time(given: Given) -> None:
    """Options that mean something only beside another."""
    for name, other in (("idleTimeout", "cut"), ("alignWith", "cut")):
        if name in given and other not in given:
            raise OptionError(f"{name} counts only with {other}")
    if "maxOutOfOrder" in given and given.value("order") == "none":
        raise OptionError("maxOutOfOrder counts only with order=timestamp")
