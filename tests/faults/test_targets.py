"""Checking a configuration calls nothing that it names but methods and variants."""

import os

import pytest
import recorded_calls

from benchmarks.common.schema import InvalidDocumentError
from workflow.config import check, check_pairs, plan
from workflow.resources import announce


def check_whole(define, base="x", variant="plain"):
    block = {"datasets": ["tiny-bow"], "bases": [base], "variants": [variant]}
    config = check({"cells": [block], "define": define}, "my.yaml")
    jobs = plan(config, "my.yaml", ["tiny-bow"])
    check_pairs(jobs, "my.yaml", config["misfits"])
    announce(jobs, [], "my.yaml")


@pytest.fixture(autouse=True)
def _forget_calls(monkeypatch):
    monkeypatch.setattr(recorded_calls, "CALLS", [])
    monkeypatch.setenv("TAILTABLES_RESOURCES", "{}")


@pytest.mark.parametrize("name", ["function", "Unrelated", "Odd"])
@pytest.mark.parametrize("kind", ["bases", "variants"])
def test_only_methods_and_variants_are_called(kind, name):
    named = {"x": {"class": f"recorded_calls:{name}", "params": {"command": "touch called"}}}
    base, variant = ("x", "plain") if kind == "bases" else ("random", "x")
    with pytest.raises(InvalidDocumentError, match=f"recorded_calls:{name} is not a "):
        check_whole({kind: named}, base, variant)
    assert recorded_calls.CALLS == []


def test_os_system_is_not_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    system = {"x": {"class": "os:system", "params": {"command": "touch called"}}}
    with pytest.raises(InvalidDocumentError, match="os:system is not a Method"):
        check_whole({"bases": system})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("methods.interface:Method", "Method is abstract"),
        ("methods.variants.pw:PW", "PW is not a Method"),
        ("no_such_module:X", "cannot import 'no_such_module:X'"),
        ("recorded_calls:Missing", "cannot import 'recorded_calls:Missing'"),
    ],
)
def test_a_target_that_is_no_base_is_told_in_words(target, said):
    with pytest.raises(InvalidDocumentError, match=said):
        check_whole({"bases": {"x": {"class": target}}})
