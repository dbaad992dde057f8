rule prepare:
    output:
        "results/data/{dataset}/meta.json",
    log:
        "results/logs/prepare/{dataset}.log",
    conda:
        "../../environment.yml"
    params:
        code=code_digest("benchmarks.data.synthetic", "benchmarks.data.prepared"),
    script:
        "../scripts/prepare.py"
