"""From -b, -X and -F to a client, and from an error to the way out."""

import click
import pytest

from lowwater.cli.connecting import BOOTSTRAP, connection_of, way_out
from lowwater.cli.settings_file import KCATS
from lowwater.client.config import Address, ClientConfig
from lowwater.client.errors import ClientError, ConnectError, ProtocolError, TlsError


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LOWWATER_CONFIG", "KCAT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def file_of(home, text):
    file = home / "given.conf"
    file.write_text(text)
    return str(file)


def test_without_a_word_it_is_the_broker_of_this_machine():
    config = connection_of(None, (), None).config()
    assert [str(each) for each in config.bootstrap] == [BOOTSTRAP]


def test_the_option_wins_over_the_property_and_that_over_the_file(home):
    file = file_of(home, "metadata.broker.list=file:1\nclient.id=file\nacks=1")
    settings = connection_of("option:3", ("bootstrap.servers=property:2", "client.id=property"), file).settings
    assert settings == {"bootstrap.servers": "option:3", "client.id": "property", "acks": "1"}
    assert connection_of(None, ("metadata.broker.list=property:2",), file).settings["bootstrap.servers"] == "property:2"


def test_the_command_line_wins_over_what_suits_a_terminal():
    config = connection_of(None, ("default.api.timeout.ms=7",), None).config()
    assert config.int("default.api.timeout.ms") == 7
    assert config.str("client.id") == "lowwater-cli"


def test_kcat_s_files_are_read_for_those_who_come_from_it(home, monkeypatch):
    monkeypatch.setenv("KCAT_CONFIG", file_of(home, "bootstrap.servers=kcat:1"))
    assert connection_of(None, (), None).settings == {}
    assert connection_of(None, (), None, usual_files=KCATS).settings == {"bootstrap.servers": "kcat:1"}


def test_properties_of_topics_lose_their_prefix():
    assert connection_of(None, ("topic.request.required.acks=1",), None).settings == {"acks": "1"}


@pytest.mark.parametrize("text", ["name", "=value", ""])
def test_a_property_needs_a_name_and_a_value(text):
    with pytest.raises(click.UsageError, match="-X takes NAME=VALUE"):
        connection_of(None, (text,), None)


def advice(error: ClientError, nodes: dict[int, Address] | None = None, **settings: str) -> str:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return way_out(error, ClientConfig({"bootstrap.servers": "here:1", **given}), nodes or {})


def test_an_address_that_only_the_broker_knows_is_its_listeners_fault():
    told = advice(ConnectError("inside:9092: the host name cannot be resolved"), {1: Address("inside", 9092)})
    assert told.startswith("inside:9092 is where a broker tells its clients to go")
    assert "advertised.listeners" in told
    assert "lowwater broker" in advice(ConnectError("here:1 refuses connections"), {1: Address("here", 1)})


def test_a_wrong_protocol_names_the_other_one():
    asked = "is security.protocol right for this port?"
    assert "=SSL" in advice(ProtocolError("here:1 sent what is not Kafka's protocol", advice=asked))
    assert "=PLAINTEXT" in advice(ConnectError("here:1 closed it", advice=asked), security_protocol="SSL")


def test_a_certificate_that_is_not_trusted_names_the_setting():
    refused = TlsError("the certificate of here:1 is not accepted: self-signed")
    assert advice(refused, security_protocol="SSL") == "-X ssl.ca.location=FILE says whom to trust"


def test_other_errors_keep_their_own_advice():
    assert advice(ClientError("what", advice="do this")) == "do this"
