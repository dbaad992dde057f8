rule fit_shard:
    input:
        "results/data/{dataset}/meta.json",
        resources=get_resources,
    output:
        temp(directory(f"{CELL_FOLDER}/shards/{{shard}}of{{of}}")),
    log:
        "results/logs/runs/{dataset}/{base}/{variant}/seed{seed}.shard{shard}of{of}.log",
    wildcard_constraints:
        shard=r"\d+",
        of=r"\d+",
    conda:
        "../../environment.yml"
    threads: get_budget("threads")
    resources:
        mem_mb=get_scheduler_memory,
        memory_mb=get_memory,
        wall_s=get_wall,
        runtime=get_runtime_minutes,
        device=get_budget("device"),
        gpu=get_gpu,
    params:
        recipe=get_recipe,
        code=get_cell_code,
        checkpoint=f"{CELL_FOLDER}/.checkpoint-{{shard}}of{{of}}",
    script:
        "../scripts/fit_shard.py"


rule run_cell:
    input:
        data="results/data/{dataset}/meta.json",
        shards=get_shards,
        resources=get_resources,
    output:
        record=f"{CELL_FOLDER}/run.json",
        predictions=f"{CELL_FOLDER}/predictions.npz",
        norms=f"{CELL_FOLDER}/norms.npz",
    log:
        "results/logs/runs/{dataset}/{base}/{variant}/seed{seed}.log",
    wildcard_constraints:
        variant=rf"(?!{ENSEMBLES}/)[^/]+",
    conda:
        "../../environment.yml"
    threads: get_budget("threads")
    resources:
        mem_mb=get_scheduler_memory,
        memory_mb=get_memory,
        wall_s=get_wall,
        runtime=get_runtime_minutes,
        device=get_budget("device"),
        gpu=get_gpu,
    params:
        recipe=get_recipe,
        code=get_cell_code,
        top_k=SETTINGS["top_k"],
    script:
        "../scripts/run_cell.py"


# The mean of cells that differ in their seed: the three files of a cell, made from theirs.
rule ensemble_cell:
    input:
        data="results/data/{dataset}/meta.json",
        records=get_member_files("run.json"),
        predictions=get_member_files("predictions.npz"),
        norms=get_member_files("norms.npz"),
    output:
        record=f"{CELL_FOLDER}/run.json",
        predictions=f"{CELL_FOLDER}/predictions.npz",
        norms=f"{CELL_FOLDER}/norms.npz",
    log:
        "results/logs/runs/{dataset}/{base}/{variant}/seed{seed}.log",
    wildcard_constraints:
        variant=ENSEMBLES,
    conda:
        "../../environment.yml"
    resources:
        mem_mb=get_scheduler_memory,
    params:
        recipe=get_recipe,
        code=get_cell_code,
        top_k=SETTINGS["top_k"],
    script:
        "../scripts/ensemble_cell.py"
