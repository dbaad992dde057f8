from pathlib import Path

from benchmarks.common.atomic import write_json
from benchmarks.data.prepare import status
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    target = Path(snakemake.output[0])
    name = snakemake.wildcards.dataset
    record = status(name, target.parent, snakemake.params.mirror, snakemake.params.cards)
    write_json(target, record)
