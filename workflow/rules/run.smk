rule run_cell:
    input:
        "results/data/{dataset}/meta.json",
    output:
        record=f"{CELL_FOLDER}/run.json",
        predictions=f"{CELL_FOLDER}/predictions.npz",
        norms=f"{CELL_FOLDER}/norms.npz",
    log:
        "results/logs/runs/{dataset}/{base}/{variant}/seed{seed}.log",
    conda:
        "../../environment.yml"
    threads: get_budget("threads")
    resources:
        mem_mb=get_memory,
        wall_s=get_wall,
        runtime=get_runtime_minutes,
    params:
        recipe=get_recipe,
        code=get_cell_code,
        top_k=SETTINGS["top_k"],
    script:
        "../scripts/run_cell.py"
