"""What is to be decoded and how, as the user said it: checked, frozen, and without secrets in its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import urlsplit

from lowwater.spark.decoding.errors import DecodeError

JSON, AVRO, PROTOBUF = "json", "avro", "protobuf"
FORMATS = (JSON, AVRO, PROTOBUF)
COLUMNS = ("value", "key")
FRAMINGS = ("none", "confluent")
ON_BAD = ("fail", "null")
LATEST = "latest"
ReadFile = Callable[[str], bytes]

# The source's options as they arrive, in lower case, and the fields they fill.
_FIELDS = {
    "decode": "format",
    "decode.column": "column",
    "decode.schema": "schema",
    "decode.schemafile": "schema_file",
    "decode.message": "message",
    "decode.framing": "framing",
    "decode.emitdefaults": "emit_defaults",
    "decode.onbad": "on_bad",
}
_REGISTRY_FIELDS = {
    "decode.registry.url": "url",
    "decode.registry.user": "user",
    "decode.registry.password": "password",
    "decode.registry.ca": "ca",
    "decode.registry.subject": "subject",
    "decode.registry.version": "version",
}
OPTIONS = (*_FIELDS, *_REGISTRY_FIELDS)


@dataclass(frozen=True, slots=True)
class RegistrySpec:
    """A schema registry, and which of its schemas rows are decoded to."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = None
    subject: str | None = None
    version: str = LATEST

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        _check(address.scheme in ("http", "https"), "decode.registry.url", "has to begin with http:// or https://")
        _check(bool(address.hostname), "decode.registry.url", "names no host")
        _check(address.username is None, "decode.registry.url", "must not hold a login: use decode.registry.user")
        _check((self.user is None) == (self.password is None), "decode.registry.user", "goes with a password")
        is_number = self.version.isascii() and self.version.isdigit() and int(self.version) > 0
        _check(self.version == LATEST or is_number, "decode.registry.version", f"is {LATEST} or a number from 1")


@dataclass(frozen=True, slots=True)
class DecodeSpec:
    """One column's decoding. `loaded` makes it whole: then `schema` is the schema's text, or a descriptor set."""

    format: str
    column: str = "value"
    schema: str | bytes | None = field(default=None, repr=False)
    schema_file: str | None = None
    message: str | None = None
    framing: str | None = None
    registry: RegistrySpec | None = None
    emit_defaults: bool = False
    on_bad: str = "fail"
    # What the schema refers to, by the name under which it does: imports of .proto files, named types of Avro.
    references: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        _one_of("decode", self.format, FORMATS)
        _one_of("decode.column", self.column, COLUMNS)
        _one_of("decode.onBad", self.on_bad, ON_BAD)
        if self.framing is not None:
            _one_of("decode.framing", self.framing, FRAMINGS)
        _check(
            self.schema is None or self.schema_file is None, "decode.schemaFile", "and decode.schema exclude each other"
        )
        given = self.schema is not None or self.schema_file is not None
        if self.format == JSON:
            _check(given, "decode.schema", "is needed for JSON: the columns, as in `id long, at timestamp`")
        _check(
            given or self.registry is not None,
            "decode.schema",
            "is needed, or decode.schemaFile, or decode.registry.url",
        )
        _check(self.message is None or self.format == PROTOBUF, "decode.message", "is for Protobuf only")
        _check(not self.emit_defaults or self.format == PROTOBUF, "decode.emitDefaults", "is for Protobuf only")

    @classmethod
    def of(cls, format: str, *, registry: RegistrySpec | None = None, **fields: object) -> Self:
        """A spec by its fields; DecodeError names what is wrong."""
        try:
            return cls(format, registry=registry, **fields)  # type: ignore[arg-type]
        except TypeError as error:
            raise DecodeError(f"decode: {error}") from None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self | None:
        """The source's options, by lower-case names; None when nothing is to be decoded."""
        given = {name: text for name, text in options.items() if name == "decode" or name.startswith("decode.")}
        if not given:
            return None
        unknown = sorted(given.keys() - set(OPTIONS))
        _check(not unknown, ", ".join(unknown), "is not an option of decode")
        _check(
            "decode" in given, "decode", f"is missing beside {', '.join(sorted(given))}: one of {', '.join(FORMATS)}"
        )
        fields: dict[str, object] = {_FIELDS[name]: text for name, text in given.items() if name in _FIELDS}
        fields["format"] = given["decode"].lower()
        if "emit_defaults" in fields:
            fields["emit_defaults"] = _truth("decode.emitDefaults", given["decode.emitdefaults"])
        return cls(registry=_registry(given), **fields)  # type: ignore[arg-type]

    @property
    def is_framed(self) -> bool:
        """Whether values begin with Confluent's frame: as said, else when a registry is named."""
        return self.framing == "confluent" if self.framing is not None else self.registry is not None

    @property
    def raw_column(self) -> str:
        return f"{self.column}_raw"

    @property
    def error_column(self) -> str:
        return f"{self.column}_error"

    def loaded(self, read: ReadFile | None = None) -> DecodeSpec:
        """The same with its schema inside: from a file, or from the registry, where `latest` becomes a version."""
        from lowwater.spark.decoding.loading import load_spec  # it opens files and connections, this module does not

        return load_spec(self, read)

    def with_subject(self, topic: str) -> DecodeSpec:
        """The registry's subject by the topic's name, unless one was given."""
        if self.registry is None or self.registry.subject is not None:
            return self
        return replace(self, registry=replace(self.registry, subject=f"{topic}-{self.column}"))


def _registry(given: Mapping[str, str]) -> RegistrySpec | None:
    fields = {_REGISTRY_FIELDS[name]: text for name, text in given.items() if name in _REGISTRY_FIELDS}
    if not fields:
        return None
    _check("url" in fields, "decode.registry.url", "is missing")
    return RegistrySpec(**fields)


def _truth(name: str, text: str) -> bool:
    _one_of(name, text.lower(), ("true", "false"))
    return text.lower() == "true"


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    _check(value in allowed, name, f"is {value!r}, but one of {', '.join(allowed)} is possible")


def _check(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise DecodeError(f"{name} {what}")
