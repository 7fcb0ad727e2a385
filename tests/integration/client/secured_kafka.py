"""Apache Kafka with listeners for every kind of login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.client.certificates import Certificates

if TYPE_CHECKING:
    from peers.kafka import ApacheKafka

PASSWORD = "open sesame"
# Kafka refuses to hear a login again within a second of the last.
REAUTH_MS = 1_500
_MODULES = "org.apache.kafka.common.security"


def jaas(module: str, **options: str) -> str:
    return f"{_MODULES}.{module} required " + " ".join(f'{name}="{value}"' for name, value in options.items()) + ";"


def secured_kafka(certificates: Certificates) -> ApacheKafka:
    """TLS, MUTUAL, LOGIN and CLEAR are its listeners; ann logs in there with PASSWORD, in every mechanism."""
    from peers.kafka import ApacheKafka

    listeners = {"TLS": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL", "CLEAR": "SASL_PLAINTEXT"}
    overrides = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates.both("broker"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.authority,
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    }
    for listener in ("login", "clear"):
        prefix = f"listener.name.{listener}"
        overrides |= {
            f"{prefix}.plain.sasl.jaas.config": jaas("plain.PlainLoginModule", user_ann=PASSWORD),
            f"{prefix}.scram-sha-256.sasl.jaas.config": jaas("scram.ScramLoginModule"),
            f"{prefix}.scram-sha-512.sasl.jaas.config": jaas("scram.ScramLoginModule"),
            f"{prefix}.oauthbearer.sasl.jaas.config": jaas(
                "oauthbearer.OAuthBearerLoginModule", unsecuredLoginStringClaim_sub="broker"
            ),
            f"{prefix}.scram-sha-512.connections.max.reauth.ms": str(REAUTH_MS),
        }
    users = tuple(
        option
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for option in ("--add-scram", f'{mechanism}=[name="ann",iterations=8192,password="{PASSWORD}"]')
    )
    return ApacheKafka(overrides, listeners=listeners, format_options=users)
