rule weight_norms:
    input:
        data=expand("results/data/{dataset}/meta.json", dataset=get_datasets()),
        norms=[f"results/runs/{cell.path}/norms.npz" for cell in get_normed_cells()],
    output:
        multiext("figures/weight_norms", ".svg", ".png", ".csv"),
    log:
        "results/logs/weight_norms.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.render.figure"),
    script:
        "../scripts/weight_norms.py"


rule loss_functions:
    output:
        multiext("figures/loss_functions", ".svg", ".png", ".csv"),
    log:
        "results/logs/loss_functions.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("methods.linear.loss_figure"),
    script:
        "../scripts/loss_functions.py"


# Tables 2 to 6, figures 1, 2, 4, 5 and the claims of the RankNet+Taug paper, for this run's data.
rule ranknet_taug:
    input:
        cells="results/cells.csv",
        intervals="results/intervals.csv",
        norms="figures/weight_norms.csv",
        predictions=[
            f"results/runs/{cell.path}/predictions.npz" for cell in get_normed_cells()
        ],
    output:
        page="results/tables/ranknet_taug.html",
        tables=expand(
            "results/tables/ranknet_taug_table{number}.{ext}",
            number=[2, "2_chosen", 3, 4, 5, 6],
            ext=TABLE_FORMATS,
        ),
        figures=expand(
            "figures/{name}.{ext}", name=RANKNET_TAUG_FIGURES, ext=FIGURE_FORMATS
        ),
    log:
        "results/logs/ranknet_taug.log",
    conda:
        "../../environment.yml"
    params:
        settings=swept(JOBS.values(), ["n_aug", "tau"]),
        code=code_digest("benchmarks.papers.ranknet_taug.page"),
    script:
        "../scripts/ranknet_taug.py"
