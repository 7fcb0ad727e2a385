"""Settings of topics as people read them."""

import pytest

from lowwater.cli.topics.settings import humane


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("retention.ms", "604800000", "604800000 (7 d)"),
        ("retention.ms", "-1", "-1 (no limit)"),
        ("segment.bytes", "1073741824", "1073741824 (1.00 GiB)"),
        ("segment.jitter.ms", "0", "0"),
        ("index.interval.bytes", "4096", "4096"),
        ("flush.ms", "9223372036854775807", "9223372036854775807 (no limit)"),
        ("local.retention.ms", "-2", "-2"),
        ("cleanup.policy", "compact", "compact"),
        ("sasl.secret", None, None),
    ],
)
def test_long_numbers_are_told_in_other_words_too(name, value, shown):
    assert humane(name, value) == shown
