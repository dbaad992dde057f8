"""Archives, good, damaged and hostile."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchmarks.data.unpack import UnpackError, unpack

CONTENT = b"some data\n" * 500


def make_tar(path: Path, *members: tarfile.TarInfo | str) -> Path:
    with tarfile.open(path, "w:" + {".gz": "gz", ".xz": "xz"}.get(path.suffix, "")) as tar:
        for member in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg():
                info.size = len(CONTENT)
                tar.addfile(info, io.BytesIO(CONTENT))
            else:
                tar.addfile(info)
    return path


def make_zip(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in names:
            packed.writestr(name, CONTENT)
    return path


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz", "a.zip"])
def test_archives_unpack(tmp_path: Path, name: str) -> None:
    make = make_zip if name.endswith(".zip") else make_tar
    unpack(make(tmp_path / name, "folder/file.txt"), tmp_path / "out")
    assert (tmp_path / "out/folder/file.txt").read_bytes() == CONTENT


def test_single_files(tmp_path: Path) -> None:
    (tmp_path / "file.txt.gz").write_bytes(gzip.compress(CONTENT))
    (tmp_path / "plain.txt").write_bytes(CONTENT)
    for name in ("file.txt.gz", "plain.txt"):
        unpack(tmp_path / name, tmp_path / "out")
    assert (tmp_path / "out/file.txt").read_bytes() == CONTENT
    assert (tmp_path / "out/plain.txt").read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["../evil.txt", "a/../../evil.txt"])
@pytest.mark.parametrize("suffix", ["zip", "tar.gz"])
def test_paths_out_are_refused(tmp_path: Path, name: str, suffix: str) -> None:
    make = make_zip if suffix == "zip" else make_tar
    archive = make(tmp_path / f"bad.{suffix}", name)
    with pytest.raises(UnpackError, match="refused"):
        unpack(archive, tmp_path / "deep" / "out")
    assert not list(tmp_path.rglob("evil.txt"))


def test_absolute_paths_stay_inside(tmp_path: Path) -> None:
    """tarfile's data filter takes the leading slash off; zip entries are refused."""
    unpack(make_tar(tmp_path / "bad.tar", "/evil_absolute.txt"), tmp_path / "out")
    assert (tmp_path / "out/evil_absolute.txt").exists()
    with pytest.raises(UnpackError, match="refused"):
        unpack(make_zip(tmp_path / "bad.zip", "/evil_absolute.txt"), tmp_path / "out2")
    assert not Path("/evil_absolute.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_out_are_refused(tmp_path: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("link")
    link.type = kind
    link.linkname = "../../etc/passwd"
    with pytest.raises(UnpackError, match="refused"):
        unpack(make_tar(tmp_path / "bad.tar", link), tmp_path / "out")


def test_links_in_zip_are_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as packed:
        packed.writestr(entry, "/etc/passwd")
    with pytest.raises(UnpackError, match="is a link"):
        unpack(tmp_path / "bad.zip", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tar.xz", "a.zip", "a.txt.gz"])
def test_size_limit(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".txt.gz"):
        path.write_bytes(gzip.compress(CONTENT))
    else:
        (make_zip if name.endswith(".zip") else make_tar)(path, "one", "two")
    with pytest.raises(UnpackError, match="more than 4,000 bytes"):
        unpack(path, tmp_path / "out", limit=4000)


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.xz", "a.zip", "a.txt.gz"])
def test_damaged_archives(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".txt.gz"):
        path.write_bytes(gzip.compress(CONTENT))
    else:
        (make_zip if name.endswith(".zip") else make_tar)(path, "one", "two")
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"<html>no archive</html>", b""):
        path.write_bytes(content)
        with pytest.raises(UnpackError, match="cut or damaged"):
            unpack(path, tmp_path / "out")
