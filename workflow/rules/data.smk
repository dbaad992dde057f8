# Datasets: fetched, checked, prepared; their statistics beside the papers' tables.
DATASET_FIGURES = ["label_frequencies", "label_distributions", "inverse_propensities"]


rule prepare:
    input:
        get_embedded,
    output:
        # Kept while the job runs: a folder that is ready is not made twice.
        update("results/data/{dataset}/meta.json"),
    log:
        "results/logs/prepare/{dataset}.log",
    conda:
        "../../environment.yml"
    params:
        card=get_card_digest,
        code=get_dataset_code,
        cards=USER_CARDS,
    script:
        "../scripts/prepare.py"


# Never fails: an unavailable dataset is a record that says what is missing. `datasets`
# joins the records into results/data/status.json and removes them, so that it looks every time.
rule dataset_status:
    output:
        "results/data/{dataset}.status.json",
    log:
        "results/logs/dataset_status/{dataset}.log",
    conda:
        "../../environment.yml"
    params:
        cards=USER_CARDS,
        mirror=SETTINGS["mirror"],
    script:
        "../scripts/dataset_status.py"


rule datasets:
    input:
        expand("results/data/{dataset}.status.json", dataset=CARDS),
    log:
        "results/logs/datasets.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/list_datasets.py"


rule dataset_statistics:
    input:
        expand("results/data/{dataset}/meta.json", dataset=get_datasets()),
    output:
        expand("results/tables/datasets_{paper}.{ext}", paper=PAPERS, ext=TABLE_FORMATS),
        expand("results/tables/datasets.{ext}", ext=TABLE_FORMATS),
        expand("figures/{figure}.{ext}", figure=DATASET_FIGURES, ext=FIGURE_FORMATS),
    log:
        "results/logs/dataset_statistics.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.papers.dataset_counts", "benchmarks.render.label_distributions"),
    script:
        "../scripts/dataset_stats.py"
