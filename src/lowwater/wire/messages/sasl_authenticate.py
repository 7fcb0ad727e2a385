"""SaslAuthenticate: one token of a login. Spoken by the client only, so it is not in the table of APIs."""

from lowwater.wire.schema import Bytes, Int16, Int64, String, message, since


@message(key=36, versions=(0, 1), flexible=2)
class SaslAuthenticateRequest:
    """What the mechanism says next."""

    auth_bytes: Bytes

    def __repr__(self) -> str:
        return "SaslAuthenticateRequest([hidden])"


@message(key=36, versions=(0, 1), flexible=2)
class SaslAuthenticateResponse:
    """The broker's answer; since v1 also how long the login holds, 0 for ever."""

    error_code: Int16 = 0
    error_message: String | None
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = since(1, ignorable=True)
