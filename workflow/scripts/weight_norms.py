from pathlib import Path

from benchmarks.records.cell import Cell
from benchmarks.render.figure import norms_frame, weight_norms, write_figure
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    files = [Path(path) for path in snakemake.input.norms]
    cells = [Cell.from_path(str(path.parent)) for path in files]
    folders = [Path(path).parent for path in snakemake.input.data]
    frame = norms_frame([(c.dataset, c.base, c.variant) for c in cells], files, folders)
    write_figure(weight_norms(frame), frame, Path(snakemake.output[0]).with_suffix(""))
