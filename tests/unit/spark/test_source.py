"""What Spark is given by the source, without Spark."""

import pickle

import pytest

from lowwater.spark.option_table import OptionError
from lowwater.spark.source import LowwaterSource

GIVEN = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"}


@pytest.mark.parametrize("ending", [{"stop": "latest"}, {"endingoffsets": "latest"}, {"endingtimestamp": "5"}])
def test_what_only_a_stream_refuses_is_raised_by_its_first_call(ending):
    source = LowwaterSource({**GIVEN, **ending})
    reader = pickle.loads(pickle.dumps(source.streamReader(source.schema())))
    for call in (reader.prepareForTriggerAvailableNow, reader.initialOffset):
        with pytest.raises(OptionError, match="not valid in streaming queries: leave"):
            call()
    reader.stop()


def test_what_a_batch_query_refuses_is_raised_at_once():
    source = LowwaterSource({**GIVEN, "start": "latest"})
    with pytest.raises(OptionError, match="starting offset can't be latest"):
        source.reader(source.schema())
