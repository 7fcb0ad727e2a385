"""What is known of topics when not everything is."""

from lowwater.cli.topics.facts import Facts, id_text, partitions_of, troubles
from lowwater.client.admin.offsets import Bounds
from lowwater.client.admin.topics import DescribedPartition, DescribedTopic

HEALTHY = DescribedPartition(0, leader=1, replicas=(1, 2), in_sync=(2, 1))
LAGGING = DescribedPartition(1, leader=1, replicas=(1, 2), in_sync=(1,))
HEADLESS = DescribedPartition(2, leader=-1, replicas=(1, 2), in_sync=())
TOPIC = DescribedTopic("t", partitions=(HEALTHY, LAGGING, HEADLESS))
FIRST, SECOND, THIRD = partitions_of(TOPIC)


def test_what_is_wrong_with_a_topic_is_told_in_a_few_words():
    assert troubles(TOPIC) == "1 without leader, 2 short of replicas"
    assert troubles(DescribedTopic("t", partitions=(HEALTHY, LAGGING))) == "1 short of replicas"
    assert troubles(DescribedTopic("t", partitions=(HEALTHY,))) == ""


def test_a_sum_of_which_a_part_is_not_known_is_not_known():
    facts = Facts(bounds={FIRST: Bounds(5, 9), SECOND: Bounds(9, 9)}, sizes={FIRST: 10})
    assert facts.count([FIRST, SECOND]) == 4
    assert facts.count([FIRST, SECOND, THIRD]) is None
    assert (facts.size([FIRST]), facts.size([FIRST, SECOND])) == (10, None)
    assert facts.count([]) == facts.size([]) == 0


def test_the_newest_record_is_that_of_the_partitions_that_have_one():
    facts = Facts(newest={FIRST: 7, SECOND: None})
    assert facts.newest_of([FIRST, SECOND, THIRD]) == 7
    assert facts.newest_of([SECOND]) is None


def test_an_id_is_written_as_kafka_s_tools_write_it():
    assert id_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
    assert id_text(bytes(16)) is None
