"""The small machine that moves partitions from one member to another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lowwater.groups.consumer_reconciliation import CurrentAssignment, Goal, MemberState, reconcile

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState


def held(epoch: int, **topics: list[int]) -> dict[bytes, dict[int, int]]:
    return {name.encode() * 16: dict.fromkeys(partitions, epoch) for name, partitions in topics.items() if partitions}


def goal(epoch: int, **topics: list[int]) -> Goal:
    return Goal(epoch, {name.encode() * 16: frozenset(partitions) for name, partitions in topics.items()}, {T, U})


def nobody(topic_id: bytes, partition: int) -> bool:
    return False


def everybody(topic_id: bytes, partition: int) -> bool:
    return True


def test_a_stable_member_in_the_targets_epoch_stays_as_it_is():
    current = CurrentAssignment(3, 2, STABLE, held(3, t=[0]))
    assert reconcile(current, goal(3, t=[1]), None, nobody) is current


def test_what_is_free_is_given_with_the_new_epoch():
    current = CurrentAssignment(2, 1, STABLE, held(2, t=[0]))
    step = reconcile(current, goal(3, t=[0, 1], u=[0]), None, nobody)
    assert step == CurrentAssignment(3, 2, STABLE, {T: {0: 2, 1: 3}, U: {0: 3}})


def test_what_others_have_is_waited_for_in_the_new_epoch():
    current = CurrentAssignment(2, 1, STABLE, held(2, t=[0]))
    step = reconcile(current, goal(3, t=[0, 1]), None, everybody)
    assert step == CurrentAssignment(3, 2, UNRELEASED, held(2, t=[0]))
    step = reconcile(step, goal(3, t=[0, 1]), None, nobody)
    assert step == CurrentAssignment(3, 3, STABLE, {T: {0: 2, 1: 3}})


def test_nothing_is_given_before_everything_was_given_up():
    current = CurrentAssignment(2, 1, STABLE, held(2, t=[0, 1]))
    step = reconcile(current, goal(3, t=[0], u=[0]), None, nobody)
    assert step == CurrentAssignment(2, 2, UNREVOKED, held(2, t=[0]), held(2, t=[1]))
    assert reconcile(step, goal(3, t=[0], u=[0]), {T: frozenset({0, 1})}, nobody) is step
    assert reconcile(step, goal(3, t=[0], u=[0]), None, nobody) is step
    step = reconcile(step, goal(3, t=[0], u=[0]), {T: frozenset({0})}, nobody)
    assert step == CurrentAssignment(3, 2, STABLE, {T: {0: 2}, U: {0: 3}})


def test_what_the_member_reports_not_to_own_need_not_be_asked_back():
    current = CurrentAssignment(2, 1, STABLE, held(2, t=[0, 1]))
    step = reconcile(current, goal(3, t=[0]), {T: frozenset({0})}, nobody)
    assert step == CurrentAssignment(3, 2, STABLE, held(2, t=[0]))


def test_a_target_that_changes_meanwhile_is_taken_up_when_all_was_given_up():
    step = CurrentAssignment(2, 2, UNREVOKED, held(2, t=[0]), held(2, t=[1]))
    later = reconcile(step, goal(4, t=[1]), {T: frozenset({0})}, nobody)
    assert later == CurrentAssignment(2, 2, UNREVOKED, {}, held(2, t=[0]))
    done = reconcile(later, goal(4, t=[1]), {}, nobody)
    assert done == CurrentAssignment(4, 2, STABLE, held(4, t=[1]))


def test_topics_that_are_not_subscribed_to_are_not_given():
    step = reconcile(CurrentAssignment(), Goal(3, {T: frozenset({0}), U: frozenset({0})}, {U}), {}, nobody)
    assert step.assigned == held(3, u=[0])


def test_topics_unsubscribed_from_are_taken_back_before_there_is_a_new_target():
    current = CurrentAssignment(3, 2, STABLE, held(3, t=[0], u=[0]))
    only_u = Goal(3, {T: frozenset({0}), U: frozenset({0})}, {U})
    step = reconcile(current, only_u, None, nobody, subscription_changed=True)
    assert step == CurrentAssignment(3, 3, UNREVOKED, held(3, u=[0]), held(3, t=[0]))
    unchanged = Goal(3, {}, {T, U})
    assert reconcile(current, unchanged, None, nobody, subscription_changed=True) is current


def test_topics_unsubscribed_from_are_added_to_what_is_being_given_up():
    current = CurrentAssignment(2, 2, UNREVOKED, held(2, t=[0], u=[0]), held(2, t=[1]))
    only_u = Goal(3, {U: frozenset({0})}, {U})
    step = reconcile(current, only_u, None, nobody, subscription_changed=True)
    assert step == CurrentAssignment(2, 2, UNREVOKED, held(2, u=[0]), held(2, t=[0, 1]))


# Two or more members and a target that moves

PARTITIONS = [(T, 0), (T, 1), (T, 2), (U, 0)]
MEMBERS = ("a", "b", "c")


class Table:
    """Members that are reconciled to one target, and clients that own what they were last told, until told less."""

    def __init__(self) -> None:
        self.current = {name: CurrentAssignment() for name in MEMBERS}
        self.reads: dict[str, set[tuple[bytes, int]]] = {name: set() for name in MEMBERS}
        self.epoch = 1
        self.target: dict[str, dict[bytes, frozenset[int]]] = {name: {} for name in MEMBERS}

    def retarget(self, owners: list[str | None]) -> None:
        self.epoch += 1
        self.target = {
            name: {
                topic: frozenset(
                    p for (t, p), owner in zip(PARTITIONS, owners, strict=True) if t == topic and owner == name
                )
                for topic in (T, U)
            }
            for name in MEMBERS
        }

    def beat(self, name: str, reports: bool, answered: bool) -> None:
        owned = {t: frozenset(p for one, p in self.reads[name] if one == t) for t in (T, U)} if reports else None
        before = self.current[name]
        step = reconcile(before, Goal(self.epoch, self.target[name], {T, U}), owned, self._taken_from(name))
        assert step.epoch >= before.epoch
        self.current[name] = step
        if answered:
            self.reads[name] = {(t, p) for t, partitions in step.assigned.items() for p in partitions}

    def _taken_from(self, name: str):
        def taken(topic_id: bytes, partition: int) -> bool:
            return any(
                other.epoch_of(topic_id, partition) is not None for one, other in self.current.items() if one != name
            )

        return taken

    def check(self) -> None:
        for topic, partition in PARTITIONS:
            holders = [name for name in MEMBERS if self.current[name].epoch_of(topic, partition) is not None]
            readers = [name for name in MEMBERS if (topic, partition) in self.reads[name]]
            assert len(holders) <= 1
            assert len(readers) <= 1
            assert set(readers) <= set(holders)


OWNERS = st.lists(st.sampled_from([None, *MEMBERS]), min_size=len(PARTITIONS), max_size=len(PARTITIONS))
BEAT = st.tuples(st.sampled_from(MEMBERS), st.booleans(), st.booleans())


@given(st.lists(st.one_of(OWNERS, BEAT), max_size=40), OWNERS)
def test_no_partition_ever_has_two_owners_and_all_get_what_they_shall_have(steps, last):
    table = Table()
    for step in steps:
        if isinstance(step, list):
            table.retarget(step)
        else:
            table.beat(*step)
        table.check()
    table.retarget(last)
    for _ in range(4):
        for name in MEMBERS:
            table.beat(name, reports=True, answered=True)
            table.check()
    for name in MEMBERS:
        assert table.current[name].is_reconciled_to(table.epoch)
        assert table.reads[name] == {one for one, owner in zip(PARTITIONS, last, strict=True) if owner == name}
