"""ApiVersions v0-4: what is served, from the router's table, and the levels of the cluster's features.

v3 adds features and asks for the client's name; a feature whose lowest level is 0 is only told since v4, which fixed
how clients read it. A version that is not served is answered as v0 with UNSUPPORTED_VERSION and the versions of this
API alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lowwater.broker.features import FEATURES
from lowwater.broker.router import RequestContext, advertised_versions, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from lowwater.wire.schema import encoder

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

API_VERSIONS = 18
CLIENT_NAMED_SINCE = 3
LEVEL_0_TOLD_SINCE = 4

_CLIENT_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@handles(ApiVersionsRequest)
def api_versions(
    broker: Broker, request: ApiVersionsRequest | None, context: RequestContext
) -> ApiVersionsResponse | bytes:
    if request is None:
        return ApiVersionsResponse(api_keys=[one for one in _served() if one.api_key == API_VERSIONS])
    if context.api_version >= CLIENT_NAMED_SINCE:
        _check_client(request)
    # The same for every connection, until anything about topics changes the epoch that it names.
    key = (API_VERSIONS, context.api_version)
    cached = broker.topics.answers.get(key)
    if cached is not None:
        return cached
    response = _response(broker, context.api_version)
    return broker.topics.answers.put(key, encoder(ApiVersionsResponse, context.api_version)(response))


def _response(broker: Broker, version: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=_served(),
        supported_features=[
            SupportedFeatureKey(name=feature.name, min_version=feature.lowest, max_version=feature.highest)
            for feature in FEATURES.values()
            if feature.lowest > 0 or version >= LEVEL_0_TOLD_SINCE
        ],
        finalized_features_epoch=broker.topics.version,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in broker.topics.features.in_force()
        ],
    )


def _served() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, lowest, highest in advertised_versions()
    ]


def _check_client(request: ApiVersionsRequest) -> None:
    for text in (request.client_software_name, request.client_software_version):
        if not _CLIENT_NAME.fullmatch(text):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{text!r} is not the name or version of a client")
