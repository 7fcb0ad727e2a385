import pytest

from lowwater.server.node import share_handles


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(100, (37, 38)), (1024, (480, 480)), (11_000, (683, 10_253)), (1 << 20, (4096, (1 << 20) - 64 - 4096))],
)
def test_files_and_connections_share_the_handles_and_leave_a_reserve(limit, expected):
    assert share_handles(limit) == expected
    assert sum(expected) < limit
