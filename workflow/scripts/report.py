from pathlib import Path

from workflow.report import Run, build
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    params = snakemake.params
    run = Run(Path("results"), params.papers, params.own_data, params.configfiles)
    build(run, Path(snakemake.output[0]))
