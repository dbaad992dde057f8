rule report:
    input:
        cells="results/cells.csv",
        runs="results/runs.csv",
        improvement="results/tables/relative_improvement.html",
        norms="figures/weight_norms.svg",
    output:
        report("results/report.html", caption="../report/report.rst", category="Report"),
    params:
        code=code_digest("workflow.report"),
    log:
        "results/logs/report.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/report.py"


# Lists what failed and how to run just that again; makes no file, so it always answers.
rule failed:
    input:
        "results/cells.csv",
    params:
        configfiles=[str(f) for f in workflow.overwrite_configfiles],
    log:
        "results/logs/failed.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/failed.py"
