import pytest

from lowwater.errors import WireError
from lowwater.wire.frame import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    response_lead,
)

METADATA, API_VERSIONS, PRODUCE = 3, 18, 0


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ((METADATA, 1, 7, "me"), "0003 0001 00000007 0002 6d65"),
        ((METADATA, 9, 7, "me"), "0003 0009 00000007 0002 6d65 00"),
        ((METADATA, 1, -1, None), "0003 0001 ffffffff ffff"),
        ((API_VERSIONS, 0, 1, ""), "0012 0000 00000001 0000"),
        ((API_VERSIONS, 3, 1, ""), "0012 0003 00000001 0000 00"),
    ],
)
def test_a_request_header_and_where_the_body_starts(header: tuple[int, int, int, str | None], data: str) -> None:
    frame = bytes.fromhex(data)
    assert encode_request_header(*header) == frame
    assert decode_request_header(memoryview(frame + b"body")) == (*header, len(frame))


def test_tagged_fields_of_a_request_header_are_skipped() -> None:
    frame = bytes.fromhex("0003 0009 00000007 ffff 01 05 02 aabb") + b"body"
    *_, client_id, start = decode_request_header(memoryview(frame))
    assert (client_id, frame[start:]) == (None, b"body")


@pytest.mark.parametrize(("api_key", "api_version"), [(999, 0), (METADATA, 99), (API_VERSIONS, 99), (PRODUCE, -1)])
def test_an_unknown_api_or_version_still_has_its_header(api_key: int, api_version: int) -> None:
    frame = encode_request_header(api_key, api_version, 5, "who")
    assert decode_request_header(memoryview(frame))[:4] == (api_key, api_version, 5, "who")


@pytest.mark.parametrize(
    "data",
    [
        "",
        "0003 0001 00000007 00",
        "0003 0001 00000007 0005 6d65",
        "0003 0001 00000007 fffe",
        "0003 0001 00000007 0001 ff",
        "0003 0009 00000007 ffff",
        "0003 0009 00000007 ffff 01 05 09 aa",
        "0003 0009 00000007 ffff ffffffffff01",
    ],
)
def test_a_malformed_request_header_is_a_wire_error(data: str) -> None:
    with pytest.raises(WireError):
        decode_request_header(memoryview(bytes.fromhex(data)))


def test_a_response_header_has_tags_in_flexible_versions() -> None:
    assert response_lead(METADATA, 8).pack(9, 7) == b"\0\0\0\x09\0\0\0\7"
    assert response_lead(METADATA, 9).pack(9, 7) == b"\0\0\0\x09\0\0\0\7\0"
    assert decode_response_header(b"\0\0\0\7\1\5\2abbody", METADATA, 9) == (7, 9)
    assert decode_response_header(b"\0\0\0\7body", METADATA, 8) == (7, 4)


def test_the_response_header_of_api_versions_never_has_tags() -> None:
    assert response_lead(API_VERSIONS, 4).pack(9, 7) == b"\0\0\0\x09\0\0\0\7"
    assert decode_response_header(b"\0\0\0\7body", API_VERSIONS, 4) == (7, 4)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\7", b"\0\0\0\7\1\5\x09a"])
def test_a_malformed_response_header_is_a_wire_error(frame: bytes) -> None:
    with pytest.raises(WireError):
        decode_response_header(frame, METADATA, 9)
