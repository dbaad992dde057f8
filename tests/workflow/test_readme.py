"""The README's example of a user's own data, run from the files to the report as printed."""

import re
import subprocess

import pandas as pd


def test_the_example_of_own_data_runs_to_the_report(workspace, root):
    section = (root / "README.md").read_text().split("### Your own data")[1]
    shell = re.search(r"```bash\n(.*?)```", section, re.DOTALL)[1]
    *files, command = shell.strip().split("\n")
    assert command == "snakemake --cores 2 --configfile my_config.yaml"
    subprocess.run(
        ["bash", "-eu"], input="\n".join(files), text=True, cwd=workspace.folder, check=True
    )
    workspace.run("--cores", "2", config=workspace.folder / "my_config.yaml")
    cells = pd.read_csv(workspace.folder / "results/cells.csv")
    assert set(cells["variant"]) == {"plain", "PW"}
    assert set(cells["status"]) == {"ok"}
    assert "glas" not in set(cells["convention"]), "two test documents have no propensities"
    assert "<title>my-data</title>" in workspace.read("results/report.html")
