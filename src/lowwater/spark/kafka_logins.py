"""How `kafka.sasl.*` options of Java's clients come to be a login here, or why they cannot."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from lowwater.spark.jaas import JaasEntry, parse_jaas
from lowwater.spark.option_table import OptionError

MECHANISM = "sasl.mechanism"
JAAS = "sasl.jaas.config"
TOKEN = "sasl.oauthbearer.token"
EXTENSIONS = "sasl.oauthbearer.extensions"
SPOKEN = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
KERBEROS, MSK_IAM = "GSSAPI", "AWS_MSK_IAM"

_PASSWORDS = "kafka.sasl.mechanism=SCRAM-SHA-512 with kafka.sasl.username and kafka.sasl.password"
_CERTIFICATES = "certificates of clients (kafka.security.protocol=SSL with kafka.ssl.keystore.type=PEM)"
_NO_KERBEROS = (
    f"Kerberos (GSSAPI) is not spoken here. A listener that takes {_PASSWORDS} will do, or one for {_CERTIFICATES}"
)
_NO_MSK_IAM = (
    f"Amazon's IAM login (AWS_MSK_IAM) is not spoken here. MSK clusters also take {_PASSWORDS}, or {_CERTIFICATES}"
)
_NO_FETCHING = (
    "tokens are not fetched here. Fetch one that lasts as long as the query, and say kafka.sasl.oauthbearer.token"
)
_UNSPOKEN = {KERBEROS: _NO_KERBEROS, MSK_IAM: _NO_MSK_IAM}
# By the last part of the class's name: the mechanisms that it is for.
_MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": (KERBEROS,),
    "IAMLoginModule": (MSK_IAM,),
}
_CLASSES = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")
_OURS = frozenset({TOKEN, EXTENSIONS, "sasl.oauthbearer.config"})
_EXTENSION = "extension_"


def take_login(settings: MutableMapping[str, str]) -> None:
    """Replace what only Java's clients know by what ours do. OptionError says what cannot be, and the way out."""
    if "sasl.mechanisms" in settings and MECHANISM not in settings:
        settings[MECHANISM] = settings.pop("sasl.mechanisms")
    mechanism = settings.get(MECHANISM, "").upper()
    text = settings.pop(JAAS, None)
    entry = None if text is None else parse_jaas(text)
    _check_spoken(mechanism, entry, settings)
    _check_classes(settings)
    _check_tokens(settings)
    if entry is not None:
        _check_module(entry, mechanism)
        _add(settings, _credentials(entry))


def _check_spoken(mechanism: str, entry: JaasEntry | None, settings: Mapping[str, str]) -> None:
    wanted = {mechanism, *(_MODULES.get(entry.module, ()) if entry is not None else ())}
    if any("iam" in settings.get(name, "").lower() for name in _CLASSES):
        wanted.add(MSK_IAM)
    for name, why in _UNSPOKEN.items():
        if name in wanted:
            raise OptionError(why)
    if not mechanism and settings.get("security.protocol", "").upper().startswith("SASL"):
        # Java's default is Kerberos: what was meant cannot be guessed.
        raise OptionError(f"kafka.sasl.mechanism is not set; there are {', '.join(SPOKEN)}")
    if mechanism and mechanism not in SPOKEN:
        raise OptionError(f"kafka.sasl.mechanism={mechanism} is not spoken here; there are {', '.join(SPOKEN)}")


def _check_classes(settings: Mapping[str, str]) -> None:
    for name in _CLASSES:
        if "oauthbearer" in settings.get(name, "").lower():
            raise OptionError(f"kafka.{name} cannot be used: {_NO_FETCHING}")
        if settings.get(name):
            raise OptionError(f"kafka.{name} cannot be used: no Java class can be run here. Say {_PASSWORDS}")


def _check_tokens(settings: Mapping[str, str]) -> None:
    for name in settings:
        if name.startswith("sasl.oauthbearer.") and name not in _OURS:
            raise OptionError(f"kafka.{name} cannot be used: {_NO_FETCHING}")


def _check_module(entry: JaasEntry, mechanism: str) -> None:
    takes = _MODULES.get(entry.module)
    if takes is None:
        known = ", ".join(_MODULES)
        raise OptionError(f"kafka.{JAAS} names the login module {entry.module}, which is not known here: {known} are")
    if mechanism not in takes:
        raise OptionError(
            f"kafka.{JAAS} names {entry.module}, which is for {' and '.join(takes)}, but kafka.{MECHANISM} is "
            f"{mechanism or 'not set'}"
        )


def _credentials(entry: JaasEntry) -> dict[str, str]:
    if entry.module == "OAuthBearerLoginModule":
        return _bearer(entry.options)
    if entry.options.get("tokenauth", "").lower() == "true":
        raise OptionError(f"kafka.{JAAS}: delegation tokens (tokenauth) are not taken here. Say {_PASSWORDS}")
    missing = [name for name in ("username", "password") if name not in entry.options]
    if missing:
        raise OptionError(f"kafka.{JAAS} has no {' and no '.join(missing)} for {entry.module}")
    return {f"sasl.{name}": entry.options[name] for name in ("username", "password")}


def _bearer(options: Mapping[str, str]) -> dict[str, str]:
    extensions = {
        name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)
    }
    if len(extensions) < len(options):
        raise OptionError(f"kafka.{JAAS} says how to get a token: {_NO_FETCHING}")
    return {EXTENSIONS: ",".join(f"{name}={value}" for name, value in extensions.items())} if extensions else {}


def _add(settings: MutableMapping[str, str], found: Mapping[str, str]) -> None:
    for name in found:
        if name in settings:
            raise OptionError(f"kafka.{name} is given twice, once in kafka.{JAAS}")
    settings.update(found)
