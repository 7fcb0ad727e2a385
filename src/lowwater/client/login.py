"""What a session says before anything else: which versions there are, and who we are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater import __version__
from lowwater.client.config import ClientConfig
from lowwater.client.driver import Driver
from lowwater.client.errors import AuthenticationError, UnsupportedError, broker_error
from lowwater.client.sasl import log_in
from lowwater.errors import ErrorCode
from lowwater.wire.frame import API_VERSIONS
from lowwater.wire.messages import API, Api, ApiVersionsRequest
from lowwater.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from lowwater.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from lowwater.client.session import Session

HANDSHAKE = Api(17, "SaslHandshake", SaslHandshakeRequest, SaslHandshakeResponse, 0, 1, None)
AUTHENTICATE = Api(36, "SaslAuthenticate", SaslAuthenticateRequest, SaslAuthenticateResponse, 0, 1, 2)
SOFTWARE = "lowwater"


class Login:
    """`begin` for a new connection, `renew` for one whose login will soon end; both give how long it holds in ms."""

    def __init__(self, session: Session, config: ClientConfig, driver: Driver) -> None:
        self._session = session
        self._config = config
        self._driver = driver
        self._lifetime_ms = 0

    async def begin(self) -> float:
        self._session.versions = await self._negotiate()
        return await self.renew()

    async def renew(self) -> float:
        if not self._config.uses_sasl:
            return 0
        await self._choose_mechanism()
        await log_in(self._config, self._driver.ids, self._talk, self._driver.elsewhere)
        return self._lifetime_ms

    async def _negotiate(self) -> dict[int, tuple[int, int]]:
        """A broker that does not know our version of the question says which it knows, or is asked in the oldest."""
        api = API[API_VERSIONS]
        answer = await self._ask_versions(api.version_max)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = {each.api_key: each.max_version for each in answer.api_keys}
            answer = await self._ask_versions(min(api.version_max, max(0, known.get(API_VERSIONS, 0))))
        if answer.error_code:
            raise broker_error(answer.error_code, "the broker does not say which versions it knows")
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    async def _ask_versions(self, version: int) -> Any:
        request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version=__version__)
        return await self._session.call(API[API_VERSIONS], version, request)

    async def _choose_mechanism(self) -> None:
        mechanism = self._config.str("sasl.mechanism")
        answer = await self._session.call(
            HANDSHAKE, self._version(HANDSHAKE), SaslHandshakeRequest(mechanism=mechanism)
        )
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            raise AuthenticationError(f"the broker does not offer {mechanism}", advice=f"it offers {offered}")
        if answer.error_code:
            raise AuthenticationError(f"the broker refuses the login: {broker_error(answer.error_code)}")

    async def _talk(self, token: bytes) -> bytes:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = await self._session.call(AUTHENTICATE, self._version(AUTHENTICATE), request)
        if answer.error_code:
            reason = answer.error_message or str(broker_error(answer.error_code))
            raise AuthenticationError(f"the broker refuses the login: {reason!r}")
        self._lifetime_ms = answer.session_lifetime_ms
        heard: bytes = answer.auth_bytes
        return heard

    def _version(self, api: Api) -> int:
        lowest, highest = self._session.versions.get(api.key, (0, -1))
        version = min(highest, api.version_max)
        if version < max(lowest, api.version_min):
            raise UnsupportedError(
                f"the broker does not know {api.name}", advice="is security.protocol right for this port?"
            )
        return version
