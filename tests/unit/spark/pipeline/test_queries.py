"""Which queries a pipeline is made of."""

from tests.unit.spark.pipeline.files import GOOD, model_of, spoilt

from lowwater.spark.pipeline.queries import needed, queries


def test_each_sink_and_each_source_with_dead_letters_is_a_query():
    assert [(query.label, query.name, query.checkpoint) for query in queries(model_of())] == [
        ("dead-letters/orders", "orders.dead-letters.orders", "/here/run/checkpoint/dead-letters/orders"),
        ("out", "orders.out", "/here/run/checkpoint/out"),
        ("again", "orders.again", "/here/run/checkpoint/again"),
    ]


def test_the_last_query_that_reads_a_source_commits_its_offsets():
    assert [sorted(query.commits) for query in queries(model_of())] == [[], [], ["orders", "payments"]]


def test_a_query_reads_only_what_its_sink_needs():
    text = spoilt('from = "rich"\nformat = "topic"', 'from = "payments"\nformat = "topic"', GOOD)
    letters, out, again = queries(model_of(text))
    assert (letters.reads, out.reads, again.reads) == (("orders",), ("orders", "payments"), ("payments",))
    assert (out.commits, again.commits) == ({"orders"}, {"payments"})


def test_steps_that_nobody_needs_are_left_out():
    sources, steps = needed(model_of(), "Paid")
    assert [source.name for source in sources] == ["orders", "payments"]
    assert [step.name for step in steps] == ["paid"]


def test_a_source_needs_nothing_else():
    sources, steps = needed(model_of(), "payments")
    assert ([source.name for source in sources], steps) == (["payments"], ())
