from pathlib import Path

from benchmarks.render.figure import write_figure
from methods.linear.loss_figure import draw, loss_curves
from workflow.runtime.logs import logged

with logged(snakemake.log[0]):
    curves = loss_curves()
    write_figure(draw(curves), curves, Path(snakemake.output[0]).with_suffix(""))
