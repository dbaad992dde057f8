from pathlib import Path

from workflow.report import Run, build
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    params = snakemake.params
    configfiles = snakemake.resources.configfiles.split()
    run = Run(Path("results"), params.papers, params.own_data, configfiles)
    build(run, Path(snakemake.output[0]))
