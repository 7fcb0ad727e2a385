"""How `kafka.ssl.*` options of Java's clients come to be certificates here: PEM stores, by file or as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass

from lowwater.spark.option_table import OptionError

PEM = "PEM"
JAVAS_DEFAULT = "JKS"
PROTOCOLS = ("TLSv1.2", "TLSv1.3")
_NEWEST = "TLS_"
_SUITE = re.compile(r"TLS_(ECDHE|DHE)_(RSA|ECDSA)_WITH_(AES_128_GCM|AES_256_GCM|CHACHA20_POLY1305)_(SHA256|SHA384)")


@dataclass(frozen=True, slots=True)
class _Store:
    """`file` and `texts` are where our client takes the same from; `way_out` turns other stores into PEM."""

    name: str
    file: str
    texts: dict[str, str]
    way_out: str


_TRUST = _Store(
    "ssl.truststore",
    file="ssl.ca.location",
    texts={"ssl.truststore.certificates": "ssl.ca.pem"},
    way_out="`keytool -list -rfc -keystore <store> > trust.pem`",
)
# A PEM key store has the key and the certificates in one file; OpenSSL finds both in it.
_KEY = _Store(
    "ssl.keystore",
    file="ssl.certificate.location",
    texts={"ssl.keystore.certificate.chain": "ssl.certificate.pem", "ssl.keystore.key": "ssl.key.pem"},
    way_out="`keytool -importkeystore -srckeystore <store> -destkeystore key.p12 -deststoretype PKCS12`, then "
    "`openssl pkcs12 -in key.p12 -nodes -out key.pem`",
)


def take_stores(settings: MutableMapping[str, str]) -> list[str]:
    """Replace what only Java's clients know by what ours do; what is to be told the user. OptionError: no way."""
    for store in (_TRUST, _KEY):
        _take_store(store, settings)
    return [*_take_protocols(settings), *_take_suites(settings)]


def _take_store(store: _Store, settings: MutableMapping[str, str]) -> None:
    kind = settings.pop(f"{store.name}.type", "").strip().upper()
    location = settings.pop(f"{store.name}.location", None)
    password = settings.pop(f"{store.name}.password", None)
    texts = {ours: settings.pop(theirs) for theirs, ours in store.texts.items() if theirs in settings}
    if kind and kind != PEM and texts:
        raise OptionError(f"kafka.{store.name}.type is {kind}, but certificates are given as text, which is PEM")
    if location is None and not texts:
        return
    if kind != PEM and location is not None:
        raise OptionError(
            f"kafka.{store.name}.location is a Java store ({kind or JAVAS_DEFAULT}), which cannot be read here. Make "
            f"it PEM by {store.way_out}; then say kafka.{store.name}.type=PEM, kafka.{store.name}.location=<the .pem "
            f"file>, and leave kafka.{store.name}.password out"
        )
    if location is not None and texts:
        raise OptionError(f"kafka.{store.name}.location and the same as text: one is enough")
    if password is not None:
        advice = "; the password of an encrypted key is kafka.ssl.key.password" if store is _KEY else ""
        raise OptionError(f"kafka.{store.name}.password is given, but PEM stores have none{advice}")
    found = texts if location is None else {store.file: location}
    for name, value in found.items():
        if name in settings:
            raise OptionError(f"kafka.{name} is given as well as kafka.{store.name}.*: one is enough")
        settings[name] = value


def _take_protocols(settings: MutableMapping[str, str]) -> Iterator[str]:
    text = settings.pop("ssl.enabled.protocols", None)
    if text is None:
        return
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if not set(wanted) & set(PROTOCOLS):
        raise OptionError(f"kafka.ssl.enabled.protocols={text}: only {' and '.join(PROTOCOLS)} are spoken here")
    if set(wanted) != set(PROTOCOLS):
        yield f"kafka.ssl.enabled.protocols: {' and '.join(PROTOCOLS)} are spoken here, whatever it says besides"


def _take_suites(settings: MutableMapping[str, str]) -> Iterator[str]:
    """Java and OpenSSL write the names of cipher suites differently; OpenSSL's are left alone."""
    wanted = [part.strip() for part in settings.get("ssl.cipher.suites", "").split(",") if part.strip()]
    if not any(name.startswith(_NEWEST) for name in wanted):
        return
    older = [name for name in wanted if "_WITH_" in name or not name.startswith(_NEWEST)]
    settings.pop("ssl.cipher.suites")
    if older:
        settings["ssl.cipher.suites"] = ":".join(_openssl(name) for name in older)
    yield "kafka.ssl.cipher.suites: those of TLS 1.3 cannot be chosen, all of them are offered"


def _openssl(name: str) -> str:
    if not name.startswith(_NEWEST):
        return name
    found = _SUITE.fullmatch(name)
    if found is None:
        raise OptionError(f"kafka.ssl.cipher.suites has {name}, which is not offered here; write it as OpenSSL does")
    exchange, signature, cipher, digest = found.groups()
    if cipher == "CHACHA20_POLY1305":
        return f"{exchange}-{signature}-CHACHA20-POLY1305"
    return f"{exchange}-{signature}-{cipher.replace('AES_', 'AES').replace('_', '-')}-{digest}"
