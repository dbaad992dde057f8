from pathlib import Path

from workflow.runtime.ensemble import ensemble_cell

wildcards = snakemake.wildcards
ensemble_cell(
    Path(snakemake.output.record).parent,
    cell={
        "dataset": wildcards.dataset,
        "base": wildcards.base,
        "variant": wildcards.variant,
        "seed": int(wildcards.seed),
    },
    recipe=snakemake.params.recipe,
    data=Path(snakemake.input.data).parent,
    members=[Path(record).parent for record in snakemake.input.records],
    top_k=snakemake.params.top_k,
    code=snakemake.params.code,
    log=Path(snakemake.log[0]),
)
