"""Cards are handed out one to a cell; a pretend driver lists them."""

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data.prepare import ensure
from benchmarks.evaluation.metrics import Evaluation
from benchmarks.records.cell import Cell
from benchmarks.records.files import write_evaluation, write_record
from benchmarks.records.intervals import intervals, write_intervals
from workflow.runtime import devices
from workflow.runtime.cell import run_cell
from workflow.runtime.devices import NoDeviceError, cuda_cards, resolve, take

TWO_CARDS = (
    "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb)\n"
)


@pytest.fixture
def cards(monkeypatch, tmp_path):
    """Set what the driver lists; locks are in a folder of the test."""

    def there_are(listing):
        monkeypatch.setattr(devices, "_list_cards", lambda: listing)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices, "lock_folder", lambda: tmp_path / "locks")
    return there_are


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, {"0": "GPU-aaaa", "1": "GPU-bbbb"}),
        ("", {}),
        ("-1", {}),
        ("1", {"1": "GPU-bbbb"}),
        ("1,-1,0", {"1": "GPU-bbbb"}),
        ("GPU-aaaa", {"GPU-aaaa": "GPU-aaaa"}),
    ],
)
def test_cards_are_those_that_cuda_would_see(cards, visible, found):
    cards(TWO_CARDS)
    assert cuda_cards({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == found


def test_without_the_driver_s_program_the_environment_is_believed(cards):
    cards("")
    assert cuda_cards({}) == {}
    assert cuda_cards({"CUDA_VISIBLE_DEVICES": "0"}) == {"0": "0"}


def test_auto_is_a_card_where_there_is_one(cards, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    cards("")
    assert [resolve(name) for name in ("auto", "cuda:1", "cpu")] == ["cpu", "cuda:1", "cpu"]
    cards(TWO_CARDS)
    assert resolve("auto") == "cuda"


def test_each_cell_gets_a_card_of_its_own(cards):
    cards(TWO_CARDS)
    with take("cuda") as first, take("cuda") as second:
        assert {first.card, second.card} == {"0", "1"}
        assert first.device == "cuda"
    with take("cuda:1") as chosen:
        assert chosen.card == "1"
    with take("cpu") as none:
        assert (none.device, none.card) == ("cpu", "")


def test_a_cell_waits_until_a_card_is_free(cards, monkeypatch):
    """All cards are taken; the first look finds none, the holder ends, the next look finds one."""
    cards(TWO_CARDS)
    looks = []
    with take("cuda:0"):
        holder = take("cuda:1")
        holder.__enter__()

        def the_holder_ends(seconds):
            looks.append(seconds)
            holder.__exit__(None, None, None)

        monkeypatch.setattr(devices.time, "sleep", the_holder_ends)
        with take("cuda") as freed:
            assert freed.card == "1"
    assert len(looks) == 1


def test_the_lock_dies_with_its_holder(cards, tmp_path):
    cards(TWO_CARDS)
    (tmp_path / "locks").mkdir()
    lock = str(tmp_path / "locks/GPU-aaaa.lock")
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('held', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, lock]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with take("cuda") as other:
            assert other.card == "1"
        holder.kill()
    with take("cuda") as freed:
        assert freed.card == "0"


def test_a_missing_card_is_told_with_what_to_do(cards, monkeypatch):
    cards("")
    with pytest.raises(NoDeviceError, match="no CUDA device here; set device: cpu"), take("cuda"):
        raise AssertionError("unreachable")
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(NoDeviceError, match="no MPS device here; set device: cpu"), take("mps"):
        raise AssertionError("unreachable")
    cards(TWO_CARDS)
    with pytest.raises(NoDeviceError, match="number 2 here; there are 2"), take("cuda:2"):
        raise AssertionError("unreachable")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return ensure("tiny-bow", tmp_path_factory.mktemp("data"))


def run(folder: Path, data: Path, device: str) -> dict:
    return run_cell(
        folder,
        cell={"dataset": "tiny-bow", "base": "SeesCards", "variant": "plain", "seed": 0},
        recipe={"parts": [{"class": "test_devices_method:SeesCards", "params": {}}], "seed": 0},
        data=data,
        budget={"wall_s": 60.0, "memory_mb": 2000.0},
        threads=1,
        top_k=5,
        code="",
        log=folder.parent / "log",
        device=device,
    )


METHOD = """
import os
from methods.controls import Popularity

class SeesCards(Popularity):
    name = "SeesCards"

    def fit(self, train, *, device, **context):
        raise ValueError(f"device {device}, sees {os.environ['CUDA_VISIBLE_DEVICES']!r}")
"""
PRETEND_TORCH = """
class cuda:
    is_available = staticmethod(lambda: True)
    reset_peak_memory_stats = staticmethod(lambda: None)
    max_memory_allocated = staticmethod(lambda: 3 * 2**20)
"""


def test_the_child_sees_the_card_it_was_given_and_no_other(cards, data, tmp_path, monkeypatch):
    (tmp_path / "test_devices_method.py").write_text(METHOD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cards(TWO_CARDS)
    record = run(tmp_path / "cpu", data, "cpu")
    assert record["reason"] == "ValueError in fit: device cpu, sees ''"
    assert (record["device"], record["peak_gpu_mb"]) == ("cpu", None)
    (tmp_path / "torch.py").write_text(PRETEND_TORCH)
    record = run(tmp_path / "cuda", data, "cuda:1")
    assert record["reason"] == "ValueError in fit: device cuda, sees '1'"
    assert record["device"] == "cuda"
    (tmp_path / "test_devices_method.py").write_text(METHOD.partition("    def fit")[0])
    record = run(tmp_path / "ok", data, "auto")
    assert (record["status"], record["device"], record["peak_gpu_mb"]) == ("ok", "cuda", 3.0)


def test_a_cell_without_its_card_is_skipped_with_advice(cards, data, tmp_path):
    cards("")
    record = run(tmp_path / "cell", data, "cuda")
    assert (record["status"], record["device"]) == ("skipped", "cuda")
    assert record["reason"].startswith("no CUDA device here; set device: cpu")
    assert (tmp_path / "cell/predictions.npz").exists()


def test_a_card_that_torch_cannot_use_is_found_out_by_the_child(cards, data, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text(PRETEND_TORCH.replace("True", "False"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cards(TWO_CARDS)
    record = run(tmp_path / "cell", data, "cuda")
    assert record["status"] == "skipped"
    assert record["reason"].startswith("no CUDA device here that torch can use")


def test_a_change_between_devices_carries_a_note(tmp_path):
    points = {"P@1": np.array([1.0, 0.0, 1.0, 1.0])}
    evaluation = Evaluation("xc-matlab", 4, points, {"P@1": np.ones(4)})
    files = []
    for variant, device in (("plain", "cpu"), ("PW", "cuda"), ("cb", "cpu")):
        folder = tmp_path / f"D/B/{variant}/seed0"
        folder.mkdir(parents=True)
        evaluation.save(folder / "instance.npz")
        (folder / "metrics.csv").write_text("")
        record = write_record(folder, {**asdict(Cell.from_path(folder)), "device": device})
        write_evaluation(record, folder / "metrics.csv", folder / "instance.npz")
        files.append(folder / "instance.npz")
    write_intervals(intervals(files), tmp_path / "intervals.csv")
    said = (tmp_path / "intervals.csv").read_text()
    assert [line.split(",")[2] for line in said.splitlines() if "the base ran on" in line] == ["PW"]
    assert "the base ran on cpu, this cell on cuda" in said
