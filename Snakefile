# Data -> cells -> metrics -> tables, figures, report. `snakemake --cores N` runs it all.
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")

# Jobs and their scripts run this tree's code, installed or not.
ROOT = str(Path(workflow.basedir).resolve())
sys.path.insert(0, ROOT)
os.environ["PYTHONPATH"] = os.pathsep.join(
    dict.fromkeys([ROOT, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
).rstrip(os.pathsep)


configfile: f"{ROOT}/config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        "results/cells.csv",
        "results/runs.csv",
        "results/report.html",
        expand("results/tables/relative_improvement.{ext}", ext=TABLE_FORMATS),
        expand("figures/weight_norms.{ext}", ext=FIGURE_FORMATS),
