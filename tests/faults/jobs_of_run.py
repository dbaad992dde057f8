"""The jobs of a configuration as Snakemake plans them, each with what its script is handed.

Run as a program in the folder of the run: ``jobs_of_run.py SNAKEFILE CONFIGFILE FILE``. The file
gets a pickled list of (name of the script, object), in an order in which the jobs can be run; the
objects are what a script finds under the name ``snakemake``.
"""

import contextlib
import io
import pickle
import sys
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.iocontainers import Snakemake
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    ResourceSettings,
)


def planned(snakefile, configfile):
    """Every job of the default target, whether or not its files are there."""
    with SnakemakeApi(OutputSettings()) as api:
        opened = api.workflow(
            ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=[configfile]),
            snakefile=snakefile,
        )
        with contextlib.redirect_stdout(io.StringIO()):
            opened.dag(DAGSettings(forceall=True)).printrulegraph()
        workflow = opened._workflow
        jobs = [job for level in workflow.dag.toposorted() for job in level if job.rule.script]
        return [(Path(job.rule.script).stem, handed(job, workflow)) for job in jobs]


def handed(job, workflow):
    return Snakemake(
        job.input,
        job.output,
        job.params,
        job.wildcards,
        job.threads,
        job.resources,
        job.log,
        workflow.config,
        job.rule.name,
        None,
        "",
    )


if __name__ == "__main__":
    snakefile, configfile, file = map(Path, sys.argv[1:])
    file.write_bytes(pickle.dumps(planned(snakefile, configfile)))
