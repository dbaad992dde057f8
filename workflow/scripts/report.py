from pathlib import Path

from workflow.report import build
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    build(
        **{name: Path(path) for name, path in snakemake.input.items()},
        output=Path(snakemake.output[0]),
    )
