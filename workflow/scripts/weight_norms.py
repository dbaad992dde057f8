from pathlib import Path

from benchmarks.data.prepared import open_prepared
from benchmarks.figures import norms_frame, weight_norms, write_figure
from workflow.config import Cell
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    files = [Path(path) for path in snakemake.input.norms]
    cells = [Cell.from_path(str(path.parent)) for path in files]
    folders = [Path(path).parent for path in snakemake.input.data]
    counts = {folder.name: open_prepared(folder)[0].label_counts() for folder in folders}
    frame = norms_frame([(c.dataset, c.base, c.variant) for c in cells], files, counts)
    write_figure(weight_norms(frame), frame, Path(snakemake.output[0]).with_suffix(""))
