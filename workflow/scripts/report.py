from pathlib import Path

from workflow.report import Run, build
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    params = snakemake.params
    run = Run(Path("results"), params.papers, params.own_data, params.configfiles)
    build(run, Path(snakemake.output[0]))
