"""What goes wrong in decoding: in the wish itself, in a schema, at the registry, in a row."""

from __future__ import annotations

from lowwater.errors import LowwaterError


class DecodeError(LowwaterError, ValueError):
    """Base of the family: the text says what is wrong and what to do."""


class SchemaError(DecodeError):
    """A schema cannot be understood, or has no counterpart in Spark."""


class RegistryError(DecodeError):
    """The schema registry did not give what was asked for. `retriable`: the same may succeed later."""

    def __init__(self, what: str, *, retriable: bool = False) -> None:
        super().__init__(what)
        self.retriable = retriable


class UndecodableRowError(DecodeError):
    """A record's bytes are not what the schema says."""

    def __init__(self, column: str, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(
            f"the {column} of {topic}-{partition} at offset {offset} cannot be decoded: {reason}; "
            f"with decode.onBad=null such rows are kept, with {column}_error and {column}_raw"
        )
        self.topic, self.partition, self.offset, self.reason = topic, partition, offset, reason

    def __reduce__(self) -> tuple[object, ...]:
        return _with_text, (str(self), self.topic, self.partition, self.offset, self.reason)


def _with_text(text: str, topic: str, partition: int, offset: int, reason: str) -> UndecodableRowError:
    error = UndecodableRowError("", topic, partition, offset, reason)
    error.args = (text,)
    return error
