"""A schema registry of the tests' own: over HTTP on this machine, or at hand without a connection."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lowwater.spark.decoding.registry import RegisteredSchema, Registry
from lowwater.spark.decoding.spec import RegistrySpec

_NUMBERS = itertools.count(1)


@dataclass
class FakeRegistry:
    """What it answers by path, and what it was asked."""

    answers: dict[str, Any] = field(default_factory=dict)
    login: str | None = None
    failures: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def add(
        self, schema_id: int, subject: str, version: int, schema: str, kind: str = "AVRO", references: Any = ()
    ) -> None:
        """Registered, as the newest of its subject."""
        body = {"schema": schema, "references": list(references)} | ({"schemaType": kind} if kind != "AVRO" else {})
        self.answers[f"/schemas/ids/{schema_id}"] = body
        whole = {**body, "subject": subject, "id": schema_id, "version": version}
        for name in (str(version), "latest"):
            self.answers[f"/subjects/{subject}/versions/{name}"] = whole

    def answer(self, path: str, login: str | None) -> tuple[int, Any]:
        self.asked.append(path)
        if self.failures:
            return self.failures.pop(0), {"message": "not now"}
        if self.login is not None and login != "Basic " + base64.b64encode(self.login.encode()).decode():
            return 401, {"error_code": 401, "message": "Unauthorized"}
        if path not in self.answers:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 200, self.answers[path]


@contextlib.contextmanager
def serving(registry: FakeRegistry, tls: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization"))
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Location", "http://elsewhere.invalid/")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that hangs up is part of the tests
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        registry.url = f"{'https' if tls else 'http'}://localhost:{server.server_address[1]}"
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def known(schemas: dict[int, tuple[str, str]]) -> RegistrySpec:
    """A registry whose schemas are known already: (type, text) by id."""
    spec = RegistrySpec(f"http://registry-{next(_NUMBERS)}.invalid")
    registry = Registry.of(spec)
    registry._by_id.update({number: RegisteredSchema(text, kind) for number, (kind, text) in schemas.items()})
    return spec
