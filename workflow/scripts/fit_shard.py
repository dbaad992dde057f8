from pathlib import Path

from workflow.runtime.cell import run_shard

run_shard(
    Path(snakemake.output[0]),
    shard=(int(snakemake.wildcards.shard), int(snakemake.wildcards.of)),
    recipe=snakemake.params.recipe,
    data=Path(snakemake.input[0]).parent,
    budget={
        "wall_s": float(snakemake.resources.wall_s),
        "memory_mb": snakemake.resources.memory_mb,
    },
    threads=snakemake.threads,
    device=snakemake.resources.device,
    checkpoint=Path(snakemake.params.checkpoint),
    code=snakemake.params.code,
    log=Path(snakemake.log[0]),
    resources=[Path(path).parent for path in snakemake.input.get("resources", [])],
)
