"""What a start at this moment would find: a second shard replays the log, and must know all that was told."""

from __future__ import annotations

from collections import defaultdict

from tests.sim.groups.judge import Judge
from tests.sim.groups.judge_commits import Key
from tests.sim.groups.shard_node import ShardNode
from tests.unit.groups.shard_log import Logged, compacted, logged, replay

from lowwater.groups.classic import ClassicGroup
from lowwater.groups.commands import Fetch
from lowwater.groups.shard import GroupShard
from lowwater.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics


def judge_reload(node: ShardNode, judge: Judge) -> int:
    """After a power cut that takes all that is not synced, and after a kill; how many starts were tried."""
    for log in (node.log[: node.synced], node.log):
        _judge(node, judge, log)
        _judge(node, judge, compacted(log))
    return 4


def _judge(node: ShardNode, judge: Judge, log: list[Logged]) -> None:
    shard = GroupShard(node.config, node.ids, node.topics)
    replay(shard, log)
    replay(shard, logged(shard.loaded(node.now)))
    _judge_offsets(node, judge, shard)
    _judge_generations(judge, shard)


def _judge_offsets(node: ShardNode, judge: Judge, shard: GroupShard) -> None:
    promised = judge.commits.promised()
    by_group: dict[str, list[Key]] = defaultdict(list)
    for key in promised:
        by_group[key[0]].append(key)
    for group, keys in by_group.items():
        wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=[at]) for _, topic, at in keys]
        asked = Fetch(OffsetFetchRequestGroup(group_id=group, topics=wanted), False, False)
        [(_, answer)] = shard.decide(asked, None, node.now).replies
        for key, topic in zip(keys, answer.topics, strict=True):
            found = topic.partitions[0].committed_offset
            if found not in promised[key]:
                judge.report(f"{key}: {found} after a restart, expected one of {sorted(promised[key])}")


def _judge_generations(judge: Judge, shard: GroupShard) -> None:
    for group_id, story in judge.classic.stories.items():
        group = shard.groups.get(group_id)
        if story.last < 0 or not isinstance(group, ClassicGroup):
            continue
        if group.generation < story.last:
            judge.report(f"{group_id} would be in generation {group.generation} after a restart, {story.last} was told")
