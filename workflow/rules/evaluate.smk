rule evaluate:
    input:
        data="results/data/{dataset}/meta.json",
        record=f"{CELL_FOLDER}/run.json",
        predictions=f"{CELL_FOLDER}/predictions.npz",
    output:
        metrics=f"{CELL_FOLDER}/metrics.csv",
        instance=f"{CELL_FOLDER}/instance.npz",
        evaluation=f"{CELL_FOLDER}/evaluation.json",
    log:
        "results/logs/evaluate/{dataset}/{base}/{variant}/seed{seed}.log",
    conda:
        "../../environment.yml"
    params:
        ks=SETTINGS["ks"],
        threshold=SETTINGS["threshold"],
        code=code_digest("workflow.runtime.evaluate"),
    script:
        "../scripts/evaluate.py"


rule collect:
    input:
        records=get_cell_files("run.json"),
        metrics=get_cell_files("metrics.csv"),
    output:
        cells="results/cells.csv",
        runs="results/runs.csv",
    log:
        "results/logs/collect.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.records.cells"),
    script:
        "../scripts/collect.py"


rule intervals:
    input:
        get_cell_files("instance.npz"),
    output:
        "results/intervals.csv",
    log:
        "results/logs/intervals.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.records.intervals"),
    script:
        "../scripts/intervals.py"


rule bins:
    input:
        get_cell_files("instance.npz"),
    output:
        "results/bins.csv",
    log:
        "results/logs/bins.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.records.bins"),
    script:
        "../scripts/bins.py"


rule labels:
    input:
        data="results/data/{dataset}/meta.json",
        predictions=get_files_on_dataset("predictions.npz"),
        norms=get_files_on_dataset("norms.npz"),
    output:
        "results/labels/{dataset}.csv",
    log:
        "results/logs/labels/{dataset}.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.records.labels"),
    script:
        "../scripts/labels.py"
