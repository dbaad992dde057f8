rule report:
    input:
        cells="results/cells.csv",
        runs="results/runs.csv",
        intervals="results/intervals.csv",
        bins="results/bins.csv",
        labels=expand("results/labels/{dataset}.csv", dataset=get_datasets()),
        audit="results/audit.csv",
        verdicts=expand("results/compare/{paper}.csv", paper=PAPERS),
        artefacts=get_artefact_files(),
    output:
        report(
            "results/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"name": "report", "about": "the whole run on one page"},
        ),
    log:
        "results/logs/report.log",
    conda:
        "../../environment.yml"
    # Not a parameter: the same run under another file's name needs no new report.
    resources:
        configfiles=" ".join(str(f) for f in workflow.overwrite_configfiles),
    params:
        code=code_digest("workflow.report"),
        templates=template_digest(),
        reference=reference_digest(),
        papers=USER_PAPERS,
        own_data=list(USER_CARDS),
    script:
        "../scripts/report.py"


# Lists what failed and how to run just that again. It has no input, so that it starts no work,
# and makes no file, so that it always answers.
rule failed:
    log:
        "results/logs/failed.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        records=get_cell_files("run.json"),
        configfiles=[str(f) for f in workflow.overwrite_configfiles],
    script:
        "../scripts/failed.py"
