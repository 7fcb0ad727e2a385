"""Headers of requests and responses. A frame here is what follows its four-byte length.

Flexible versions have a header that ends with tagged fields, but for the response of ApiVersions: a client reads that
before it knows what the broker speaks. The client id has a two-byte length in all versions, for the same reason.
"""

import struct

from lowwater.errors import WireError
from lowwater.types import Buffer
from lowwater.wire.messages import API
from lowwater.wire.strings import text_unpackers
from lowwater.wire.varint import skip_tags

API_VERSIONS = 18
_FIXED = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")
_LENGTH_AND_HEADER = struct.Struct(">ii")
_LENGTH_AND_HEADER_WITH_TAGS = struct.Struct(">iix")
_CLIENT_ID = text_unpackers("", 0)
# API key << 16 + version, of the declared versions whose headers have tags.
_TAGGED_REQUEST = {
    (api.key << 16) + version
    for api in API.values()
    if api.flexible_since is not None
    for version in range(api.flexible_since, api.version_max + 1)
}
_TAGGED_RESPONSE = {each for each in _TAGGED_REQUEST if each >> 16 != API_VERSIONS}


def decode_request_header(frame: memoryview) -> tuple[int, int, int, str | None, int]:
    """(API key, version, correlation id, client id, where the body starts). An API or version that is not declared
    still has its header read, so that it can be answered; where its body starts cannot be known."""
    try:
        api_key, api_version, correlation_id, length = _FIXED.unpack_from(frame)
        position = 10
        client_id = None
        if length >= 0:
            (name,) = _CLIENT_ID[length](frame, position)
            client_id = name.decode()
            position += length
        elif length != -1:
            raise WireError(f"a client id of {length} bytes")
        if (api_key << 16) + api_version in _TAGGED_REQUEST:
            position = _behind_tags(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"the request header cannot be read: {error}") from error
    return api_key, api_version, correlation_id, client_id, position


def encode_request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header in the form that this API and version want."""
    tags = b"\0" if (api_key << 16) + api_version in _TAGGED_REQUEST else b""
    if client_id is None:
        return _FIXED.pack(api_key, api_version, correlation_id, -1) + tags
    name = client_id.encode()
    return _FIXED.pack(api_key, api_version, correlation_id, len(name)) + name + tags


def response_lead(api_key: int, api_version: int) -> struct.Struct:
    """Packs what stands before the body of a response: the length of all that follows it, and the correlation id."""
    return _LENGTH_AND_HEADER_WITH_TAGS if (api_key << 16) + api_version in _TAGGED_RESPONSE else _LENGTH_AND_HEADER


def decode_response_header(frame: Buffer, api_key: int, api_version: int) -> tuple[int, int]:
    """The correlation id, and where the body starts."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if (api_key << 16) + api_version in _TAGGED_RESPONSE:
            return correlation_id, _behind_tags(frame, _CORRELATION_ID.size)
    except (struct.error, IndexError) as error:
        raise WireError(f"the response header cannot be read: {error}") from error
    return correlation_id, _CORRELATION_ID.size


def _behind_tags(frame: Buffer, position: int) -> int:
    count = frame[position]
    if count == 0:
        return position + 1
    end = skip_tags(frame, position + 1, count)
    if end > len(frame):
        raise WireError("a header ends early")
    return end
