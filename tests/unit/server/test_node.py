import pytest

from lowwater.server.node import share_handles


@pytest.mark.parametrize(("limit", "expected"), [(100, (37, 38)), (1024, (480, 480)), (20_000, (4096, 15_840))])
def test_files_and_connections_share_the_handles_and_leave_a_reserve(limit, expected):
    assert share_handles(limit) == expected
    assert sum(expected) < limit
