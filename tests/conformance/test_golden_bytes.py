"""Every message in every version, both ways, against the classes that Kafka generates for itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.conformance.golden.as_json import as_json
from tests.conformance.golden.instances import CLASSES, KAFKA_LACKS, Style, instance, messages, one_field_set
from tests.conformance.golden.oracle import Oracle

from lowwater.errors import ErrorCode
from lowwater.wire.control import build_end_marker
from lowwater.wire.encoding import build_encoder
from lowwater.wire.fields import Field
from lowwater.wire.frame import encode_request_header, response_lead
from lowwater.wire.messages import API
from lowwater.wire.schema import Declaration, declaration_of, decoder, encoder, fields_of

pytestmark = pytest.mark.peer("kafka")

LENGTH_AND_CORRELATION_ID = 8
REPEATS = {Style.DEFAULTS: 1, Style.EMPTY: 1, Style.FULL: 3, Style.MIXED: 6, Style.WIDE: 1}


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


def versions_of(cls: type[Any]) -> list[int]:
    return [version for each, version in messages() if each is cls and (cls.__name__, version) not in KAFKA_LACKS]


@pytest.mark.parametrize("cls", CLASSES)
def test_kafka_reads_what_we_write_and_writes_what_we_read(oracle: Oracle, cls: type[Any]) -> None:
    rng = random.Random(cls.__name__)
    for version in versions_of(cls):
        for style in (style for style, count in REPEATS.items() for _ in range(count)):
            sample = instance(cls, version, style, rng)
            ours = encoder(cls, version)(sample)
            seen, rewritten = oracle.decode(cls, version, ours)
            assert seen == as_json(sample, version, with_records=False)
            assert rewritten == ours
            theirs = oracle.encode(cls, version, as_json(sample, version, with_records=True))
            assert theirs == ours
            assert decoder(cls, version)(memoryview(theirs)) == sample


class Case(NamedTuple):
    """A message, the version to write it in, and the bytes of Kafka; None when Kafka refuses."""

    sample: Any
    version: int
    bytes: bytes | None


def cases(oracle: Oracle, cls: type[Any]) -> Iterator[Case]:
    """Full and sparse messages, and one field at a time in the neighbouring versions, where it may be unknown."""
    rng = random.Random(cls.__name__)
    versions = versions_of(cls)
    for version in versions:
        for style in (Style.FULL, Style.NULLS):
            yield converted(oracle, instance(cls, version, style, rng), version, version)
        for sample in one_field_set(cls, version, rng):
            for other in {version - 1, version, version + 1}.intersection(versions):
                case = converted(oracle, sample, version, other)
                if case.bytes is None or not gains_null(cls, version, other):
                    yield case


def gains_null(cls: type[Any], version: int, other: int) -> bool:
    """Whether `other` has one more nullable field: by default it is None here, and "" in some of Kafka's classes."""
    return any(
        (field.nullable(other) and field.tag is None and field.present(other) and not field.present(version))
        or (field.struct is not None and gains_null(field.struct, version, other))
        for field in fields_of(cls)
    )


def converted(oracle: Oracle, sample: Any, version: int, other: int) -> Case:
    try:
        return Case(sample, other, oracle.convert(type(sample), version, encoder(type(sample), version)(sample), other))
    except ValueError:
        return Case(sample, other, None)


def disagreement(cls: type[Any], expected: list[Case]) -> str | None:
    """The first case in which our codec, built anew, is not of Kafka's opinion."""
    encoders = {case.version: build_encoder(cls, case.version) for case in expected}
    for case in expected:
        try:
            ours = encoders[case.version](case.sample)
        except ValueError:
            ours = None
        if ours != case.bytes:
            return f"v{case.version} of {case.sample}: {ours!r}, Kafka has {case.bytes!r}"
    return None


@pytest.mark.parametrize("cls", CLASSES)
def test_what_a_version_cannot_carry_is_dropped_or_refused_as_kafka_does(oracle: Oracle, cls: type[Any]) -> None:
    problem = disagreement(cls, list(cases(oracle, cls)))
    assert problem is None, problem


def test_the_table_of_apis_is_kafkas(oracle: Oracle) -> None:
    kafka = {api["key"]: api for api in oracle.apis()}
    for api in API.values():
        theirs = kafka[api.key]
        assert api.name == theirs["name"]
        assert api.version_max == theirs["stable"]
        assert api.version_min == (0 if api.name == "ListOffsets" else theirs["min"])
        for version in range(api.version_min, api.version_max + 1):
            request_tags = len(encode_request_header(api.key, version, 7, None)) - 10
            assert request_tags == theirs["requestHeaders"][version] - 1
            response_tags = response_lead(api.key, version).size - LENGTH_AND_CORRELATION_ID
            assert response_tags == theirs["responseHeaders"][version]


def test_the_table_of_errors_is_kafkas(oracle: Oracle) -> None:
    assert [(code.value, code.name, code.retriable) for code in ErrorCode] == oracle.errors()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("numbers", [(0, 0, 0, 0), (5, 3, 7, 1_700_000_000_000), (1 << 62, 32767, (1 << 31) - 1, 1)])
def test_the_end_of_a_transaction_has_kafkas_bytes(
    oracle: Oracle, commit: bool, numbers: tuple[int, int, int, int]
) -> None:
    producer_id, epoch, coordinator_epoch, timestamp = numbers
    ours = build_end_marker(producer_id, epoch, commit, coordinator_epoch, timestamp)
    assert bytes(ours) == oracle.end_marker(producer_id, epoch, commit, coordinator_epoch, timestamp)


class Mutant(NamedTuple):
    """One mistake in the fields of a declaration, and a version in which it shows."""

    what: str
    version: int
    declared: Declaration
    fields: tuple[Field, ...]


def mutants(cls: type[Any]) -> Iterator[Mutant]:
    """Declarations of `cls`, and of the structs in it, with one mistake each."""
    versions = versions_of(cls)
    waiting, seen = [(cls, declaration_of(cls).version_min)], set()
    while waiting:
        part, since = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        fields = fields_of(part)
        waiting += [(field.struct, max(since, field.first)) for field in fields if field.struct]
        for at, field in enumerate(fields):
            for version, what, wrong in mistakes(field, cls, since):
                if version in versions and version >= since:
                    mistaken = (*fields[:at], wrong, *fields[at + 1 :])
                    yield Mutant(f"{part.__name__}.{what}", version, declaration_of(part), mistaken)
        for at in range(len(fields) - 1):
            one, two = fields[at : at + 2]
            if one.tag is None and two.tag is None and one[1:] == two[1:]:
                swapped = (*fields[:at], two, one, *fields[at + 2 :])
                what = f"{part.__name__}: {one.name} and {two.name} swapped"
                yield Mutant(what, min(one.last, versions[-1]), declaration_of(part), swapped)


def mistakes(field: Field, cls: type[Any], since: int) -> Iterator[tuple[int, str, Field]]:
    """A version in which each shows, what it is, and the field with it."""
    name, first, last = field.name, field.first, field.last
    # Before the first flexible version a tag cannot be written, so being early is the same as being ignorable.
    if field.tag is None or not field.ignorable or declaration_of(cls).is_flexible(first - 1):
        yield first - 1, f"{name} a version early", field._replace(first=first - 1)
    if first > since:
        yield first - 1, f"{name} with wrong ignorable", field._replace(ignorable=not field.ignorable)
    yield first, f"{name} a version late", field._replace(first=max(first, since) + 1)
    yield last, f"{name} gone too early", field._replace(last=last - 1)
    yield last + 1, f"{name} gone too late", field._replace(last=last + 1)
    if field.null is not None and field.tag is None:
        yield max(field.null, since), f"{name} null a version late", field._replace(null=max(field.null, since) + 1)
    if field.tag is not None:
        yield first, f"{name} with the wrong tag", field._replace(tag=field.tag + 7)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_field_one_version_off_or_in_the_wrong_place_is_noticed(
    oracle: Oracle, cls: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: dict[int, list[Case]] = {}
    for case in cases(oracle, cls):
        expected.setdefault(case.version, []).append(case)
    for mutant in mutants(cls):
        with monkeypatch.context() as patched:
            patched.setattr(mutant.declared, "fields", mutant.fields)
            assert disagreement(cls, expected[mutant.version]), f"{mutant.what} goes unnoticed"
