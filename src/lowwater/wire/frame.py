"""Headers of requests and responses. A frame here is what follows its four-byte length."""

import struct
from typing import NamedTuple

from lowwater.errors import WireError
from lowwater.types import Buffer
from lowwater.wire.messages import API
from lowwater.wire.varint import skip_tags

API_VERSIONS = 18
_FIXED = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
# (API, version) -> whether the header ends with tagged fields, for the versions that are declared
_FLEXIBLE = {
    (api.key, version): api.flexible_since is not None and version >= api.flexible_since
    for api in API.values()
    for version in range(api.version_max + 1)
}


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """The header, and where the body starts. An API or version unknown here still has its header read, so that it can
    be answered; its body cannot be read, hence the start is only right for known ones."""
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(frame)
        position = _FIXED.size
        client_id = None
        if length >= 0:
            client_id = str(frame[position : position + length], "utf-8")
            position += length
        elif length != -1:
            raise WireError(f"a client id of {length} bytes")
        if _FLEXIBLE.get((api_key, api_version)):
            position = skip_tags(frame, position + 1, frame[position])
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"the request header cannot be read: {error}") from error
    if position > len(frame):
        raise WireError("the request header ends early")
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def encode_request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header in the form that this API and version want. The client id has a two-byte length in all of them."""
    tags = b"\0" if _FLEXIBLE.get((api_key, api_version)) else b""
    if client_id is None:
        return _FIXED.pack(api_key, api_version, correlation_id, -1) + tags
    name = client_id.encode()
    return _FIXED.pack(api_key, api_version, correlation_id, len(name)) + name + tags


def response_header(correlation_id: int, api_key: int, api_version: int) -> bytes:
    """That of ApiVersions never has tags: a client reads it before it knows what the broker speaks."""
    if _has_tags(api_key, api_version):
        return _CORRELATION_ID.pack(correlation_id) + b"\0"
    return _CORRELATION_ID.pack(correlation_id)


def decode_response_header(frame: Buffer, api_key: int, api_version: int) -> tuple[int, int]:
    """The correlation id, and where the body starts."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        position = _CORRELATION_ID.size
        if _has_tags(api_key, api_version):
            position = skip_tags(frame, position + 1, frame[position])
    except (struct.error, IndexError) as error:
        raise WireError(f"the response header cannot be read: {error}") from error
    if position > len(frame):
        raise WireError("the response header ends early")
    return correlation_id, position


def _has_tags(api_key: int, api_version: int) -> bool:
    return api_key != API_VERSIONS and _FLEXIBLE.get((api_key, api_version), False)
