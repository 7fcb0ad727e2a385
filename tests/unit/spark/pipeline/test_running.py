"""Running the queries of a pipeline: to their end, until one fails, until they are told to stop."""

import signal
import threading

import pytest
from tests.unit.spark.pipeline.fake_queries import FakeQuery, Told, begins, ends, fails, finishes, progress
from tests.unit.spark.pipeline.files import model_of, spoilt

from lowwater.spark.pipeline import running
from lowwater.spark.pipeline.failures import ExitCode
from lowwater.spark.pipeline.running import run, stopping_on_signals
from lowwater.spark.pipeline.summary import Outcome

ONE = """\
name = "one"
checkpoint = "run"
stop_within = "50ms"
[kafka]
bootstrap.servers = "x:1"
sasl.password = "topsecret"
[source.orders]
topics = "orders"
[sink.out]
from = "orders"
format = "noop"
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Time is looked at as often as it is asked for."""
    monkeypatch.setattr(running, "POLL_S", 0.0)
    monkeypatch.setattr(running, "STOP_POLL_S", 0.0)


class Moving(FakeQuery):
    """Moves on whenever it is asked whether it still runs."""

    def __getattribute__(self, name):
        if name == "isActive" and object.__getattribute__(self, "script"):
            object.__getattribute__(self, "move")()
        return object.__getattribute__(self, name)


def test_a_run_ends_when_all_its_queries_have():
    query = Moving([finishes(0, 10), finishes(1, 5), ends])
    told = Told()
    summary = run(model_of(ONE), lambda _: query, observer=told)
    assert (summary.outcome, summary.exit_code) == (Outcome.DONE, ExitCode.DONE)
    assert [(each.name, each.batches, each.rows) for each in summary.queries] == [("out", 2, 15)]
    assert told.events == [("started", "out"), ("out", 0), ("out", 1), ("ended", "out", None)]


def test_the_last_event_of_each_query_is_given_to_be_committed():
    committed = []
    run(
        model_of(ONE),
        lambda _: Moving([finishes(0, 10), finishes(1, 5), ends]),
        commit=lambda query, event: committed.append((query.label, event["batchId"])),
    )
    assert committed == [("out", 1)]


def test_every_event_is_told_once_also_when_several_came_between_two_looks():
    def three(query):
        query.recentProgress += [progress(7, 1), progress(8, 1), progress(9, 1)]

    told = Told()
    run(model_of(ONE), lambda _: Moving([finishes(6, 1), three, finishes(9, 0), ends]), observer=told)
    assert told.events[1:-1] == [("out", 6), ("out", 7), ("out", 8), ("out", 9)]


def test_what_happens_right_before_the_end_is_told_too():
    def last(query):
        query.recentProgress.append(progress(0, 3))
        query.isActive = False

    told = Told()
    run(model_of(ONE), lambda _: Moving([last]), observer=told)
    assert told.events[1:] == [("out", 0), ("ended", "out", None)]


def test_rows_that_could_not_be_decoded_are_counted_by_source():
    metric = {"observedMetrics": {"decoding_orders": {"rows": 10, "bad": 2}, "mine": {"bad": 9}}}
    summary = run(model_of(ONE), lambda _: Moving([finishes(0, 10, **metric), finishes(1, 10, **metric), ends]))
    assert summary.queries[0].bad_rows == {"orders": 4}


def test_rows_are_counted_where_only_the_sources_have_figures():
    """As over Spark Connect."""
    sources = {"numInputRows": None, "sources": [{"numInputRows": 4}, {"numInputRows": 3}, {}]}
    summary = run(model_of(ONE), lambda _: Moving([finishes(0, **sources), ends]))
    assert summary.rows == 7


def test_a_failure_is_told_without_secrets():
    told = Told()
    query = Moving([fails("Traceback …\nlowwater.errors.DataLossError: 'orders' topsecret is gone")])
    summary = run(model_of(ONE), lambda _: query, observer=told)
    assert (summary.outcome, summary.exit_code) == (Outcome.FAILED, ExitCode.FAILED)
    assert summary.failure.what == "'orders' [hidden] is gone"
    assert told.events[-1] == ("ended", "out", "'orders' [hidden] is gone")


def test_a_query_that_could_not_start_in_time_is_started_again():
    late = "STREAM_FAILED Python worker failed to connect back."
    queries = [Moving([fails(late)]), Moving([fails(late)]), Moving([finishes(0, 1), ends])]
    summary = run(model_of(ONE), lambda _: queries.pop(0))
    assert summary.outcome is Outcome.DONE
    assert summary.rows == 1


def test_a_machine_that_stays_too_busy_is_a_failure_for_later():
    summary = run(model_of(ONE), lambda _: Moving([fails("Python worker failed to connect back.")]))
    assert summary.exit_code is ExitCode.UNREACHABLE


def three_sinks(queries):
    text = spoilt(
        'python = "enriching:enrich"\nfrom = ["paid", "payments"]\narguments = { days = 3 }', 'sql = "TABLE paid"'
    )
    started = []

    def start(query):
        started.append(query.label)
        return queries[query.label]

    return model_of(text), start, started


def test_when_one_fails_the_others_are_stopped():
    queries = {"dead-letters/orders": FakeQuery(), "out": FakeQuery(), "again": Moving([fails("[X] no")])}
    model, start, started = three_sinks(queries)
    summary = run(model, start)
    assert started == ["dead-letters/orders", "out", "again"]
    assert summary.outcome is Outcome.FAILED
    assert not any(query.isActive for query in queries.values())


LATE = "Python worker failed to connect back."


def test_after_one_has_failed_no_other_is_started():
    queries = {"dead-letters/orders": Moving([fails("[X] no")]), "out": FakeQuery(), "again": FakeQuery()}
    model, start, started = three_sinks(queries)
    summary = run(model, start)
    assert started == ["dead-letters/orders"]
    assert summary.outcome is Outcome.FAILED


def test_one_that_could_not_start_in_time_is_started_again_before_the_next_one():
    queries = {"dead-letters/orders": Moving([fails(LATE)]), "out": Moving([ends]), "again": Moving([ends])}
    model, start, started = three_sinks(queries)

    def start_once_more(query):
        running = start(query)
        queries["dead-letters/orders"] = Moving([ends])
        return running

    run(model, start_once_more)
    assert started == ["dead-letters/orders", "dead-letters/orders", "out", "again"]


def test_a_query_that_is_stopped_is_not_started_again():
    stop, started = threading.Event(), []

    class Dying(FakeQuery):
        """It has no worker yet when it is stopped."""

        def stop(self):
            fails(LATE)(self)

    def start(query):
        started.append(query.label)
        stop.set()
        return Dying()

    summary = run(model_of(ONE), start, stop=stop)
    assert started == ["out"]
    assert summary.queries[0].failure is not None


def test_a_stop_before_all_are_started_is_a_stop_although_the_others_are_done():
    """Nobody is told that everything was read."""
    stop = threading.Event()
    queries = {"dead-letters/orders": Moving([ends]), "out": FakeQuery(), "again": FakeQuery()}
    model, start, started = three_sinks(queries)

    def start_and_stop(query):
        stop.set()
        return start(query)

    summary = run(model, start_and_stop, stop=stop)
    assert started == ["dead-letters/orders"]
    assert (summary.outcome, summary.exit_code) == (Outcome.STOPPED, ExitCode.STOPPED)


def test_a_stop_before_anything_is_started_is_one_too():
    stop = threading.Event()
    stop.set()
    model, start, started = three_sinks({})
    assert run(model, start, stop=stop).outcome is Outcome.STOPPED
    assert started == []


def test_a_query_is_started_when_those_before_it_know_where_they_start():
    first = FakeQuery([nothing, nothing, begins], message="Initializing sources")
    queries = {"dead-letters/orders": first, "out": Moving([ends]), "again": Moving([ends])}
    seen = []
    model, start, _ = three_sinks(queries)

    def start_and_see(query):
        seen.append((query.label, first.message))
        return start(query)

    stop = threading.Event()
    queries["again"].script.insert(0, lambda _: ends(first))
    run(model, start_and_see, stop=stop)
    assert seen[1] == ("out", "Processing new data")


def test_a_start_that_is_refused_stops_what_runs():
    queries = {"dead-letters/orders": FakeQuery(), "out": FakeQuery()}
    model, start, _ = three_sinks(queries)
    with pytest.raises(KeyError):
        run(model, start)
    assert not any(query.isActive for query in queries.values())


def stopped(script=(), *, in_batch, text=ONE):
    """A run that is asked to stop as soon as its query runs; each look of the stopping moves the query on."""
    stop = threading.Event()
    query = FakeQuery(list(script), in_batch=in_batch)

    def start(_):
        stop.set()
        return query

    return run(model_of(text), start, stop=stop), query


def nothing(query):
    pass


def test_a_stop_waits_for_the_running_batch():
    summary, query = stopped([nothing, nothing, finishes(0, 4)], in_batch=True)
    assert (summary.outcome, summary.exit_code) == (Outcome.STOPPED, ExitCode.STOPPED)
    assert query.stopped_in_batch is False
    assert summary.rows == 4


def test_a_stop_comes_between_two_batches_although_the_next_begins_at_once():
    def next_one(query):
        query.recentProgress.append(progress(0, 4))
        query.in_batch = True

    summary, query = stopped([nothing, next_one], in_batch=True)
    assert summary.outcome is Outcome.STOPPED
    assert not query.isActive


def held(query, checkpoint="run"):
    """A run that is asked to stop as soon as its query runs, and that can keep it from beginning batches."""
    stop, holds = threading.Event(), []

    def start(_):
        stop.set()
        return query

    model = model_of(ONE.replace('"run"', f'"{checkpoint}"'))
    summary = run(model, start, stop=stop, hold=lambda: holds.append(query.isActive))
    assert holds == [True], "it is held once, and before it is stopped"
    return summary


def test_a_query_that_is_held_is_waited_for_until_it_is_idle():
    def next_one(query):
        query.recentProgress.append(progress(0, 4))
        query.in_batch = True

    query = FakeQuery([nothing, next_one, nothing, finishes(1, 3)], in_batch=True)
    summary = held(query)
    assert (summary.outcome, query.stopped_in_batch, summary.rows) == (Outcome.STOPPED, False, 7)


def test_a_batch_that_was_cut_off_all_the_same_is_told(tmp_path):
    """Spark may begin one by itself, without new rows, between the look at the query and the stop."""
    log = tmp_path / "out" / "offsets"
    log.mkdir(parents=True)
    (log / "0").write_text('v1\n{}\n{"lowwater": 1, "lineage": "0badcafe"}')
    summary = held(FakeQuery(in_batch=False), tmp_path)
    assert (summary.outcome, summary.exit_code) == (Outcome.CUT_OFF, ExitCode.FAILED)


@pytest.mark.parametrize(("in_batch", "outcome"), [(True, Outcome.CUT_OFF), (False, Outcome.STOPPED)])
def test_a_stop_within_no_time_cuts_off_what_runs_and_nothing_else(in_batch, outcome):
    summary, query = stopped(in_batch=in_batch, text=ONE.replace("50ms", "0s"))
    assert (summary.outcome, query.stopped_in_batch) == (outcome, in_batch)


def test_an_idle_query_is_stopped_at_once():
    summary, query = stopped(in_batch=False)
    assert (summary.outcome, query.stopped_in_batch) == (Outcome.STOPPED, False)


def test_a_batch_that_takes_longer_than_is_allowed_is_cut_off():
    summary, query = stopped(in_batch=True)
    assert (summary.outcome, summary.exit_code) == (Outcome.CUT_OFF, ExitCode.FAILED)
    assert query.stopped_in_batch is True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_a_stop_and_a_second_one_ends_at_once(number):
    before = signal.getsignal(number)
    stop = threading.Event()
    with stopping_on_signals(stop):
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
