"""What a client can be told, and what it says of what it cannot use."""

from __future__ import annotations

import pickle
import warnings

import pytest

from lowwater.client.config import ALIASES, CLIENT_SETTING, Address, ClientConfig, parse_address
from lowwater.client.settings import CALLABLES, IGNORED, REFUSED
from lowwater.errors import ConfigError

SECRET = "open sesame "
LOGIN = {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": SECRET}


def test_values_come_as_text_or_as_what_they_are() -> None:
    config = ClientConfig({"request.timeout.ms": "1500", "retry.backoff.ms": 20, "socket.keepalive.enable": False})
    assert config.int("request.timeout.ms") == 1500
    assert config.int("retry.backoff.ms") == 20
    assert config.bool("socket.keepalive.enable") is False


def test_what_is_not_given_has_its_default() -> None:
    config = ClientConfig({})
    assert config.int("request.timeout.ms") == 30_000
    assert not config.is_given("request.timeout.ms")


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_names_of_both_families_of_clients_are_taken(alias: str, name: str) -> None:
    assert alias not in CLIENT_SETTING
    assert name in CLIENT_SETTING


def test_an_alias_sets_what_it_stands_for() -> None:
    assert ClientConfig({"metadata.broker.list": "a:1"}).bootstrap == (Address("a", 1),)
    assert ClientConfig({"socket.timeout.ms": 7}).int("request.timeout.ms") == 7


def test_one_setting_by_two_names_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"request\.timeout\.ms is given twice, once as socket\.timeout\.ms"):
        ClientConfig({"request.timeout.ms": 1, "socket.timeout.ms": 2})


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'bootstrap\.server'; did you mean bootstrap\.servers\?"):
        ClientConfig({"bootstrap.server": "a:1"})
    with pytest.raises(ConfigError, match=r"unknown setting 'xyzzy'$"):
        ClientConfig({"xyzzy": "1"})


def test_a_name_that_means_nothing_here_is_told_and_left_alone() -> None:
    with pytest.warns(UserWarning, match="statistics.interval.ms has no meaning here"):
        ClientConfig({"statistics.interval.ms": 0})


def test_no_name_is_of_two_kinds() -> None:
    kinds = [set(CLIENT_SETTING), set(ALIASES), set(IGNORED), set(REFUSED), set(CALLABLES)]
    assert sum(map(len, kinds)) == len(set().union(*kinds))


@pytest.mark.parametrize("name", ["ssl.truststore.location", "sasl.kerberos.keytab", "ssl.crl.location"])
def test_what_would_leave_a_connection_less_safe_than_asked_for_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} cannot be used: "):
        ClientConfig({name: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request.timeout.ms", "soon"),
        ("request.timeout.ms", 0),
        ("security.protocol", "TLS"),
        ("acks", "2"),
        ("client.id", object()),
        ("oauth_cb", "not a function"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        ClientConfig({name: value})


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("broker:9093", Address("broker", 9093)),
        ("broker", Address("broker", 9092)),
        ("SASL_SSL://broker:9094", Address("broker", 9094)),
        ("[::1]:9092", Address("::1", 9092)),
        ("[::1]", Address("::1", 9092)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", [":9092", "broker:", "broker:http", "broker:0", "broker:65536", "[]:1"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not host:port"):
        parse_address(text)


def test_brokers_are_listed_with_commas_or_as_a_list() -> None:
    two = (Address("a", 1), Address("b", 2))
    assert ClientConfig({"bootstrap.servers": "a:1, b:2"}).bootstrap == two
    assert ClientConfig({"bootstrap.servers": ["a:1", "b:2"]}).bootstrap == two


def test_no_brokers_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is not set"):
        _ = ClientConfig({}).bootstrap


def test_a_login_needs_a_protocol_that_sends_it() -> None:
    with pytest.raises(ConfigError, match="SASL_PLAINTEXT to log in in clear"):
        ClientConfig(LOGIN)
    assert ClientConfig({**LOGIN, "security.protocol": "sasl_ssl"}).uses_tls


@pytest.mark.parametrize(
    "missing",
    [
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "ann"},
        {"sasl.mechanism": "PLAIN", "sasl.password": SECRET},
        {"sasl.mechanism": "OAUTHBEARER"},
        {},
    ],
)
def test_a_login_is_whole(missing: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refusal:
        ClientConfig({"security.protocol": "SASL_SSL", **missing})
    assert SECRET not in str(refusal.value)


def test_a_password_is_kept_as_it_is_and_never_shown() -> None:
    config = ClientConfig({**LOGIN, "security.protocol": "SASL_SSL", "ssl.key.pem": "-----BEGIN KEY"})
    assert config.str("sasl.password") == SECRET
    assert "sesame" not in repr(config)
    assert "BEGIN" not in repr(config)
    assert "'ann'" in repr(config)


def test_a_configuration_can_be_sent_to_another_process() -> None:
    config = ClientConfig({**LOGIN, "security.protocol": "SASL_SSL", "bootstrap.servers": "a:1"})
    again = pickle.loads(pickle.dumps(config))
    assert again.bootstrap == config.bootstrap
    assert again.str("sasl.password") == SECRET


def test_a_usual_configuration_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ClientConfig({"bootstrap.servers": "a", "group.id": "g", "enable.auto.commit": False, "fetch.min.bytes": 1})
