"""SaslHandshake: which mechanism to log in with. Spoken by the client only, so it is not in the table of APIs."""

from lowwater.wire.schema import Int16, String, message


@message(key=17, versions=(0, 1), flexible=None)
class SaslHandshakeRequest:
    """Since v1 the tokens that follow come in SaslAuthenticate."""

    mechanism: String


@message(key=17, versions=(0, 1), flexible=None)
class SaslHandshakeResponse:
    """The mechanisms that there are, also when the wanted one is not among them."""

    error_code: Int16 = 0
    mechanisms: list[String]
