# What the papers print: checked against itself (audit), and against our cells (compare).
from benchmarks.papers import PAPERS, sources


def get_paper_sources(wildcards):
    return sources(wildcards.paper)


def get_all_paper_sources(wildcards):
    return [path for paper in PAPERS for path in sources(paper)]


rule audit:
    input:
        get_all_paper_sources,
    output:
        csv="results/audit.csv",
        page=report("results/audit.html", category="Audit"),
    params:
        code=code_digest("benchmarks.audit"),
    log:
        "results/logs/audit.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/audit.py"


rule compare:
    input:
        cells="results/cells.csv",
        runs="results/runs.csv",
        instances=get_cell_files("instance.npz"),
        data=expand("results/data/{dataset}/meta.json", dataset=get_datasets()),
        paper=get_paper_sources,
    output:
        csv="results/compare/{paper}.csv",
        page=report("results/compare/{paper}.html", category="Published and ours"),
    wildcard_constraints:
        paper="|".join(PAPERS),
    params:
        code=code_digest("benchmarks.compare_page"),
    log:
        "results/logs/compare/{paper}.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/compare.py"


rule compare_summary:
    input:
        expand("results/compare/{paper}.csv", paper=PAPERS),
    output:
        "results/compare/summary.csv",
    params:
        code=code_digest("benchmarks.compare"),
        papers=PAPERS,
    log:
        "results/logs/compare_summary.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/compare_summary.py"
