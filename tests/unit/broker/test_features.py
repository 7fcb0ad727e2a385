"""The levels of the cluster's features: told by ApiVersions, changed by UpdateFeatures, kept over a restart."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.errors import ErrorCode
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import ApiVersionsRequest, UpdateFeaturesRequest
from lowwater.wire.messages.update_features import FeatureUpdateKey

TRANSACTIONS = "transaction.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
METADATA = ("metadata.version", 30)
GROUPS = ("group.version", 1)


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker()


def versions(broker: VirtualBroker, version: int = 4) -> Any:
    return broker.ask(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), version)


def levels(broker: VirtualBroker) -> dict[str, int]:
    return {one.name: one.max_version_level for one in versions(broker).finalized_features}


def update(
    broker: VirtualBroker, *updates: tuple[str, int, int], version: int = 2, only_tried: bool = False
) -> tuple[ErrorCode, Any]:
    keys = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=how) for name, level, how in updates]
    answer = broker.ask(UpdateFeaturesRequest(feature_updates=keys, validate_only=only_tried), version)
    return ErrorCode(answer.error_code), answer


def test_the_highest_levels_are_in_force_at_first(broker: VirtualBroker) -> None:
    assert levels(broker) == dict([METADATA, GROUPS, (TRANSACTIONS, 2)])
    assert broker.broker.topics.features.transaction_version == 2


def test_a_feature_that_has_a_level_0_is_told_as_supported_since_v4(broker: VirtualBroker) -> None:
    told = {
        v: {one.name: (one.min_version, one.max_version) for one in versions(broker, v).supported_features}
        for v in (3, 4)
    }
    assert told[3] == {"metadata.version": (7, 30), "group.version": (1, 1)}
    assert told[4] == told[3] | {TRANSACTIONS: (0, 2)}


@pytest.mark.parametrize("how", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
@pytest.mark.parametrize("version", [1, 2])
def test_a_downgrade_holds_over_a_restart(broker: VirtualBroker, version: int, how: int) -> None:
    code, answer = update(broker, (TRANSACTIONS, 1, how), version=version)
    assert code == ErrorCode.NONE
    assert [one.feature for one in answer.results] == ([TRANSACTIONS] if version < 2 else [])
    epoch = versions(broker).finalized_features_epoch
    broker.stop()
    broker.start()
    assert levels(broker)[TRANSACTIONS] == 1
    assert versions(broker).finalized_features_epoch == epoch


def test_at_level_0_the_feature_is_absent_and_can_come_back(broker: VirtualBroker) -> None:
    assert update(broker, (TRANSACTIONS, 0, SAFE_DOWNGRADE))[0] == ErrorCode.NONE
    assert TRANSACTIONS not in levels(broker)
    assert broker.broker.topics.features.transaction_version == 0
    assert update(broker, (TRANSACTIONS, 2, UPGRADE))[0] == ErrorCode.NONE
    assert levels(broker)[TRANSACTIONS] == 2


def test_a_changed_level_changes_the_epoch(broker: VirtualBroker) -> None:
    before = versions(broker).finalized_features_epoch
    update(broker, (TRANSACTIONS, 2, UPGRADE))
    assert versions(broker).finalized_features_epoch == before
    update(broker, (TRANSACTIONS, 1, SAFE_DOWNGRADE))
    assert versions(broker).finalized_features_epoch > before


def test_a_change_that_is_only_tried_changes_nothing(broker: VirtualBroker) -> None:
    assert update(broker, (TRANSACTIONS, 1, SAFE_DOWNGRADE), only_tried=True)[0] == ErrorCode.NONE
    assert levels(broker)[TRANSACTIONS] == 2


# Each as Apache Kafka 4.3 answers it.
@pytest.mark.parametrize(
    ("name", "level", "how"),
    [
        (TRANSACTIONS, 1, UPGRADE),
        (TRANSACTIONS, 3, UPGRADE),
        (TRANSACTIONS, -1, SAFE_DOWNGRADE),
        (TRANSACTIONS, 2, 0),
        (TRANSACTIONS, 2, 4),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
        ("metadata.version", 31, UPGRADE),
        ("nosuch", 1, UPGRADE),
    ],
)
def test_what_is_no_valid_change_is_refused(broker: VirtualBroker, name: str, level: int, how: int) -> None:
    before = levels(broker)
    code, answer = update(broker, (name, level, how))
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert name in answer.error_message
    assert levels(broker) == before


def test_a_downgrade_does_not_go_upward(broker: VirtualBroker) -> None:
    update(broker, (TRANSACTIONS, 0, SAFE_DOWNGRADE))
    assert update(broker, (TRANSACTIONS, 1, SAFE_DOWNGRADE))[0] == ErrorCode.INVALID_UPDATE_VERSION


def test_a_downgrade_by_the_flag_of_v0_is_refused(broker: VirtualBroker) -> None:
    key = FeatureUpdateKey(feature=TRANSACTIONS, max_version_level=1, allow_downgrade=True)
    answer = broker.ask(UpdateFeaturesRequest(feature_updates=[key]), 0)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_several_changes_are_made_together_or_not_at_all(broker: VirtualBroker) -> None:
    assert update(broker, (TRANSACTIONS, 1, SAFE_DOWNGRADE), ("nosuch", 1, UPGRADE))[0] != ErrorCode.NONE
    assert levels(broker)[TRANSACTIONS] == 2


def test_a_level_that_was_set_survives_the_shortening_of_the_metadata_log(broker: VirtualBroker) -> None:
    update(broker, (TRANSACTIONS, 1, SAFE_DOWNGRADE))
    for _ in range(600):
        update(broker, (TRANSACTIONS, 0, SAFE_DOWNGRADE))
        update(broker, (TRANSACTIONS, 1, UPGRADE))
    for _ in range(2):
        broker.stop()
        broker.start()
        assert levels(broker)[TRANSACTIONS] == 1
