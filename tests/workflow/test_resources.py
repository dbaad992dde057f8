"""What a method names is prepared before its cell runs, or is the reason why it is skipped."""

import json

import numpy as np
import pandas as pd
import pytest
from workspace import Workspace

from benchmarks.data.cards import user_card
from benchmarks.data.errors import DataError
from benchmarks.data.prepare import ensure, prepare
from benchmarks.data.prepared import read_meta

CARDS = {
    "my-vectors": {
        "kind": "vectors",
        "sources": [
            {
                "files": [{"name": "mine.zip"}],
                "format": "vectors-npy",
                "options": {"vectors": "v.npy", "vocabulary": "words.txt"},
            }
        ],
    },
    "lost-vectors": {
        "kind": "vectors",
        "sources": [
            {
                "files": [{"name": "lost.zip"}],
                "format": "glove-text",
                "options": {"vectors": "lost.txt"},
            }
        ],
    },
    "my-encoder": {"kind": "encoder", "encoder": {"folder": "encoder"}},
}


def encoder(folder):
    folder.mkdir()
    (folder / "config.json").write_text('{"hidden_size": 8}')


def mirror(folder):
    import zipfile

    folder.mkdir()
    np.save(folder / "v.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    with zipfile.ZipFile(folder / "mine.zip", "w") as archive:
        archive.write(folder / "v.npy", "v.npy")
        archive.writestr("words.txt", "dog\ncat\n")


def test_resources_are_inputs_of_the_cells_that_name_them(tmp_path, root):
    encoder(tmp_path / "encoder")
    mirror(tmp_path / "mirror")
    workspace = Workspace(tmp_path, root)
    names = ["UsesVectors", "NeedsLost"]
    config = {
        "cells": [{"datasets": ["tiny-bow"], "bases": [*names, "popularity"]}],
        "top_k": 10,
        "mirror": str(tmp_path / "mirror"),
        "define": {
            "bases": {name: {"class": f"resourceful_methods:{name}"} for name in names},
            "datasets": CARDS,
        },
    }
    path = workspace.configure(config)
    workspace.run("--cores", "1", "results/cells.csv", config=path)
    cells = pd.read_csv(tmp_path / "results/cells.csv").drop_duplicates("base").set_index("base")
    assert cells.loc["UsesVectors", "status"] == "ok", cells.loc["UsesVectors", "reason"]
    assert cells.loc["popularity", "status"] == "ok"
    assert cells.loc["NeedsLost", "status"] == "skipped"
    reason = cells.loc["NeedsLost", "reason"]
    assert reason.startswith("NeedsLost needs lost-vectors: lost-vectors: lost.zip ")
    assert "; get it from a mirror that has it and put it at results/downloads/lost.zip" in reason
    # Another encoder in its place: only the cell that names it runs again.
    (tmp_path / "encoder/tokenizer.json").write_text("{}")
    again = workspace.planned("results/runs/tiny-bow/UsesVectors/plain/seed0/run.json", config=path)
    assert again["prepare"] == ["results/data/my-encoder/meta.json (update)"]
    assert len(again["run_cell"]) == 1
    popularity = "results/runs/tiny-bow/popularity/plain/seed0/run.json"
    assert workspace.planned(popularity, config=path) == {}


def test_a_resource_without_a_card_is_a_wrong_configuration(tmp_path, root):
    workspace = Workspace(tmp_path, root)
    bases = {"NeedsLost": {"class": "resourceful_methods:NeedsLost"}}
    cells = [{"datasets": ["tiny-bow"], "bases": ["NeedsLost"]}]
    path = workspace.configure({"cells": cells, "define": {"bases": bases}})
    done = workspace.run("--dry-run", config=path, check=False)
    assert done.returncode != 0
    assert "NeedsLost/plain needs the resource 'lost-vectors', which no card" in done.stdout


def test_a_gpu_cell_asks_for_one_and_is_skipped_where_there_is_none(tmp_path, root, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    workspace = Workspace(tmp_path, root)
    block = {"datasets": ["tiny-bow"], "bases": ["popularity"]}
    cells = [{**block, "budget": {"device": "cuda"}}, {**block, "seeds": [1]}]
    path = workspace.configure({"cells": cells, "top_k": 10})
    runs = "results/runs/tiny-bow/popularity/plain"
    done = workspace.run("--verbose", "--cores", "1", f"{runs}/seed0/run.json", config=path)
    assert "device=cuda, gpu=1" in done.stdout + done.stderr
    record = json.loads(workspace.read(f"{runs}/seed0/run.json"))
    assert record["status"] == "skipped"
    assert record["reason"].startswith("no CUDA device here; set device: cpu")
    done = workspace.run("--dry-run", "--cores", "1", f"{runs}/seed1/run.json", config=path)
    assert "device=cpu, gpu=0" in done.stdout + done.stderr


def test_an_encoder_is_found_in_its_package_and_checked(tmp_path, monkeypatch):
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    encoder(package / "model")
    monkeypatch.syspath_prepend(str(tmp_path))
    where = {"package": "my_package", "folder": "model"}
    card = {"kind": "encoder", "encoder": where, "counts": {"dimensions": 8}}
    folder = ensure("mine", tmp_path / "data", cards={"mine": card})
    assert read_meta(folder)["folder"] == str(package / "model")
    wrong = user_card("mine", {**card, "counts": {"dimensions": 9}})
    with pytest.raises(DataError, match="dimensions"):
        prepare(wrong, tmp_path / "wrong")
    assert json.loads((folder / "meta.json").read_text())["dimensions"] == 8
