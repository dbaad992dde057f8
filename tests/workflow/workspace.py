"""A folder of its own to run the DAG in, as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent


class Workspace:
    """A working directory, and snakemake in it."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.root = root
        folder.mkdir(parents=True, exist_ok=True)

    def configure(self, config: dict) -> Path:
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    def command(self, *arguments: str, config: Path) -> list[str]:
        snakefile = str(self.root / "Snakefile")
        fixed = ["--snakefile", snakefile, "--directory", str(self.folder)]
        return [sys.executable, "-m", "snakemake", *fixed, *arguments, "--configfile", str(config)]

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.root), str(HERE)])
        return {**os.environ, "PYTHONPATH": path, "CI": "true"}

    def run(
        self, *arguments: str, config: Path, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments, config=config),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    def planned(self, *arguments: str, config: Path) -> dict[str, list[str]]:
        """What a dry run would do: rule -> outputs."""
        text = self.run("--dry-run", "--cores", "1", *arguments, config=config)
        jobs: dict[str, list[str]] = {}
        rule = ""
        for line in (text.stdout + text.stderr).splitlines():
            words = line.split()
            if len(words) == 2 and words[0] in ("rule", "localrule"):
                rule = words[1].rstrip(":")
                jobs.setdefault(rule, [])
            elif line.strip().startswith("output:"):
                jobs[rule].append(line.strip().removeprefix("output: ").split(",")[0])
        return jobs

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()
