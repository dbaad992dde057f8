from pathlib import Path

from workflow.report import build
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    named = dict(snakemake.input.items())
    lists = {name: [Path(p) for p in named.pop(name)] for name in snakemake.params.lists}
    files = {name: Path(path) for name, path in named.items()}
    build(**files, **lists, output=Path(snakemake.output[0]))
