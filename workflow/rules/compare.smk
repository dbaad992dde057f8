# What the papers print: checked against itself (audit), and against our cells (compare).
# All papers' files, for each paper: comparing again costs seconds.
PAPER_FILES = [path for paper in PAPERS for path in sources(paper, USER_PAPERS)]


rule audit:
    input:
        PAPER_FILES,
    output:
        csv="results/audit.csv",
        page=report(
            "results/audit.html",
            caption="../report/audit.rst",
            category="Audit",
            labels={
                "name": "audit",
                "about": "the papers' printed values against themselves",
            },
        ),
    log:
        "results/logs/audit.log",
    conda:
        "../../environment.yml"
    params:
        papers=USER_PAPERS,
        code=code_digest("benchmarks.papers.audit.page"),
        templates=template_digest(),
    script:
        "../scripts/audit.py"


rule compare:
    input:
        cells="results/cells.csv",
        runs="results/runs.csv",
        instances=get_cell_files("instance.npz"),
        data=expand("results/data/{dataset}/meta.json", dataset=get_datasets()),
        papers=PAPER_FILES,
    output:
        csv="results/compare/{paper}.csv",
        page=report(
            "results/compare/{paper}.html",
            caption="../report/compare.rst",
            category="Published and ours",
            labels={
                "name": "{paper}",
                "about": "every printed value with its verdict",
            },
        ),
    log:
        "results/logs/compare/{paper}.log",
    wildcard_constraints:
        paper="|".join(PAPERS),
    conda:
        "../../environment.yml"
    params:
        papers=USER_PAPERS,
        code=code_digest("benchmarks.papers.compare_page"),
        templates=template_digest(),
    script:
        "../scripts/compare.py"


rule compare_summary:
    input:
        expand("results/compare/{paper}.csv", paper=PAPERS),
    output:
        "results/compare/summary.csv",
    log:
        "results/logs/compare_summary.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.papers.compare"),
        papers=list(PAPERS),
    script:
        "../scripts/compare_summary.py"
