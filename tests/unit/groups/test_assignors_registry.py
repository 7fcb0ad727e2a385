"""Assignors by name: ours, and those of packages, which may be broken or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from lowwater.groups.assignors import Assignment, AssignorError, MemberSpec, Registry, Spec
from lowwater.groups.assignors.registry import registry
from lowwater.groups.assignors.validation import validated

TOPIC = frozenset({"t"})
TWO = Spec({"a": MemberSpec(TOPIC), "b": MemberSpec(frozenset({"u"}))}, {"t": 2, "u": 1})


@dataclass
class Package:
    name: str
    version: str = "1.2"


@dataclass
class Offer:
    """An entry point; `content` is what loading it gives, or raises."""

    name: str
    content: Any
    value: str = "pack.module:Thing"
    dist: Package | None = None
    loads: int = 0

    def load(self) -> Any:
        self.loads += 1
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


class Everything:
    """Gives everything to the first member that subscribes."""

    name = "everything"

    def assign(self, spec: Spec) -> Assignment:
        first = min(spec.members)
        topics = spec.members[first].topics
        return {first: {topic: list(range(spec.partitions.get(topic, 0))) for topic in topics}}


class Wrong:
    name = "wrong"

    def assign(self, spec: Spec) -> Assignment:
        raise ZeroDivisionError("division by zero")


def offering(*offers: Offer) -> Registry:
    return Registry(lambda: offers)


def test_ours_are_there_without_looking_at_packages() -> None:
    def discover() -> list[Offer]:
        raise AssertionError("nobody asked for a package")

    found = Registry(discover)
    assert [found.get(name).name for name in ("uniform", "range", "roundrobin", "sticky")]
    assert "uniform" in found


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(AssignorError, match=r"no assignor 'lazy'; there are uniform, range, roundrobin, sticky$"):
        offering().get("lazy")


@pytest.mark.parametrize("content", [Everything, Everything()], ids=["class", "instance"])
def test_a_package_offers_a_class_or_an_instance(content: Any) -> None:
    found = offering(Offer("everything", content))
    assert found.assign("everything", TWO) == {"a": {"t": [0, 1]}, "b": {}}
    assert "everything" in found.names()


def test_a_package_is_loaded_once_and_when_asked_for() -> None:
    offer = Offer("everything", Everything)
    found = offering(offer)
    assert "everything" in found
    assert offer.loads == 0
    assert found.get("everything") is found.get("everything")
    assert offer.loads == 1


def test_a_package_that_cannot_be_imported_is_named_and_the_others_go_on() -> None:
    broken = Offer("broken", ImportError("No module named 'numpy'"), dist=Package("my-assignor", "0.3"))
    found = offering(broken, Offer("everything", Everything))
    for _ in range(2):
        with pytest.raises(AssignorError) as caught:
            found.get("broken")
        assert str(caught.value) == (
            "assignor 'broken' (pack.module:Thing) of my-assignor 0.3 cannot be loaded: "
            "ImportError: No module named 'numpy'"
        )
    assert broken.loads == 1
    assert "broken" not in found
    assert found.get("everything").name == "everything"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (object(), "it has no method assign"),
        (Everything, "its name is 'everything', that of its entry point 'other'"),
    ],
)
def test_what_is_not_an_assignor_of_that_name_is_refused(content: Any, complaint: str) -> None:
    with pytest.raises(AssignorError, match=complaint):
        offering(Offer("other", content)).get("other")


def test_a_package_cannot_replace_one_of_ours() -> None:
    offer = Offer("range", Everything)
    assert offering(offer).get("range").name == "range"
    assert offer.loads == 0


def test_an_assignor_that_raises_is_named_with_what_it_raised() -> None:
    found = offering(Offer("wrong", Wrong, dist=Package("my-assignor")))
    with pytest.raises(AssignorError, match=r"of my-assignor 1\.2 failed: ZeroDivisionError: division by zero$"):
        found.assign("wrong", TWO)


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (None, "it returned NoneType instead of a mapping by member id"),
        ({"x": {}}, "it assigned to 'x', which is not a member"),
        ({"a": [0]}, "it gave 'a' list instead of a mapping by topic"),
        ({"a": {"u": [0]}}, "it gave 'u' to 'a', which does not subscribe to it"),
        ({"a": {"t": [2]}}, "it gave 'a' partition 2 of 't', which has 2"),
        ({"a": {"t": [-1]}}, "it gave 'a' partition -1 of 't', which has 2"),
        ({"a": {"t": ["0"]}}, "it gave 'a' partition '0' of 't', which has 2"),
        ({"a": {"t": 0.5}}, "it gave 'a' float instead of partitions of 't'"),
        ({"a": {"t": [0, 0]}}, "it gave partition 0 of 't' to 'a' and to 'a'"),
    ],
)
def test_a_result_that_breaks_a_rule_is_refused(result: Any, complaint: str) -> None:
    with pytest.raises(AssignorError) as caught:
        validated(TWO, result)
    assert str(caught.value) == complaint


def test_a_partition_given_to_two_members_is_refused() -> None:
    spec = Spec({"a": MemberSpec(TOPIC), "b": MemberSpec(TOPIC)}, {"t": 2})
    with pytest.raises(AssignorError, match="it gave partition 1 of 't' to 'a' and to 'b'"):
        validated(spec, {"a": {"t": [0, 1]}, "b": {"t": [1]}})


def test_a_partition_may_be_left_out_and_a_member_too() -> None:
    assert validated(TWO, {"a": {"t": {1}}}) == {"a": {"t": [1]}, "b": {}}


def test_this_process_has_one_registry() -> None:
    assert registry() is registry()
