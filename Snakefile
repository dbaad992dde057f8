# Data -> cells -> metrics -> tables, figures, report. `snakemake --cores N` runs it all.
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")

ROOT = str(Path(workflow.basedir).resolve())
sys.path.insert(0, ROOT)

from workflow.runtime.tree import export_tree

export_tree(ROOT)


configfile: f"{ROOT}/config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/compare.smk"
include: "workflow/rules/papers.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/plan.smk"


rule all:
    default_target: True
    input:
        "results/cells.csv",
        "results/runs.csv",
        "results/intervals.csv",
        "results/bins.csv",
        "results/report.html",
        "results/audit.csv",
        "results/compare/summary.csv",
        expand("results/compare/{paper}.csv", paper=PAPERS),
        get_artefact_files(),
