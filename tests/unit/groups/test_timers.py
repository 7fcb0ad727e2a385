from lowwater.groups.timers import NEVER, STOPPED_MAX, Timer, Timers


def due(timers: Timers, now_ms: float) -> list[Timer]:
    found = []
    while timer := timers.take_due(now_ms):
        found.append(timer)
    return found


def test_a_timer_is_handed_out_once_when_its_deadline_has_come():
    timers, timer = Timers(), Timer(None)
    timers.set(timer, 100)
    assert due(timers, 99) == []
    assert due(timers, 100) == [timer]
    assert timer.deadline_ms == NEVER
    assert due(timers, 1000) == []
    assert timers.next_deadline_ms is None


def test_timers_come_in_the_order_of_their_deadlines():
    timers, late, early = Timers(), Timer(None), Timer(None)
    timers.set(late, 200)
    timers.set(early, 100)
    assert timers.next_deadline_ms == 100
    assert due(timers, 300) == [early, late]


def test_a_deadline_that_moved_later_needs_no_call():
    timers, timer = Timers(), Timer(None)
    timers.set(timer, 100)
    timer.deadline_ms = 250
    assert due(timers, 100) == []
    assert timers.next_deadline_ms == 250
    assert due(timers, 250) == [timer]


def test_a_deadline_that_moved_earlier_is_kept():
    timers, timer = Timers(), Timer(None)
    timers.set(timer, 300_000)
    timers.set(timer, 100)
    assert timers.next_deadline_ms == 100
    assert due(timers, 100) == [timer]
    assert due(timers, 300_000) == []


def test_a_deadline_that_moved_earlier_and_back_to_where_it_was_comes_once():
    timers, timer = Timers(), Timer(None)
    timers.set(timer, 300)
    timers.set(timer, 100)
    timer.deadline_ms = 300
    assert due(timers, 100) == []
    assert due(timers, 300) == [timer]


def test_a_timer_set_again_after_it_was_due_comes_again():
    timers, timer = Timers(), Timer(None)
    timers.set(timer, 100)
    assert due(timers, 100) == [timer]
    timers.set(timer, 200)
    assert due(timers, 200) == [timer]


def test_a_stopped_timer_is_not_handed_out():
    timers, timer = Timers(), Timer(None)
    timers.set(timer, 100)
    timers.stop(timer)
    assert due(timers, 1000) == []


def test_a_stopped_timer_can_be_set_again():
    timers, timer = Timers(), Timer(None)
    timers.set(timer, 100)
    timers.stop(timer)
    timers.set(timer, 150)
    assert due(timers, 149) == []
    assert due(timers, 150) == [timer]


def test_timers_that_come_and_go_do_not_fill_the_heap():
    timers, kept = Timers(), Timer(None)
    timers.set(kept, 400_000)
    for now_ms in range(20 * STOPPED_MAX):
        timer = Timer(None)
        timers.set(timer, now_ms + 300_000)
        timers.stop(timer)
    assert len(timers) <= 2 * STOPPED_MAX
    assert due(timers, 10**9) == [kept]


def test_a_timer_that_was_swept_out_while_stopped_can_be_set_again():
    timers, timer = Timers(), Timer(None)
    for _ in range(STOPPED_MAX):
        other = Timer(None)
        timers.set(other, 500)
        timers.stop(other)
    timers.set(timer, 100)
    timers.stop(timer)
    assert len(timers) == 0
    timers.set(timer, 100)
    assert due(timers, 100) == [timer]
