rule report:
    input:
        cells="results/cells.csv",
        runs="results/runs.csv",
        audit="results/audit.csv",
        verdicts="results/compare/summary.csv",
        artefacts=get_artefact_files(),
    output:
        report("results/report.html", caption="../report/report.rst", category="Report"),
    log:
        "results/logs/report.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("workflow.report"),
        templates=template_digest(),
        papers=USER_PAPERS,
    script:
        "../scripts/report.py"


# Lists what failed and how to run just that again; makes no file, so it always answers.
rule failed:
    input:
        "results/cells.csv",
    log:
        "results/logs/failed.log",
    conda:
        "../../environment.yml"
    params:
        configfiles=[str(f) for f in workflow.overwrite_configfiles],
    script:
        "../scripts/failed.py"
