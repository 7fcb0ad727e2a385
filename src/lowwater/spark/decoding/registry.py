"""A schema registry over HTTP: schemas by id or by subject, kept once known. Its address is the user's alone."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from lowwater.spark.decoding.errors import RegistryError, SchemaError
from lowwater.spark.decoding.spec import AVRO, JSON, PROTOBUF, RegistrySpec

TIMEOUT_S = 10.0
TRIES = 4
FIRST_WAIT_S = 0.25
ANSWER_BYTES_MAX = 8 << 20
REFERENCES_MAX = 200
UNKNOWN_KEPT_S = 30.0
UNKNOWN_MAX = 1000
_TYPES = {"AVRO": AVRO, "PROTOBUF": PROTOBUF, "JSON": JSON}


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as it is registered, with what it refers to, those first that others refer to."""

    text: str
    type: str
    references: tuple[tuple[str, str], ...] = ()
    version: int = 0


class UnknownSchemaError(RegistryError, SchemaError):
    """The registry has no such schema."""


class Registry:
    """One registry. Errors are RegistryError: retriable when it cannot be reached, after some tries."""

    def __init__(self, spec: RegistrySpec, sleep: Callable[[float], None] = time.sleep) -> None:
        self._spec = spec
        self._sleep = sleep
        self._by_id: dict[int, RegisteredSchema] = {}
        self._unknown: dict[int, float] = {}

    @staticmethod
    @lru_cache(maxsize=8)
    def of(spec: RegistrySpec) -> Registry:
        """The process's own for these settings, so that tasks share what is known."""
        return Registry(spec)

    def by_id(self, schema_id: int, form: str) -> RegisteredSchema:
        """The schema that a row was written with. Ids that nobody knows are asked for again after a while only."""
        if schema_id not in self._by_id:
            self._check_known(schema_id)
            try:
                self._by_id[schema_id] = self._registered(self._get(f"/schemas/ids/{schema_id}"))
            except UnknownSchemaError:
                self._unknown[schema_id] = time.monotonic()
                raise
        return _of_type(self._by_id[schema_id], form, f"schema {schema_id}")

    def latest(self, subject: str, version: str, form: str) -> RegisteredSchema:
        """A subject's schema of this version, or its latest."""
        found = self._registered(self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}"))
        return _of_type(found, form, f"subject {subject}")

    def _check_known(self, schema_id: int) -> None:
        asked = self._unknown.get(schema_id)
        if asked is not None and time.monotonic() - asked < UNKNOWN_KEPT_S:
            raise UnknownSchemaError(f"the schema registry has no schema {schema_id}")
        if len(self._unknown) >= UNKNOWN_MAX:
            oldest = min(self._unknown.values())
            if time.monotonic() - oldest < UNKNOWN_KEPT_S:
                raise UnknownSchemaError(f"more than {UNKNOWN_MAX} schema ids are unknown to the schema registry")
            self._unknown.clear()

    def _registered(self, answer: Mapping[str, Any]) -> RegisteredSchema:
        references: dict[str, str] = {}
        self._collect(answer, references, 0)
        text, kind = answer.get("schema"), answer.get("schemaType", "AVRO")
        if not isinstance(text, str):
            raise RegistryError(f"{self._where()} answers without a schema")
        return RegisteredSchema(text, str(kind), tuple(references.items()), int(answer.get("version", 0)))

    def _collect(self, answer: Mapping[str, Any], found: dict[str, str], depth: int) -> None:
        """What a schema refers to, and what that refers to, which comes before it."""
        for one in answer.get("references") or ():
            name = str(one["name"])
            if name in found:
                continue
            if len(found) >= REFERENCES_MAX or depth > REFERENCES_MAX:
                raise SchemaError(f"a schema of the registry refers to more than {REFERENCES_MAX} others")
            other = self._get(f"/subjects/{quote(str(one['subject']), safe='')}/versions/{int(one['version'])}")
            self._collect(other, found, depth + 1)
            found[name] = str(other.get("schema", ""))

    def _get(self, path: str) -> Mapping[str, Any]:
        for count in range(TRIES):
            try:
                return self._ask(path)
            except RegistryError as error:
                if not error.retriable or count == TRIES - 1:
                    raise
            self._sleep(FIRST_WAIT_S * 2**count)
        raise AssertionError("unreachable")

    def _ask(self, path: str) -> Mapping[str, Any]:
        connection = self._connection()
        try:
            connection.request("GET", urlsplit(self._spec.url).path.rstrip("/") + path, headers=self._headers())
            answer = connection.getresponse()
            body = answer.read(ANSWER_BYTES_MAX + 1)
        except ssl.SSLCertVerificationError as error:
            what = f"{self._where()} shows a certificate that is not trusted: {error.verify_message}"
            raise RegistryError(f"{what}; name its CA by decode.registry.ca") from None
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(
                f"{self._where()} cannot be reached: {error or type(error).__name__}", retriable=True
            ) from None
        finally:
            connection.close()
        if len(body) > ANSWER_BYTES_MAX:
            raise RegistryError(f"{self._where()} answers with more than {ANSWER_BYTES_MAX >> 20} MiB")
        return self._parsed(answer.status, body, path)

    def _parsed(self, status: int, body: bytes, path: str) -> Mapping[str, Any]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        said = answer.get("message", "") if isinstance(answer, dict) else ""
        what = f"{self._where()} answers {status} to {path}{f': {str(said)[:200]}' if said else ''}"
        if status == 404:
            raise UnknownSchemaError(what)
        if status in (401, 403):
            raise RegistryError(f"{what}; check decode.registry.user and decode.registry.password")
        if status != 200:
            raise RegistryError(what, retriable=status == 429 or status >= 500)
        if not isinstance(answer, dict):
            raise RegistryError(f"{self._where()} does not answer in JSON: is it a schema registry?")
        return answer

    def _connection(self) -> http.client.HTTPConnection:
        address = urlsplit(self._spec.url)
        host = address.hostname or ""
        if address.scheme == "http":
            return http.client.HTTPConnection(host, address.port, timeout=TIMEOUT_S)
        try:
            context = ssl.create_default_context(cafile=self._spec.ca)
        except OSError as error:
            raise RegistryError(
                f"decode.registry.ca: {self._spec.ca} cannot be used: {error.strerror or error}"
            ) from None
        return http.client.HTTPSConnection(host, address.port, timeout=TIMEOUT_S, context=context)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self._spec.user is not None:
            login = f"{self._spec.user}:{self._spec.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        return headers

    def _where(self) -> str:
        return f"the schema registry {self._spec.url}"


def _of_type(schema: RegisteredSchema, form: str, what: str) -> RegisteredSchema:
    if _TYPES.get(schema.type) != form:
        raise SchemaError(f"{what} of the registry is for {schema.type}, not for {form}")
    return schema
