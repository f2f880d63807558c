"""Sizes that a file states are checked before memory is allocated for them; each file here is a few kilobytes."""

import gzip
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from beltrami import file_limits as limits
from beltrami.config.parser import read_config
from beltrami.data.archives import npz_digest, read_npz
from beltrami.data.graph_reader import read_graph
from beltrami.data.ogb import read_ogb
from beltrami.data.table_reader import read_header, read_table
from beltrami.errors import DataError
from beltrami.image.image_file import read_image
from beltrami.lab.study.record import read_records
from beltrami.train import load_weights


def npy(header: str, content: bytes = b"") -> bytes:
    """Return a file of the format npy, with any header."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def write_npz(path: Path, *, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(2, 3)", "(10,)", "(-2, -1)"])
def test_an_npy_header_must_state_the_size_that_is_there(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    path = write_npz(tmp_path / "a.npz", x=npy(header, b"\0" * 16))
    with pytest.raises(
        DataError, match=r"a\.npz cannot be read as npz .*header of 'x' states -?\d+ bytes of values, and"
    ):
        read_graph(path)


def test_an_archive_with_an_untrue_ratio_or_another_compression_is_refused(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", x=npy("{'descr': '|u1', 'fortran_order': False, 'shape': (9,), }", b"\0" * 9))
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")  # the central directory, which states the size at offset 24
    path.write_bytes(content[: start + 24] + struct.pack("<I", 2**31) + content[start + 28 :])
    with pytest.raises(DataError, match=r"'x\.npy' claims to expand \d+ to 2147483648 bytes"):
        read_graph(path)
    write_npz(path, method=zipfile.ZIP_LZMA, x=b"")
    with pytest.raises(DataError, match="compressed by a method other than deflate"):
        read_graph(path)


def test_an_archive_beyond_the_limit_or_the_free_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((9000, 1000)))
    monkeypatch.setattr(limits, "free_memory", lambda: 2**20)
    with pytest.raises(DataError, match=r"needs 68\.7 MiB of memory, and 1 MiB are free"):
        read_graph(tmp_path / "a.npz")
    monkeypatch.setattr(limits, "ARCHIVE_BYTES", 2**20)
    with pytest.raises(DataError, match=r"expands to 68\.7 MiB, and at most 1 MiB are read"):
        read_graph(tmp_path / "a.npz")


def test_entries_outside_of_a_published_matrix_are_refused(tmp_path: Path) -> None:
    parts = {"data": np.ones(1, np.float32), "indices": np.array([10**9]), "indptr": np.array([0, 1]), "shape": [1, 2]}
    arrays = {f"{name}_{part}": value for name in ("adj", "attr") for part, value in parts.items()}
    np.savez(tmp_path / "a.npz", allow_pickle=False, **arrays, labels=np.zeros(1, np.int64))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"a\.npz is corrupt"):
        read_npz(tmp_path / "a.npz", name="photo", digest=npz_digest(tmp_path / "a.npz"))


def test_a_compressed_table_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "edge.csv.gz").write_bytes(gzip.compress(b"0,1\n" * 10_000))
    monkeypatch.setattr(limits, "TEXT_BYTES", 30_000)
    with pytest.raises(DataError, match=r"edge\.csv\.gz is corrupt .*has more than 29\.3 KiB of text"):
        read_ogb(tmp_path, name="a", sizes=(2, 10_000, 1, 1))


def test_the_header_of_safetensors_must_fit_into_the_file(tmp_path: Path) -> None:
    content = save({"weight": torch.ones(2, 2)})
    for length in (2**63, len(content), limits.SAFETENSORS_HEADER_BYTES + 1):
        (tmp_path / "m.safetensors").write_bytes(length.to_bytes(8, "little") + content[8:])
        with pytest.raises(DataError, match=r"m\.safetensors cannot be read \(its header would have \d+ bytes of \d+"):
            load_weights(torch.nn.Linear(2, 2), tmp_path / "m.safetensors")


def test_json_files_have_a_largest_size_and_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("[" * 100_000)
    (tmp_path / "random.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(DataError, match=r"config\.json cannot be read"):
        read_config(tmp_path / "config.json")
    with pytest.raises(DataError, match=r"line 1 of .*random\.jsonl is not a record"):
        read_records(tmp_path / "random.jsonl")
    monkeypatch.setattr(limits, "JSON_BYTES", 1000)
    with pytest.raises(
        DataError, match=r"has 97\.7 KiB, and at most 1e\+03 bytes are read|at most 1000 bytes are read"
    ):
        read_config(tmp_path / "config.json")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_graphml_with_entities_is_refused(tmp_path: Path, encoding: str) -> None:
    entities = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10 if k else "ha"}">' for k in range(12))
    text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE g [{entities}]><graphml>&a11;</graphml>'
    (tmp_path / "a.graphml").write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=r"a\.graphml cannot be read as GraphML \(it has a document type"):
        read_graph(tmp_path / "a.graphml")


def test_graphml_beyond_the_free_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.graphml").write_text("<graphml>" + " " * 3_000_000)
    monkeypatch.setattr(limits, "free_memory", lambda: 2**20)
    with pytest.raises(DataError, match=r"it needs 91\.6 MiB of memory, and 1 MiB are free"):
        read_graph(tmp_path / "a.graphml")


def test_lines_and_columns_of_text_tables_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wide.csv").write_text(",".join(f"c{k}" for k in range(limits.COLUMNS + 1)) + "\n")
    with pytest.raises(DataError, match="has 65537 columns, and at most 65536 are read"):
        read_header(tmp_path / "wide.csv")
    (tmp_path / "long.csv").write_text("a,b\n1,2\n3," + "4" * 5000 + "\n")
    monkeypatch.setattr(limits, "LINE_CHARACTERS", 4000)
    with pytest.raises(DataError, match=r"long\.csv has a line of 4000 characters or more"):
        read_table(tmp_path / "long.csv")


@pytest.mark.slow
def test_a_table_of_many_columns_is_read_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    """A search of each name among all others takes minutes for so many."""
    names = [f"c{k}" for k in range(60_000)]
    (tmp_path / "nodes.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert len(read_table(tmp_path / "nodes.csv").columns) == 60_000


def test_parquet_beyond_the_free_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"id": np.zeros(10**6, np.int64), "b": np.zeros(10**6)}), tmp_path / "a.parquet")
    monkeypatch.setattr(limits, "free_memory", lambda: 2**20)
    monkeypatch.setattr(limits, "MIB", 2**10)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parquet \(it needs .* of memory, and 1 MiB are"):
        read_table(tmp_path / "a.parquet")


def png(width: int, height: int) -> bytes:
    """Return a PNG file that states a size and holds one byte of pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


@pytest.mark.parametrize("size", [10_000, 60_000])
def test_images_of_too_many_pixels_are_refused_before_they_are_decoded(tmp_path: Path, size: int) -> None:
    tifffile = pytest.importorskip("tifffile")
    (tmp_path / "a.png").write_bytes(png(size, size))
    with pytest.raises(DataError, match=r"a\.png as PNG: it has more than 89478485 pixels"):
        read_image(tmp_path / "a.png")
    out = io.BytesIO()
    tifffile.imwrite(out, np.zeros((2, 3), np.uint8), metadata=None)
    content = bytearray(out.getvalue())
    for tag in (256, 257):  # the width and the height, which are stored in the entry of the tag
        at = content.index(struct.pack("<HHI", tag, 4, 1)) if struct.pack("<HHI", tag, 4, 1) in content else -1
        at = at if at >= 0 else content.index(struct.pack("<HHI", tag, 3, 1))
        content[at : at + 12] = struct.pack("<HHII", tag, 4, 1, size)
    (tmp_path / "a.tif").write_bytes(bytes(content))
    with pytest.raises(DataError, match=rf"a\.tif as TIFF: it has {size} by {size} pixels, and at most 89478485"):
        read_image(tmp_path / "a.tif")


def test_an_image_of_more_pixels_than_its_file_can_hold_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(9, 4_000_000))
    with pytest.raises(
        DataError, match=r"it is damaged: it states 9 by 4000000 pixels, which its file is too short for"
    ):
        read_image(tmp_path / "a.png")


def test_an_image_without_pixels_is_refused(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    out = io.BytesIO()
    tifffile.imwrite(out, np.zeros((2, 3), np.uint8), metadata=None)
    content = out.getvalue()
    entry = next(e for e in (struct.pack("<HHI", 257, kind, 1) for kind in (3, 4)) if e in content)
    at = content.index(entry)
    (tmp_path / "a.tif").write_bytes(content[:at] + struct.pack("<HHII", 257, 4, 1, 0) + content[at + 12 :])
    with pytest.raises(DataError, match=r"cannot read .*a\.tif as TIFF"):
        read_image(tmp_path / "a.tif")


def test_messages_about_files_are_one_short_line(tmp_path: Path) -> None:
    assert str(DataError("a\nb\r\nc")) == "a b c"
    (tmp_path / "config.json").write_text(json.dumps({"schema": 2, "dataset": "x" * 10**6, "recipe": 1}))
    with pytest.raises(DataError) as refused:
        read_config(tmp_path / "config.json")
    assert len(str(refused.value)) < 1000
