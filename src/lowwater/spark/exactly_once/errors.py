"""What stops a sink that writes each row once. One line each, as Spark shows the last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lowwater.client.errors import ClientError
from lowwater.errors import LowwaterError

_NAMED_MAX = 20


class ExactlyOnceError(LowwaterError):
    """Rows cannot be written once."""


class SinkTakenError(ExactlyOnceError):
    """This driver may not commit for the sink any more. Without a `refusal` it is sure that another one does."""

    def __init__(self, sink: str, refusal: ClientError | None = None) -> None:
        if refusal is None:
            happened = "was taken over: another driver has begun a batch under this sinkId after this one did"
        else:
            happened = (
                "was taken over by another driver or by `lowwater spark sinks --settle`, or a transaction of this "
                f"driver's was over before it was ended; brokers say: {refusal.what}"
            )
        super().__init__(
            f"sink {sink!r} {happened}. This driver writes nothing more. See to it that one query at a time has the "
            "sinkId, and restart that one: a batch whose commit was decided is finished then, any other written again"
        )


class LostTransactionsError(ExactlyOnceError):
    """Transactions of a batch whose commit was decided have ended otherwise: their rows are not to be seen."""

    def __init__(self, sink: str, name: str, batch: int, lost: Iterable[str]) -> None:
        ids = sorted(lost)
        self.ids = tuple(ids)
        super().__init__(
            f"sink {sink!r}: batch {batch} of {name} was to be committed, but {len(ids)} of its transactions are over, "
            f"by their timeout or by someone else: {named(ids)}. Their rows are missing, those of the other tasks are "
            f"there. Write the missing rows by other means, then say `lowwater spark sinks --settle {sink}`, and "
            "restart; kafka.transaction.timeout.ms is how long a batch may take, restarts included"
        )


class TooLateError(ExactlyOnceError):
    """A batch took longer than its transactions may be open. Nothing of it is committed."""

    def __init__(self, sink: str, batch: int, took_ms: int, timeout_ms: int) -> None:
        super().__init__(
            f"sink {sink!r}: batch {batch} took {took_ms} ms, too near to kafka.transaction.timeout.ms={timeout_ms} to "
            "be committed; it will be written again. Let batches be smaller, or the timeout longer (brokers allow "
            "transaction.max.timeout.ms)"
        )


class LedgerError(ExactlyOnceError):
    """The topic that keeps what was committed is not there, or not fit for it."""


def named(ids: Sequence[str]) -> str:
    """Not all of a thousand."""
    shown = ", ".join(ids[:_NAMED_MAX])
    return shown if len(ids) <= _NAMED_MAX else f"{shown} and {len(ids) - _NAMED_MAX} more"
