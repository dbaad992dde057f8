"""The README's example of a user's own data, as a user would paste it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

README = Path(__file__).parents[3] / "README.md"
START = "### Your own data"


def test_the_example_of_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = README.read_text().split(START)[1].split("\n### ")[0].split("\n## ")[0]
    shell, python = (
        re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL) for kind in ("bash", "python")
    )
    assert shell is not None
    assert python is not None
    commands = [line for line in shell[1].splitlines() if not line.startswith("snakemake")]
    subprocess.run(["bash", "-eu"], input="\n".join(commands), text=True, check=True)
    names: dict[str, object] = {}
    exec(python[1], names)
    cards = yaml.safe_load(Path("my_config.yaml").read_text())["define"]["datasets"]
    from benchmarks.data import load

    train, test = load("my-data", cards=cards)
    assert (len(train), len(test), train.n_labels) == (4, 2, 3)
    Path("my_train.txt").write_text(Path("my_train.txt").read_text().replace("1:2.0", "7:2.0"))
    with pytest.raises(ValueError, match=re.escape("my_train.txt, line 3: feature id 7")) as caught:
        load("my-data", cards=cards)
    quoted = " ".join(re.findall(r"`(my_train\.txt, line 3: [^`]*)`", section)[0].split())
    assert quoted in str(caught.value)
