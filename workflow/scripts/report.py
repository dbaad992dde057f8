from pathlib import Path

from workflow.report import build
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    build(Path("results"), snakemake.params.papers, Path(snakemake.output[0]))
