"""Fetching from a local web server that misbehaves in every way servers do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_server import CONTENT, QUICK, SHA256, Handler, Server, running_server

from benchmarks.data import fetch as fetching
from benchmarks.data.cards import RemoteFile
from benchmarks.data.errors import UnavailableError
from benchmarks.data.fetch import Fetched, Patience, fetch, git_blob, record


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def wanted(*origins: str, known: bool = True, size: bool = True) -> RemoteFile:
    return RemoteFile(
        "data.bin",
        size=len(CONTENT) if size else None,
        sha256=SHA256 if known else None,
        origins=origins,
    )


def assert_whole(fetched: Fetched, cache: Path) -> None:
    assert fetched.path.read_bytes() == CONTENT
    assert fetched.sha256 == SHA256
    left = {p.name for p in cache.iterdir()} - {"data.bin", ".data.bin.lock"}
    assert not left


def assert_nothing_passes_for_the_file(cache: Path) -> None:
    assert not {p.name for p in cache.iterdir() if not p.name.startswith(".data.bin.")}


def test_plain_download_and_cache(server: Server, tmp_path: Path) -> None:
    url = server.serve("/data.bin", lambda h, _: h.answer_range())
    assert_whole(fetch(wanted(url), tmp_path, patience=QUICK), tmp_path)
    fetch(wanted(url), tmp_path, patience=QUICK)
    assert len(server.ranges("/data.bin")) == 1, "the second time it comes from the cache"


def test_cut_connections_are_resumed(server: Server, tmp_path: Path) -> None:
    cuts = [200_000, 300_000, None]
    url = server.serve("/data.bin", lambda h, n: h.answer_range(cut=cuts[n]))
    assert_whole(fetch(wanted(url), tmp_path, patience=QUICK), tmp_path)
    assert server.ranges("/data.bin") == [None, "bytes=200000-", "bytes=500000-"]


def test_a_killed_download_is_resumed_by_the_next_run(server: Server, tmp_path: Path) -> None:
    url = server.serve("/data.bin", lambda h, n: h.answer_range(cut=100_000 if n < 2 else None))
    impatient = Patience(attempts=1, connect_s=2.0, read_s=2.0)
    with pytest.raises(UnavailableError, match="gave up"):
        fetch(wanted(url), tmp_path, patience=impatient)
    assert_nothing_passes_for_the_file(tmp_path)
    assert_whole(fetch(wanted(url), tmp_path, patience=QUICK), tmp_path)
    assert server.ranges("/data.bin")[1] == "bytes=100000-"


def test_server_that_ignores_range(server: Server, tmp_path: Path) -> None:
    def ignore(handler: Handler, number: int) -> None:
        body = CONTENT[:1000] if number == 0 else CONTENT
        handler.answer(200, body, length=len(CONTENT), headers={"ETag": '"v1"'})

    url = server.serve("/data.bin", ignore)
    assert_whole(fetch(wanted(url), tmp_path, patience=QUICK), tmp_path)


def test_server_that_resumes_at_the_wrong_place(server: Server, tmp_path: Path) -> None:
    def wrong(handler: Handler, number: int) -> None:
        if number == 0:
            handler.answer_range(cut=1000)
        elif number == 1:
            headers = {"ETag": '"v1"', "Content-Range": f"bytes 0-99/{len(CONTENT)}"}
            handler.answer(206, CONTENT[:100], headers=headers)
        else:
            handler.answer_range()

    url = server.serve("/data.bin", wrong)
    assert_whole(fetch(wanted(url, size=False), tmp_path, patience=QUICK), tmp_path)


def test_file_replaced_on_the_server_between_parts(server: Server, tmp_path: Path) -> None:
    """If-Range no longer matches, so the server sends the new file whole."""

    def replaced(handler: Handler, number: int) -> None:
        if number == 0:
            body = b"old" * 1000
            handler.answer(200, body, length=len(CONTENT), headers={"ETag": '"old"'})
        else:
            assert handler.headers["If-Range"] == '"old"'
            handler.answer(200, CONTENT, headers={"ETag": '"new"'})

    url = server.serve("/data.bin", replaced)
    assert_whole(fetch(wanted(url), tmp_path, patience=QUICK), tmp_path)


def test_errors_that_pass_are_waited_out(server: Server, tmp_path: Path) -> None:
    def recovering(handler: Handler, number: int) -> None:
        if number < 3:
            handler.answer((500, 503, 429)[number], b"later")
        else:
            handler.answer_range()

    url = server.serve("/data.bin", recovering)
    assert_whole(fetch(wanted(url), tmp_path, patience=QUICK), tmp_path)


@pytest.mark.parametrize("code", [204, 304, 206])
def test_answers_without_the_file(server: Server, tmp_path: Path, code: int) -> None:
    """Nothing, nothing new, or a part that nobody asked for: the next source is tried."""
    body = CONTENT if code == 206 else b""
    odd = server.serve("/odd", lambda h, _: h.answer(code, body))
    good = server.serve("/data.bin", lambda h, _: h.answer_range())
    fetched = fetch(wanted(odd, good, known=False, size=False), tmp_path, patience=QUICK)
    assert fetched.origin == good


def test_redirects_without_end(server: Server, tmp_path: Path) -> None:
    loop = server.serve("/loop", lambda h, _: h.answer(302, b"", headers={"Location": "/loop"}))
    good = server.serve("/data.bin", lambda h, _: h.answer_range())
    assert fetch(wanted(loop, good), tmp_path, patience=QUICK).origin == good
    with pytest.raises(UnavailableError, match="maximum allowed redirects"):
        fetch(wanted(loop), tmp_path / "other", patience=QUICK)


def test_errors_that_stay_end_clearly(server: Server, tmp_path: Path) -> None:
    url = server.serve("/data.bin", lambda h, _: h.answer(500, b"broken"))
    with pytest.raises(UnavailableError) as caught:
        fetch(wanted(url), tmp_path, patience=QUICK)
    message = str(caught.value)
    assert "the server answered 500 (gave up)" in message
    assert f"Get it from {url} and put it at {tmp_path / 'data.bin'}" in message
    assert len(server.ranges("/data.bin")) == QUICK.attempts
    assert_nothing_passes_for_the_file(tmp_path)


def test_dead_link_is_not_asked_twice_and_the_next_source_is(
    server: Server, tmp_path: Path
) -> None:
    good = server.serve("/data.bin", lambda h, _: h.answer_range())
    file = wanted(server.url + "/gone", good)
    assert_whole(fetch(file, tmp_path, patience=QUICK), tmp_path)
    assert len(server.ranges("/gone")) == 1


@pytest.mark.parametrize("known", [True, False])
def test_html_page_instead_of_the_file(server: Server, tmp_path: Path, known: bool) -> None:
    page = b"<!DOCTYPE html><html><body>Please log in</body></html>"
    url = server.serve("/data.bin", lambda h, _: h.answer(200, page, "text/html; charset=utf-8"))
    disguised = server.serve("/other", lambda h, _: h.answer(200, page))
    with pytest.raises(UnavailableError, match="web page came instead") as caught:
        fetch(wanted(url, disguised, known=known, size=False), tmp_path, patience=QUICK)
    assert ("sha256" if known else "is a web page, not the file") in str(caught.value)
    assert_nothing_passes_for_the_file(tmp_path)
    assert not (tmp_path / ".data.bin.part").exists()


def test_wrong_file(server: Server, tmp_path: Path) -> None:
    url = server.serve("/data.bin", lambda h, _: h.answer(200, CONTENT[::-1]))
    with pytest.raises(UnavailableError, match=f"instead of {SHA256}"):
        fetch(wanted(url), tmp_path, patience=QUICK)
    assert_nothing_passes_for_the_file(tmp_path)


def test_length_that_lies(server: Server, tmp_path: Path) -> None:
    less = server.serve("/less", lambda h, _: h.answer(200, CONTENT, length=1000))
    more = server.serve("/more", lambda h, _: h.answer(200, CONTENT, length=len(CONTENT) + 7))
    with pytest.raises(UnavailableError) as caught:
        fetch(wanted(less, more), tmp_path, patience=QUICK)
    assert "offers 1,000 bytes instead of 768,000" in str(caught.value)
    assert "offers 768,007 bytes instead of 768,000" in str(caught.value)
    assert_nothing_passes_for_the_file(tmp_path)
    # With no size to hold against, the checksum or the end of the connection decides.
    with pytest.raises(UnavailableError) as caught:
        fetch(wanted(less, more, size=False), tmp_path, patience=QUICK)
    assert "instead of " + SHA256 in str(caught.value)
    assert "gave up" in str(caught.value)
    assert_nothing_passes_for_the_file(tmp_path)


def test_no_network(tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/data.bin"
    with pytest.raises(UnavailableError) as caught:
        fetch(wanted(closed), tmp_path, patience=QUICK)
    message = str(caught.value)
    assert closed in message
    assert str(tmp_path / "data.bin") in message
    assert "TAILTABLES_MIRROR" in message


def test_mirrors_come_first(server: Server, tmp_path: Path) -> None:
    origin = server.serve("/origin/data.bin", lambda h, _: h.answer_range())
    server.serve("/mirror/data.bin", lambda h, _: h.answer_range())
    fetched = fetch(wanted(origin), tmp_path / "a", f"{server.url}/mirror/", QUICK)
    assert fetched.origin == f"{server.url}/mirror/data.bin"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "data.bin").write_bytes(CONTENT)
    assert fetch(wanted(origin), tmp_path / "b", str(folder), QUICK).path == folder / "data.bin"
    # A wrong file in the mirror is passed over.
    (folder / "data.bin").write_bytes(CONTENT[1:])
    fetched = fetch(wanted(origin), tmp_path / "c", str(folder), QUICK)
    assert fetched.origin == origin


def test_google_drive_with_and_without_its_question(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "GDRIVE", server.url + "/drive?id={}")
    page = (
        f'<html><form id="download-form" action="{server.url}/confirmed" method="get">'
        '<input type="hidden" name="id" value="X"><input type="hidden" name="uuid" value="u">'
        "</form></html>"
    )
    server.serve("/drive", lambda h, _: h.answer(200, page.encode(), "text/html"))
    server.serve("/confirmed", lambda h, _: h.answer_range())
    assert_whole(fetch(wanted("gdrive:X"), tmp_path / "a", patience=QUICK), tmp_path / "a")
    server.serve("/drive", lambda h, _: h.answer_range())
    assert_whole(fetch(wanted("gdrive:X"), tmp_path / "b", patience=QUICK), tmp_path / "b")
    quota = '<html><p class="uc-error-subcaption">Too many users have viewed it</p></html>'
    server.serve("/drive", lambda h, _: h.answer(200, quota.encode(), "text/html"))
    with pytest.raises(UnavailableError, match="Too many users have viewed it"):
        fetch(wanted("gdrive:X"), tmp_path / "c", patience=QUICK)
    server.serve("/drive", lambda h, _: h.answer(200, page.encode(), "text/html"))
    server.serve("/confirmed", lambda h, _: h.answer(206, CONTENT))
    with pytest.raises(UnavailableError, match="a part of the file that was not asked for"):
        fetch(wanted("gdrive:X", known=False), tmp_path / "d", patience=QUICK)


def test_unknown_checksum_is_recorded_and_holds(server: Server, tmp_path: Path) -> None:
    url = server.serve("/data.bin", lambda h, _: h.answer_range())
    file = wanted(url, known=False)
    record(file, fetch(file, tmp_path, patience=QUICK), tmp_path)
    kept = json.loads((tmp_path / "checksums.json").read_text())
    assert kept["data.bin"]["sha256"] == SHA256
    (tmp_path / "data.bin").write_bytes(CONTENT[::-1])
    server.serve("/data.bin", lambda h, _: h.answer(200, CONTENT[::-1]))
    with pytest.raises(UnavailableError, match="differs from the file first used"):
        fetch(file, tmp_path, patience=QUICK)


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"\xff\xfe", b'{"data.bin": 3}'])
def test_damaged_notes_are_begun_afresh(server: Server, tmp_path: Path, damage: bytes) -> None:
    url = server.serve("/data.bin", lambda h, _: h.answer_range())
    (tmp_path / "checksums.json").write_bytes(damage)
    (tmp_path / ".data.bin.part.json").write_bytes(damage)
    (tmp_path / ".data.bin.part").write_bytes(b"of something else")
    file = wanted(url, known=False)
    fetched = fetch(file, tmp_path, patience=QUICK)
    assert fetched.path.read_bytes() == CONTENT
    record(file, fetched, tmp_path)
    kept = json.loads((tmp_path / "checksums.json").read_text())
    assert kept["data.bin"]["sha256"] == SHA256


def test_other_checksums(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "hello.txt").write_bytes(b"hello\n")
    # Known from `git hash-object` and `md5sum`.
    blob, md5 = "ce013625030ba8dba906f756967f9e9ca394464a", "b1946ac92492d2347c6235b4d2611184"
    assert git_blob(mirror / "hello.txt") == blob
    good = RemoteFile("hello.txt", md5=md5, git_blob=blob)
    assert fetch(good, tmp_path / "cache", str(mirror)).path.read_bytes() == b"hello\n"
    for bad in (RemoteFile("hello.txt", md5="0" * 32), RemoteFile("hello.txt", git_blob="0" * 40)):
        with pytest.raises(UnavailableError, match="instead of 0000"):
            fetch(bad, tmp_path / "cache", str(mirror))


def test_a_download_without_a_known_size_is_bounded(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "SIZE_LIMIT", 100_000)
    url = server.serve("/data.bin", lambda h, _: h.answer_range())
    with pytest.raises(UnavailableError, match="sends more than 100,000 bytes"):
        fetch(wanted(url, known=False, size=False), tmp_path, patience=QUICK)
    assert_nothing_passes_for_the_file(tmp_path)


def test_a_download_that_takes_too_long_is_given_up(server: Server, tmp_path: Path) -> None:
    first = server.serve("/slow/data.bin", lambda h, _: h.answer_range())
    second = server.serve("/data.bin", lambda h, _: h.answer_range())
    hurried = Patience(attempts=2, first_wait_s=0.01, connect_s=2.0, read_s=2.0, total_s=-1.0)
    with pytest.raises(UnavailableError, match="not finished in the time allowed"):
        fetch(wanted(first), tmp_path, patience=hurried)
    assert_whole(fetch(wanted(first, second), tmp_path, patience=QUICK), tmp_path)


@pytest.mark.parametrize("notes", [b"", b"{", b"[]", b'{"url": 3}', b"\xff", b'{"validator": []}'])
def test_damaged_notes_of_a_part_start_afresh(server: Server, tmp_path: Path, notes: bytes) -> None:
    url = server.serve("/data.bin", lambda h, _: h.answer_range())
    (tmp_path / ".data.bin.part").write_bytes(b"nonsense")
    (tmp_path / ".data.bin.part.json").write_bytes(notes)
    (tmp_path / "checksums.json").write_bytes(notes)
    found = fetch(wanted(url, known=False), tmp_path, patience=QUICK)
    assert found.path.read_bytes() == CONTENT
    record(wanted(url, known=False), found, tmp_path)
    assert json.loads((tmp_path / "checksums.json").read_text())["data.bin"]["sha256"] == SHA256
