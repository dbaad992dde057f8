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
        code=code_digest("benchmarks.figures"),
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
