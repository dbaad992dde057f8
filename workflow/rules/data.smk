rule prepare:
    output:
        "results/data/{dataset}/meta.json",
    params:
        code=code_digest("benchmarks.data.synthetic", "benchmarks.data.prepared"),
    log:
        "results/logs/prepare/{dataset}.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/prepare.py"
