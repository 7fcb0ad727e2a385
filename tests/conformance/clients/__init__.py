"""The client libraries of the behaviour suite, each behind one small driver."""

import pytest
from tests.conformance.clients.aio_kafka import AioKafka
from tests.conformance.clients.base import Can, Driver
from tests.conformance.clients.confluent import Confluent
from tests.conformance.clients.java import Java
from tests.conformance.clients.kafka_python import KafkaPython
from tests.conformance.clients.kafkajs import KafkaJs
from tests.conformance.clients.kcat import Kcat

DRIVERS: dict[str, type[Driver]] = {
    driver.name: driver for driver in (Confluent, KafkaPython, AioKafka, Kcat, Java, KafkaJs)
}


def clients(*needs: Can) -> pytest.MarkDecorator:
    """Run a test once per client library that can do what the test needs."""
    able = [driver for driver in DRIVERS.values() if driver.can.issuperset(needs)]
    chosen = [pytest.param(driver.name, marks=pytest.mark.peer(driver.peer), id=driver.name) for driver in able]
    return pytest.mark.parametrize("client", chosen, indirect=True)
