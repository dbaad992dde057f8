from dataclasses import asdict
from pathlib import Path

from benchmarks.records.cell import Cell
from workflow.runtime.cell import run_cell

folder = Path(snakemake.output.record).parent
run_cell(
    folder,
    cell=asdict(Cell.from_path(folder)),
    recipe=snakemake.params.recipe,
    data=Path(snakemake.input.data).parent,
    budget={
        "wall_s": float(snakemake.resources.wall_s),
        "memory_mb": snakemake.resources.memory_mb,
    },
    threads=snakemake.threads,
    device=snakemake.resources.device,
    top_k=snakemake.params.top_k,
    code=snakemake.params.code,
    log=Path(snakemake.log[0]),
    shards=[Path(path) for path in snakemake.input.get("shards", [])],
    resources=[Path(path).parent for path in snakemake.input.get("resources", [])],
)
