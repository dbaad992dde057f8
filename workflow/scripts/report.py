from pathlib import Path

from workflow.report import build
from workflow.runtime.seals import sealed_job

with sealed_job(snakemake):
    build(Path("results"), snakemake.params.papers, Path(snakemake.output[0]))
