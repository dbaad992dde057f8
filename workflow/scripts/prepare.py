from pathlib import Path

from benchmarks.data.prepare import ensure_or_record
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    name = snakemake.wildcards.dataset
    meta = Path(snakemake.output[0])
    ensure_or_record(
        name,
        meta.parents[1],
        snakemake.config.get("mirror"),
        snakemake.config.get("define", {}).get("datasets"),
        snakemake.params.code,
    )
    meta.touch()  # newer than its inputs, even if it was ready
