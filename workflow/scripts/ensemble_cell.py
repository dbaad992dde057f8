from dataclasses import asdict
from pathlib import Path

from benchmarks.records.cell import Cell
from workflow.runtime.ensemble import ensemble_cell

folder = Path(snakemake.output.record).parent
ensemble_cell(
    folder,
    cell=asdict(Cell.from_path(folder)),
    recipe=snakemake.params.recipe,
    data=Path(snakemake.input.data).parent,
    members=[Path(record).parent for record in snakemake.input.records],
    top_k=snakemake.params.top_k,
    code=snakemake.params.code,
    log=Path(snakemake.log[0]),
)
