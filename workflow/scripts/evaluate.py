from pathlib import Path

from workflow.runtime.evaluate import evaluate_cell
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    evaluate_cell(
        Path(snakemake.input.record).parent,
        Path(snakemake.input.data).parent,
        snakemake.params.ks,
        Path(snakemake.output.metrics),
        Path(snakemake.output.instance),
        snakemake.params.threshold,
    )
