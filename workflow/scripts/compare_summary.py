import pandas as pd

from benchmarks.common.atomic import atomic_path
from benchmarks.papers.compare import tally
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    frames = dict(zip(snakemake.params.papers, map(pd.read_csv, snakemake.input), strict=True))
    with atomic_path(snakemake.output[0]) as temporary:
        tally(frames).to_csv(temporary, index=False)
