"""UpdateFeatures v0-2: set the levels of features, all of them or none.

v0 has a flag for downgrades, which Apache Kafka no longer heeds: they need v1, which also has changes that are only
tried. v0 and v1 repeat the features of a change that was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.changes import Decision
from lowwater.broker.metadata_records import Record
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topics import Topics
from lowwater.errors import ApiError
from lowwater.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(UpdateFeaturesRequest)
async def update_features(
    broker: Broker, request: UpdateFeaturesRequest, context: RequestContext
) -> UpdateFeaturesResponse:
    return await broker.topics.change(lambda: decide(broker.topics, request))


def decide(topics: Topics, request: UpdateFeaturesRequest) -> Decision[UpdateFeaturesResponse]:
    records: list[Record] = []
    updates = {update.feature: update for update in request.feature_updates}
    for name, update in updates.items():
        try:
            record = topics.features.change(name, update.max_version_level, update.upgrade_type)
        except ApiError as error:
            return Decision([], UpdateFeaturesResponse(error_code=error.code, error_message=error.detail))
        records += [] if record is None else [record]
    results = [UpdatableFeatureResult(feature=name) for name in updates]
    return Decision([] if request.validate_only else records, UpdateFeaturesResponse(results=results))
