rule report:
    input:
        cells="results/cells.csv",
        runs="results/runs.csv",
        improvement="results/tables/relative_improvement.html",
        norms="figures/weight_norms.svg",
        losses="figures/loss_functions.svg",
        ranknet_taug="results/tables/ranknet_taug.html",
        ranknet_taug_figures=expand("figures/{name}.svg", name=RANKNET_TAUG_FIGURES),
        audit="results/audit.csv",
        verdicts="results/compare/summary.csv",
        dataset_tables=get_dataset_tables(),
        dataset_figures=expand("figures/{name}.svg", name=DATASET_FIGURES),
    output:
        report("results/report.html", caption="../report/report.rst", category="Report"),
    log:
        "results/logs/report.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("workflow.report"),
        lists=["dataset_tables", "dataset_figures", "ranknet_taug_figures"],
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
