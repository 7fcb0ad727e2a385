"""-P: the same input through kcat and `lowwater cat` becomes the same records."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.cats.runs import Done, cat, kcat, problem
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

pytestmark = pytest.mark.peer("kcat")

RECORDS = "%p|%k|%K|%s|%S|%h\\n"


class Both:
    """Sends the same by both ways, to a topic each."""

    def __init__(self, broker: UnderTest, new_topic: NewTopic) -> None:
        self._bootstrap = broker.bootstrap
        self._new_topic = new_topic

    def produce(self, *arguments: str, stdin: bytes = b"", partitions: int = 1) -> tuple[Done, Done, list[bytes]]:
        """How each ended, and the records, which are the same."""
        topics = [self._new_topic("produced", partitions=partitions) for _ in range(2)]
        ends = [
            run("-P", "-b", self._bootstrap, "-t", topic, *arguments, stdin=stdin)
            for run, topic in zip((cat, kcat), topics, strict=True)
        ]
        mine, theirs = (self.records(topic) for topic in topics)
        assert mine == theirs
        return ends[0], ends[1], mine

    def records(self, topic: str) -> list[bytes]:
        done = kcat("-C", "-b", self._bootstrap, "-t", topic, "-eq", "-f", RECORDS)
        assert done.code == 0
        return sorted(done.out.splitlines())


@pytest.fixture
def both(broker: UnderTest, new_topic: NewTopic) -> Both:
    return Both(broker, new_topic)


KEYED = b"k1:v1\nno key\n:empty key\nk2:\n:\nk:v:w\n"
LINES = [
    ("", b"one\ntwo\n\nthree"),
    ("", b""),
    ("-K:", KEYED),
    ("-K: -Z", KEYED),
    ("-K: -Z -k fixed", KEYED),
    ("-K:: -k fixed", b"a::b\na:b\n"),
    ("-k fixed -H h1=v1 -H h2 -H h3= -H h1=a=b,c", b"headers\n"),
    ("-T", b"one\ntwo\n\nthree"),
    ("-T -K:", KEYED),
    ("-c2", b"1\n2\n3\n"),
    ("-c0", b"1\n2\n"),
    ("-D;;", b"m1;;m2;m3;;;;m4;;"),
    (r"-D \x1e -K \x1f", b"k\x1fline\nline\x1ek2\x1fv"),
    ("-l", b"from\nstdin"),
    ("-p0", b"to a partition"),
    ("-p -1", b"to any"),
    ("-q -u", b"quiet"),
    ("-X acks=1 -X topic.request.timeout.ms=9000", b"a"),
    ("-X enable.idempotence=true", b"a"),
]


@pytest.mark.parametrize(("line", "stdin"), LINES)
def test_input_becomes_the_same_records(both: Both, line: str, stdin: bytes) -> None:
    mine, theirs, _ = both.produce(*line.split(), stdin=stdin)
    assert mine == theirs
    assert mine.code == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "none"])
def test_every_codec_is_read_back(both: Both, codec: str) -> None:
    mine, theirs, records = both.produce("-z", codec, stdin=b"compressed " * 50)
    assert mine == theirs
    assert len(records) == 1


def test_keys_go_to_the_same_partitions(both: Both) -> None:
    stdin = b"".join(b"key-%d:value\n" % each for each in range(40))
    _, _, records = both.produce("-K:", stdin=stdin, partitions=4)
    assert {record.partition(b"|")[0] for record in records} == {b"0", b"1", b"2", b"3"}


def test_other_partitioners_are_taken(both: Both) -> None:
    stdin = b"".join(b"key-%d:value\n" % each for each in range(40))
    both.produce("-K:", "-X", "partitioner=murmur2_random", stdin=stdin, partitions=4)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    contents = {"lines": b"line 1\nline 2\n", "short": b"no newline", "empty": b""}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    return {name: str(tmp_path / name) for name in (*contents, "missing")}


FILES = [
    "{lines} {short} {empty}",
    "-l {lines}",
    "{lines} {missing}",
    "{missing}",
    "-l {missing}",
    "-l {lines} {short}",
]


@pytest.mark.parametrize("line", FILES)
def test_files_are_sent_alike(both: Both, files: dict[str, str], line: str) -> None:
    mine, theirs, _ = both.produce("-k", "key", *line.format(**files).split(" "))
    assert mine == theirs


def test_a_transaction_is_committed_at_the_end(both: Both) -> None:
    mine, theirs, records = both.produce("-X", "transactional.id=cat", stdin=b"one\ntwo\n")
    assert mine == theirs
    assert len(records) == 2


@pytest.mark.parametrize("line", ["-s i", "-H =v", "-D {nothing}"])
def test_what_is_wrong_with_a_line_is_told_alike(both: Both, line: str) -> None:
    mine, theirs, _ = both.produce(*line.format(nothing="").split(" "), stdin=b"a")
    assert mine[:2] == theirs[:2] == (1, b"")
    assert problem(mine) == problem(theirs) != ""


def test_what_cannot_be_written_ends_with_1(both: Both) -> None:
    mine, theirs, records = both.produce("-p3", stdin=b"nowhere")
    assert (mine.code, theirs.code, records) == (1, 1, [])
    assert all(told.startswith("% Delivery failed for message: ") for told in (*mine.err, *theirs.err))


def test_a_topic_that_is_missing_is_made(broker: UnderTest, fresh_name: str) -> None:
    done = cat("-P", "-b", broker.bootstrap, "-t", fresh_name, stdin=b"first")
    assert done == (0, b"", ())
    assert cat("-C", "-b", broker.bootstrap, "-t", fresh_name, "-eq").out == b"first\n"
