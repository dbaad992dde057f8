# Datasets: fetched, checked, prepared.
rule prepare:
    input:
        get_made_of,
    output:
        # Kept while the job runs: a folder that is ready is not made twice.
        update("results/data/{dataset}/meta.json"),
    log:
        "results/logs/prepare/{dataset}.log",
    conda:
        "../../environment.yml"
    params:
        # Of this dataset alone: a change of another card must not have it prepared again.
        card=get_card_digest,
        code=get_dataset_code,
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
    localrule: True
    conda:
        "../../environment.yml"
    script:
        "../scripts/list_datasets.py"
