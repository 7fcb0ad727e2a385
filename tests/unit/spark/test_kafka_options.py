"""`kafka.*` options as users of Java's clients write them: taken, or refused with the way out."""

from __future__ import annotations

import pickle

import pytest

from lowwater.client.config import ClientConfig
from lowwater.spark.kafka_options import SINK_REFUSALS, SOURCE_REFUSALS, client_settings
from lowwater.spark.option_table import OptionError

SERVERS = {"bootstrap.servers": "localhost:9092"}
SASL = {"security.protocol": "SASL_SSL"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = "hush-4711"


def taken(**given: str) -> dict[str, str]:
    """Names with `_` for a dot."""
    settings, _ = client_settings({**SERVERS, **{name.replace("_", "."): text for name, text in given.items()}}, {}, {})
    return dict(settings.settings)


def refusal(given: dict[str, str], refusals: dict[str, str] | None = None) -> str:
    with pytest.raises(OptionError) as refused:
        client_settings({**SERVERS, **given}, refusals or {}, {})
    assert SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)
    return str(refused.value)


# -- logins


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_scram_login_of_a_jaas_text_is_taken(mechanism: str) -> None:
    settings = taken(
        security_protocol="SASL_SSL", sasl_mechanism=mechanism,
        sasl_jaas_config=f'{SCRAM} required username="anna" password="{SECRET}";',
    )  # fmt: skip
    config = ClientConfig(settings)
    assert (config.str("sasl.username"), config.str("sasl.password")) == ("anna", SECRET)
    assert "sasl.jaas.config" not in settings


def test_a_plain_login_of_a_jaas_text_is_taken() -> None:
    jaas = f'kafkashaded.{PLAIN} required username="anna" password="{SECRET}";'
    settings = taken(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=jaas)
    assert (settings["sasl.username"], settings["sasl.password"]) == ("anna", SECRET)


def test_a_login_by_user_and_password_is_taken_as_it_is() -> None:
    settings = taken(
        security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_username="anna", sasl_password=SECRET
    )  # fmt: skip
    assert settings["sasl.password"] == SECRET


def test_a_token_and_the_extensions_of_a_jaas_text_are_taken() -> None:
    jaas = f'{BEARER} required extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";'
    settings = taken(
        security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token=SECRET, sasl_jaas_config=jaas
    )  # fmt: skip
    assert settings["sasl.oauthbearer.extensions"] == "logicalCluster=lkc-1,identityPoolId=pool-2"
    assert settings["sasl.oauthbearer.token"] == SECRET


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sasl.mechanism": "GSSAPI"}, ["Kerberos", "SCRAM-SHA-512", "kafka.sasl.username"]),
        (
            {"sasl.jaas.config": 'com.sun.security.auth.module.Krb5LoginModule required keyTab="/k";'},
            ["Kerberos", "SCRAM-SHA-512"],
        ),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, ["IAM", "SCRAM-SHA-512", "certificates of clients"]),
        (
            {"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;", "sasl.mechanism": "PLAIN"},
            ["IAM", "SCRAM-SHA-512"],
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
            },
            ["IAM"],
        ),
        ({}, ["kafka.sasl.mechanism is not set", "PLAIN"]),
        ({"sasl.mechanism": "DIGEST-MD5"}, ["DIGEST-MD5", "PLAIN"]),
        (
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f'{PLAIN} required username="u" password="{SECRET}";',
            },
            ["PlainLoginModule", "is for PLAIN", "SCRAM-SHA-512"],
        ),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'a.b.OwnModule required password="{SECRET}";'},
            ["OwnModule", "not known"],
        ),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} required password="{SECRET}";'},
            ["has no username"],
        ),
        (
            {
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": f'{SCRAM} required username="u" password="{SECRET}" tokenauth="true";',
            },
            ["delegation tokens"],
        ),
        (
            {
                "sasl.mechanism": "PLAIN",
                "sasl.username": "ben",
                "sasl.jaas.config": f'{PLAIN} required username="u" password="{SECRET}";',
            },
            ["kafka.sasl.username is given twice"],
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": f'{BEARER} required clientId="c" clientSecret="{SECRET}";',
            },
            ["tokens are not fetched here", "kafka.sasl.oauthbearer.token"],
        ),
        (
            {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": f"https://u:{SECRET}@idp"},
            ["tokens are not fetched here", "kafka.sasl.oauthbearer.token"],
        ),
        (
            {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.client.credentials.client.secret": SECRET},
            ["tokens are not fetched here"],
        ),
        (
            {"sasl.mechanism": "PLAIN", "sasl.login.callback.handler.class": "a.b.Handler"},
            ["kafka.sasl.login.callback.handler.class", "no Java class"],
        ),
        ({"sasl.mechanism": "PLAIN", "sasl.password": SECRET}, ["PLAIN needs sasl.username"]),
    ],
)  # fmt: skip
def test_logins_that_cannot_be_are_refused_with_the_way_out(given: dict[str, str], words: list[str]) -> None:
    text = refusal({**SASL, **given})
    assert all(word in text for word in words), text


def test_a_login_without_a_protocol_that_logs_in_is_refused() -> None:
    jaas = f'{PLAIN} required username="u" password="{SECRET}";'
    assert "SASL_SSL" in refusal({"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas})


def test_kerberos_settings_beside_another_login_do_not_matter() -> None:
    settings, notes = client_settings(
        {
            **SERVERS,
            **SASL,
            "sasl.mechanism": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "p",
            "sasl.kerberos.service.name": "kafka",
        },
        {},
        {},
    )
    assert "sasl.kerberos.service.name" not in settings.settings
    assert notes == ("the option kafka.sasl.kerberos.service.name has no meaning here",)


# -- certificates


def test_pem_stores_by_file_are_taken() -> None:
    settings = taken(
        security_protocol="SSL", ssl_truststore_type="PEM", ssl_truststore_location="/trust.pem",
        ssl_keystore_type="pem", ssl_keystore_location="/both.pem", ssl_key_password=SECRET,
    )  # fmt: skip
    assert settings["ssl.ca.location"] == "/trust.pem"
    assert settings["ssl.certificate.location"] == "/both.pem"
    assert settings["ssl.key.password"] == SECRET
    assert not any("store" in name for name in settings)


def test_pem_stores_as_text_are_taken() -> None:
    settings = taken(
        security_protocol="SSL", ssl_truststore_certificates="trusted", ssl_keystore_type="PEM",
        ssl_keystore_certificate_chain="chain", ssl_keystore_key=SECRET,
    )  # fmt: skip
    assert settings["ssl.ca.pem"] == "trusted"
    assert (settings["ssl.certificate.pem"], settings["ssl.key.pem"]) == ("chain", SECRET)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"ssl.truststore.location": "/t.jks", "ssl.truststore.password": SECRET},
            ["Java store (JKS)", "keytool -list -rfc", "kafka.ssl.truststore.type=PEM"],
        ),
        (
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.type": "PKCS12", "ssl.keystore.password": SECRET},
            ["Java store (PKCS12)", "openssl pkcs12", "kafka.ssl.keystore.type=PEM"],
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/t", "ssl.truststore.password": SECRET},
            ["kafka.ssl.truststore.password", "have none"],
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/t", "ssl.keystore.password": SECRET},
            ["kafka.ssl.key.password"],
        ),
        ({"ssl.keystore.type": "JKS", "ssl.keystore.key": SECRET}, ["which is PEM"]),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/t", "ssl.truststore.certificates": "c"},
            ["one is enough"],
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/t", "ssl.ca.location": "/t"},
            ["one is enough"],
        ),
        ({"ssl.enabled.protocols": "TLSv1.1"}, ["TLSv1.2 and TLSv1.3"]),
        ({"ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA"}, ["TLS_RSA_WITH_AES_128_CBC_SHA", "OpenSSL"]),
        ({"ssl.engine.factory.class": "a.B"}, ["ssl.engine.factory.class", "no Java class"]),
    ],
)
def test_certificates_that_cannot_be_used_are_refused_with_the_way_out(given: dict[str, str], words: list[str]) -> None:
    text = refusal({"security.protocol": "SSL", **given})
    assert all(word in text for word in words), text


def test_cipher_suites_are_taken_by_javas_names() -> None:
    javas = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    settings = taken(security_protocol="SSL", ssl_cipher_suites=javas)
    assert settings["ssl.cipher.suites"] == "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"
    assert taken(ssl_cipher_suites="ECDHE+AESGCM")["ssl.cipher.suites"] == "ECDHE+AESGCM"


def test_older_protocols_beside_the_modern_ones_are_told_and_left_out() -> None:
    _, notes = client_settings({**SERVERS, "ssl.enabled.protocols": "TLSv1.3,TLSv1.2,TLSv1.1"}, {}, {})
    assert len(notes) == 1
    assert "TLSv1.2 and TLSv1.3" in notes[0]


# -- the rest


def test_settings_can_be_pickled_and_show_no_secrets() -> None:
    settings, _ = client_settings(
        {
            **SERVERS,
            **SASL,
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} required username="anna" password="{SECRET}";',
            "ssl.keystore.key": SECRET,
            "ssl.keystore.certificate.chain": "chain",
            "ssl.key.password": SECRET,
        },
        {},
        {},
    )
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings
    assert SECRET in again.settings.values()
    assert SECRET not in f"{again} {again!r}"
    assert "'anna'" in repr(again)


def test_the_level_of_the_chosen_codec_counts() -> None:
    settings = taken(
        compression_type="zstd", **{"compression.zstd.level": "7", "compression.gzip.level": "1"}
    )  # fmt: skip
    assert settings["compression.level"] == "7"
    assert not any(name.startswith(("compression.zstd", "compression.gzip")) for name in settings)


def test_keys_are_ignored_when_the_partitioner_is_told_so() -> None:
    assert taken(**{"partitioner.ignore.keys": "true"})["partitioner"] == "random"
    assert "partitioner" not in taken(**{"partitioner.ignore.keys": "false"})


@pytest.mark.parametrize("name", ["transactional.id", "partitioner.class", "key.serializer", "value.serializer"])
def test_the_sink_refuses_what_would_change_how_it_writes(name: str) -> None:
    assert f"Kafka option '{name}' is not supported" in refusal({name: "x"}, SINK_REFUSALS)


def test_a_setting_that_nobody_knows_is_refused_and_the_nearest_named() -> None:
    assert "did you mean fetch.min.bytes" in refusal({"fetch.min.byte": "1"})


JAVAS_NAMES = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size buffer.memory check.crcs
    client.dns.lookup client.id client.rack compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level config.providers connections.max.idle.ms default.api.timeout.ms delivery.timeout.ms
    enable.auto.commit enable.idempotence enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
    fetch.min.bytes group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
    internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms max.poll.records
    max.request.size metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    partitioner.class partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms
    sasl.login.retry.backoff.ms security.protocol security.providers send.buffer.bytes session.timeout.ms
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    ssl.truststore.certificates ssl.truststore.type transaction.timeout.ms transaction.two.phase.commit.enable
    transactional.id value.deserializer value.serializer
""".split()  # noqa: SIM905  a column of quotes would say no more
"""Of Kafka 4.3's consumers and producers, but for the logins and the stores, which have tests of their own."""

VALUES = {
    "allow.auto.create.topics": "true", "check.crcs": "true", "enable.auto.commit": "false", "acks": "all",
    "enable.idempotence": "true", "compression.type": "lz4", "group.protocol": "classic", "auto.offset.reset": "latest",
    "isolation.level": "read_committed", "security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "https",
    "ssl.enabled.protocols": "TLSv1.3", "ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM",
    "group.remote.assignor": "uniform", "partition.assignment.strategy": "range", "max.request.size": "1048576",
}  # fmt: skip


@pytest.mark.parametrize("name", JAVAS_NAMES)
@pytest.mark.parametrize("refusals", [SOURCE_REFUSALS, SINK_REFUSALS], ids=["source", "sink"])
def test_every_setting_of_javas_clients_is_taken_or_refused_by_its_name(name: str, refusals: dict[str, str]) -> None:
    try:
        settings, _ = client_settings({**SERVERS, name: VALUES.get(name, "10")}, refusals, {})
    except OptionError as error:
        assert str(error).startswith(f"Kafka option '{name}' is not supported")  # noqa: PT017
    else:
        ClientConfig(settings.settings)
