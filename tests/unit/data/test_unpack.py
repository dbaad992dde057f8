"""Archives, good, damaged and hostile."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../evil.txt", "leads out"),
        ("a/../../evil.txt", "leads out"),
        ("a/../evil.txt", "leads out"),
        ("/evil.txt", "leads out"),
        ("//evil.txt", "leads out"),
        ("..\\evil.txt", "characters"),
        ("C:\\evil.txt", "characters"),
        ("evil\n.txt", "characters"),
        ("evil\x1b[2J.txt", "characters"),
        ("evil" * 70, "too long"),
        ("evil/" * 300 + "x", "too long"),
        (".", "in the way"),
    ],
)
@pytest.mark.parametrize("suffix", ["zip", "tar.gz"])
def test_names_that_are_refused(tmp_path: Path, name: str, why: str, suffix: str) -> None:
    make = make_zip if suffix == "zip" else make_tar
    archive = make(tmp_path / f"bad.{suffix}", "first.txt", name)
    before = outside(tmp_path)
    with pytest.raises(UnpackError, match=f"refused, .* {why}"):
        unpack(archive, tmp_path / "deep" / "out")
    assert outside(tmp_path) == before
    assert [p.name for p in (tmp_path / "deep/out").rglob("*")] == ["first.txt"]


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    gnu = tarfile.GNU_FORMAT
    with tarfile.open(tmp_path / "bad.tar", "w", format=gnu, encoding="latin-1") as tar:
        tar.addfile(tarfile.TarInfo("caf\xe9.txt"))
    with pytest.raises(UnpackError, match="characters"):
        unpack(tmp_path / "bad.tar", tmp_path / "out")


def test_dots_and_folders_are_harmless(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("./folder")
    folder.type = tarfile.DIRTYPE
    top = tarfile.TarInfo("./")
    top.type = tarfile.DIRTYPE
    unpack(make_tar(tmp_path / "a.tar", top, folder, "./folder/./file.txt"), tmp_path / "out")
    assert (tmp_path / "out/folder/file.txt").read_bytes() == CONTENT


@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b"), ("a/b", "a"), ("a/b", "./a//b")])
@pytest.mark.parametrize("suffix", ["zip", "tar"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_nothing_is_written_twice(tmp_path: Path, names: tuple[str, str], suffix: str) -> None:
    make = make_zip if suffix == "zip" else make_tar
    with pytest.raises(UnpackError, match="in the way of another member"):
        unpack(make(tmp_path / f"bad.{suffix}", *names), tmp_path / "out")


def outside(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder that is not below ``deep/out``, with its content."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "out" not in path.parts
    }


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.CHRTYPE, "no regular file"),
        (tarfile.BLKTYPE, "no regular file"),
        (tarfile.FIFOTYPE, "no regular file"),
    ],
)
@pytest.mark.parametrize("target", ["first.txt", "../../etc/passwd", "/etc/passwd"])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes, why: str, target: str) -> None:
    """Links to what is inside the folder, too: datasets need none."""
    archive = make_tar(tmp_path / "bad.tar", "first.txt", special("odd", kind, target))
    with pytest.raises(UnpackError, match=f"refused, 'odd' is {why}"):
        unpack(archive, tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["first.txt"]


def test_a_chain_of_links_longer_than_a_path_may_be(tmp_path: Path) -> None:
    """CVE-2025-4517: past PATH_MAX ``realpath`` stops resolving, and the data filter with it."""
    victim = tmp_path / "victim.txt"
    victim.write_text("untouched")
    members: list[tarfile.TarInfo | str] = []
    long, path = "d" * 247, ""
    for letter in "abcdefghijklmnop":
        members.append(special(path + long, tarfile.DIRTYPE))
        members.append(special(path + letter, tarfile.SYMTYPE, long))
        path += long + "/"
    chain = "/".join("abcdefghijklmnop") + "/" + "l" * 254
    members.append(special(chain, tarfile.SYMTYPE, "../" * 16))
    members.append(special("escape", tarfile.SYMTYPE, chain + "/../../victim.txt"))
    members.append(special("again", tarfile.LNKTYPE, "escape"))
    members.append("again")
    archive = make_tar(tmp_path / "bad.tar", *members)
    with pytest.raises(UnpackError, match="refused, 'a' is a link"):
        unpack(archive, tmp_path / "deep" / "out")
    assert victim.read_text() == "untouched"
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(("mode", "why"), [(0o120777, "a link"), (0o010644, "no regular file")])
def test_links_and_pipes_in_zip_are_refused(tmp_path: Path, mode: int, why: str) -> None:
    entry = zipfile.ZipInfo("odd")
    entry.external_attr = mode << 16
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as packed:
        packed.writestr(entry, "/etc/passwd")
    with pytest.raises(UnpackError, match=f"is {why}"):
        unpack(tmp_path / "bad.zip", tmp_path / "out")


@pytest.mark.parametrize("suffix", ["zip", "tar.gz"])
def test_only_the_named_members_are_written(tmp_path: Path, suffix: str) -> None:
    make = make_zip if suffix == "zip" else make_tar
    archive = make(tmp_path / f"a.{suffix}", "setup.py", "data/one.txt", "data/two.txt")
    unpack(archive, tmp_path / "out", members=["data/two.txt"])
    assert [p.name for p in (tmp_path / "out").rglob("*.*")] == ["two.txt"]
    with pytest.raises(UnpackError, match=r"has no member data/three\.txt"):
        unpack(archive, tmp_path / "out2", members=["data/one.txt", "data/three.txt"])


def test_a_sparse_file_counts_as_large_as_it_is(tmp_path: Path) -> None:
    """A few bytes can stand for terabytes of zeros: refused before any is written."""
    large = tarfile.TarInfo("large")
    large.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1",
                         "GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 42)}  # fmt: skip
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(large)
    with pytest.raises(UnpackError, match="unpacks to more than"):
        unpack(tmp_path / "a.tar", tmp_path / "out")
    assert not (tmp_path / "out/large").exists()


def header(kind: bytes, size: int, body: bytes = b"") -> bytes:
    member = tarfile.TarInfo("h")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT) + body + b"\0" * (-len(body) % 512)


HEADERS = [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]


@pytest.mark.parametrize("kind", HEADERS)
def test_headers_without_end_are_refused(tmp_path: Path, kind: bytes) -> None:
    """tarfile calls itself for each of a chain of headers, and holds each of them in memory."""
    chain = header(kind, 13, b"13 comment=a\n") * 5000
    long = header(kind, 2 << 20, b"\0" * (2 << 20))
    claims = [header(kind, size) for size in (-512, 10**12, 2**62, 2**63)]
    for number, content in enumerate([chain, long, *claims]):
        (tmp_path / "bad.tar").write_bytes(content + bytes(1024))
        with pytest.raises(UnpackError, match="cut or damaged"):
            unpack(tmp_path / "bad.tar", tmp_path / str(number))


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE])
@pytest.mark.parametrize("size", [-1, -512, 10**12, 2**62, 2**63])
def test_members_of_impossible_sizes_are_refused(tmp_path: Path, kind: bytes, size: int) -> None:
    (tmp_path / "bad.tar").write_bytes(header(kind, size) + bytes(2048))
    with pytest.raises(UnpackError, match="cut or damaged|unpacks to more than"):
        unpack(tmp_path / "bad.tar", tmp_path / "out")


CHANGES = st.tuples(st.integers(0, 10**6), st.sampled_from([0, 1, 127, 255]) | st.integers(0, 255))


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar"])
@given(changes=st.lists(CHANGES, min_size=1, max_size=3), cut=st.integers(0, 3000))
@settings(max_examples=150, deadline=None)
@pytest.mark.filterwarnings("ignore")  # zipfile's on names that come twice
def test_any_changed_or_cut_archive_is_unpacked_inside_or_refused(
    name: str, changes: list[tuple[int, int]], cut: int
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make = make_zip if name.endswith(".zip") else make_tar
        raw = bytearray(make(folder / name, "x/one", "x/two").read_bytes())
        for position, value in changes:
            raw[position % len(raw)] = value
        (folder / name).write_bytes(raw[:-cut] if 0 < cut < len(raw) and cut % 3 == 0 else raw)
        before = outside(folder)
        with contextlib.suppress(UnpackError):
            unpack(folder / name, folder / "deep" / "out")
        assert outside(folder) == before


@given(position=st.integers(0, 2047), value=st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_any_changed_byte_of_a_header_writes_nothing_outside(position: int, value: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raw = bytearray(make_tar(folder / "a.tar", "x/one", "x/two").read_bytes())
        raw[position % 512 + 512 * 11 * (position // 1024)] = value
        (folder / "a.tar").write_bytes(raw)
        before = outside(folder)
        with contextlib.suppress(UnpackError):
            unpack(folder / "a.tar", folder / "deep" / "out")
        assert outside(folder) == before


KINDS = [
    tarfile.REGTYPE,
    tarfile.DIRTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.FIFOTYPE,
    tarfile.CONTTYPE,
    tarfile.GNUTYPE_SPARSE,
    b"Z",  # of no known kind
]
PARTS = st.sampled_from(
    ["a", "b", "..", ".", "", "d" * 200, "a\\b", "caf\xe9", "-", "~", "\n", "CON"]
)
PATHS = st.lists(PARTS, min_size=1, max_size=6).map("/".join)
MEMBERS = st.tuples(st.sampled_from(KINDS), PATHS, PATHS)


@given(st.lists(MEMBERS, min_size=1, max_size=6), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_archive_of_odd_members_writes_regular_files_inside_or_is_refused(
    members: list[tuple[bytes, str, str]], absolute: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "victim.txt").write_text("untouched")
        infos = []
        for kind, path, target in members:
            root = f"{folder}/victim.txt" if absolute else "../../victim.txt"
            infos.append(special(path, kind, target if len(target) % 2 else root))
        make_tar(folder / "a.tar", *infos)
        before = outside(folder)
        with contextlib.suppress(UnpackError):
            unpack(folder / "a.tar", folder / "deep" / "out")
        assert outside(folder) == before
        for path in (folder / "deep").rglob("*"):
            assert not path.is_symlink()
            assert path.is_dir() or (path.is_file() and path.stat().st_nlink == 1)


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
    for i, content in enumerate((whole[: len(whole) // 2], b"<html>no archive</html>", b"")):
        path.write_bytes(content)
        with pytest.raises(UnpackError, match="cut or damaged"):
            unpack(path, tmp_path / f"out{i}")
