"""The command line on a user's own graph: train, check, predict and explain, and every refusal."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from own_graph import two_groups
from shell import Beltrami, Outcome

from beltrami.auto.fit_graph import fit_graph
from beltrami.cli.graph_options import read_duration
from beltrami.data.graph_reader import read_graph
from beltrami.data.graph_table import GraphTable

NODES = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a graph of two rings: a class and a number that follow a column, 50 of 60 nodes labelled."""
    folder = tmp_path_factory.mktemp("rings") / "rings"
    folder.mkdir()
    half, rows, edges = NODES // 2, ["name,height,colour,kind,price,part"], ["source,target"]
    random = np.random.RandomState(0)
    for node in range(NODES):
        kind, known = node // half, node % 6 > 0
        fields = [f"n{node}", f"{kind + random.rand():.3f}", "red" if node % 2 else "blue"]
        part = ("train", "val", "test", "calibration")[node % 4]
        fields += ["[odd]" if kind else "even", f"{10 * kind + node / 100:.2f}"] if known else ["", ""]
        rows.append(",".join([*fields, part]))
        edges.append(f"n{node},n{kind * half + (node + 1) % half}")
    edges.append("n0,stranger")
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    (folder / "edges.csv").write_text("\n".join(edges) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a predictor of the class, with 19 calibration nodes."""
    folder = tmp_path_factory.mktemp("run")
    table = read_graph(files, label="kind", features="height")
    fit_graph(table, fast=True, calibration=0.4).save(folder)
    return folder


def check_refused(outcome: Outcome, match: str, *, code: int = 2) -> None:
    """One line on the error stream, none on the other."""
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith("beltrami: ")
    assert outcome.err.count("\n") == 1
    assert re.search(match, outcome.err), outcome.err


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("1h", 3600), ("90", 90), ("1.5m", 90), (" 2 H", 7200)]
)
def test_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "fast", "-1s", "0", "5 days", "1m30s", "inf", "nan"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"`--budget` takes a time such as 60s, 5m or 1h; got"):
        read_duration(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("train", ["--nodes", "--edges", "--label", "--id", "--features", "--weight", "--split-column", "--task"]),
        ("train", ["--budget", "--fast", "--average", "--balanced", "--calibration", "--check", "SOURCE"]),
        ("predict", ["RUN", "SOURCE", "--nodes", "--edges", "--out", "--coverage", "--no-sets", "--device"]),
        ("explain", ["RUN", "NODE", "--top"]),
    ],
)
def test_help_names_the_options_for_own_graphs(beltrami: Beltrami, verb: str, words: list[str]) -> None:
    outcome = beltrami(verb, "--help")
    assert outcome.code == 0
    assert [word for word in words if word not in outcome.out] == []


def test_check_prints_what_was_understood_and_trains_nothing(beltrami: Beltrami, files: Path, tmp_path: Path) -> None:
    outcome = beltrami("train", str(files), "--label", "kind", "--check")
    assert (outcome.code, outcome.err) == (0, "")
    for line in (
        r"nodes +60",
        r"edges +60",
        r"components +2, the largest of 30 nodes",
        r"isolated nodes +0",
        r"edges to unknown ids dropped +1",
        r"edges.csv, line 62: 'stranger' is no node",
        r"height +numbers +0 +1 +scaled",
        r"colour +words +0 +2 +one feature for each word",
        r"task +classes",
        r"labelled nodes +50 of 60, 83.3%",
        r"edge homophily +100.0% of 40 edges",
        r"\[odd\] +25",
        r"training +50 nodes, cross-validated in 5 folds",
        r"calibration +none",
        r"time +up to about 62 s",
        r"memory +about 0\.\d GiB",
    ):
        assert re.search(line, outcome.out), (line, outcome.out)
    assert list(tmp_path.iterdir()) == []


def test_check_of_a_graph_without_labels_says_what_is_missing(beltrami: Beltrami, files: Path) -> None:
    outcome = beltrami("train", "--edges", str(files / "edges.csv"), "--check", "--fast")
    assert outcome.code == 0
    assert "no label column was found: name it with --label" in outcome.out
    assert "every node has a feature of its own" in outcome.out


def test_check_states_the_split_of_a_column_and_of_the_options(beltrami: Beltrami, files: Path) -> None:
    named = beltrami("train", str(files), "--label", "price", "--split-column", "part", "--check")
    assert re.search(r"task +numbers", named.out)
    assert re.search(r"test +\d+ nodes", named.out)
    drawn = beltrami("train", str(files), "--label", "kind", "--calibration", "0.4", "--check")
    assert re.search(r"calibration +20 nodes", drawn.out)


@pytest.mark.slow
def test_files_become_predictions_and_an_explanation(beltrami: Beltrami, files: Path, tmp_path: Path) -> None:
    trained = beltrami("train", str(files), "--label", "kind", "--id", "name", "--fast", "--calibration", "0.4")
    assert (trained.code, trained.err) == (0, "")
    lines = trained.out.splitlines()
    assert lines[0] == "rings: 60 nodes, 60 edges, 50 labelled with 2 classes; 1 row dropped, see --check"
    for line in (
        r"^logistic regression +\d+\.\d% +\d+\.\d  the features, without the graph",
        r"^label propagation +\d+\.\d%",
        r"^linear diffusion +\d+\.\d% +\d+\.\d  a linear model of diffused features \(time \d",
        r"^chosen: linear diffusion",
        r"^labels +30 in 5 folds of cross-validation, 20 calibrate",
        r"^temperature +\d",
    ):
        assert re.search(line, trained.out, flags=re.MULTILINE), (line, trained.out)
    assert lines[-2:] == [
        "saved in runs/rings, with the predictions in predictions.csv",
        "next: beltrami explain runs/rings n0",
    ]
    assert [row["set_size"] for row in rows_of(tmp_path / "runs" / "rings" / "predictions.csv")]
    predicted = beltrami("predict", "runs/rings", "--out", "predictions.csv", "--coverage", "0.8")
    assert (predicted.code, predicted.err) == (0, "")
    rows = rows_of(tmp_path / "predictions.csv")
    assert [row["id"] for row in rows] == [f"n{node}" for node in range(NODES)]
    assert rows[0].keys() == {"id", "prediction", "probability", "p_[odd]", "p_even", "set", "set_size", "reached"}
    counts = {name: sum(row["prediction"] == name for row in rows) for name in ("[odd]", "even")}
    for name, count in counts.items():
        assert re.search(rf"^  {re.escape(name)} +{count}$", predicted.out, flags=re.MULTILINE), predicted.out
    assert "at coverage 0.8 from 20 calibration labels" in predicted.out
    assert json.loads((tmp_path / "predictions.json").read_text())["coverage"]["calibration_labels"] == 20
    explained = beltrami("explain", "runs/rings", "n0", "--top", "2")
    assert (explained.code, explained.err) == (0, "")
    assert explained.out.startswith(f"n0: {rows[0]['prediction']}")
    again = beltrami("predict", "runs/rings", str(files), "--out", "new.csv")  # finds the id column that was named
    assert again.code == 0
    assert [row["id"] for row in rows_of(tmp_path / "new.csv")] == [row["id"] for row in rows]


@pytest.mark.slow
def test_training_tries_the_portfolio_within_the_budget(beltrami: Beltrami, files: Path) -> None:
    arguments = ("--nodes", str(files / "nodes.csv"), "--edges", str(files / "edges.csv"), "--label", "kind")
    outcome = beltrami("train", *arguments, "--features", "height", "--budget", "1s", "--balanced")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count("balanced accuracy") == 2
    for name in ("network", "uniform", "cosine", "attention", "similarity-weights", "similarity-edges", "far"):
        assert re.search(rf"^{name} +(\d+\.\d%|-) +\d+\.\d  ", outcome.out, flags=re.MULTILINE), outcome.out
    assert "No labels were set aside for calibration, as they are few: no sets are given." in outcome.out
    assert "saved in runs/rings" in outcome.out


@pytest.mark.slow
def test_numbers_are_reported_in_the_units_of_the_labels(beltrami: Beltrami, files: Path) -> None:
    arguments = ("--label", "price", "--features", "height", "--split-column", "part", "--fast", "--out", "here")
    outcome = beltrami("train", str(files), *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert "error on the validation nodes, in standard deviations:" in outcome.out
    first = re.search(r"^ridge regression +([\d.]+) +[\d.]+  the features", outcome.out, flags=re.MULTILINE)
    later = re.search(r"^ridge regression +([\d.]+) +([\d.]+)\s*$", outcome.out, flags=re.MULTILINE)
    record = json.loads((Path("here") / "predictor.json").read_text())
    scale = record["calibration"]["scale"][0]
    assert first
    assert later
    assert float(later[1]) == pytest.approx(scale * float(first[1]), rel=1e-2)
    predicted = beltrami("predict", "here", "--out", "p.tsv", "--no-sets")
    assert re.match(r"60 numbers from \S+ to \S+, median", predicted.out)
    assert rows_of(Path("p.tsv"), delimiter="\t")[0].keys() == {"id", "prediction", "reached"}
    assert "in standard deviations of the labels" in beltrami("explain", "here", "n1").out


@pytest.mark.slow
def test_recipe_auto_trains_on_a_dataset(beltrami: Beltrami) -> None:
    outcome = beltrami("train", "digits", "--recipe", "auto", "--fast", "--calibration", "0.1")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(r"^linear diffusion +\d+\.\d% +\d+\.\d%\s*$", outcome.out, flags=re.MULTILINE)
    assert "beltrami explain runs/digits-auto-0" in outcome.out


@pytest.mark.slow
def test_new_graph_has_predictions_without_sets(beltrami: Beltrami, run: Path, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,height\na,0.1\nb,1.9\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    outcome = beltrami("predict", str(run), "--nodes", "nodes.csv", "--edges", "edges.csv", "--out", "new.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert "its coverage is not guaranteed, and no sets are given" in outcome.out
    assert [row["id"] for row in rows_of(tmp_path / "new.csv")] == ["a", "b"]
    assert "set" not in rows_of(tmp_path / "new.csv")[0]


@pytest.mark.slow
def test_columns_named_in_training_are_found_again(beltrami: Beltrami, tmp_path: Path) -> None:
    rows = [f"{k},p{k},{k / 20},{'uv'[k // 10]}" for k in range(20)]
    (tmp_path / "people.csv").write_text("\n".join(["number,person,age,group", *rows]))
    (tmp_path / "calls.csv").write_text("\n".join(["a,b,minutes", *(f"p{k},p{k + 1},2" for k in range(19))]))
    tables = ("--nodes", "people.csv", "--edges", "calls.csv")
    named = ("--label", "group", "--id", "person", "--features", "age", "--weight", "minutes")
    assert beltrami("train", *tables, *named, "--fast").code == 0
    outcome = beltrami("predict", "runs/people", *tables, "--out", "p.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert rows_of(tmp_path / "p.csv")[3]["id"] == "p3"
    check_refused(beltrami("predict", "runs/people", *tables[:2], "--out", "p.csv"), r"has no edges.*give `--edges`")
    check_refused(beltrami("predict", "runs/people", *tables[2:], "--out", "p.csv"), r"column 'age'")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["my"], r"unknown dataset 'my': .*Known: actor.* There is no file or folder my either"),
        (["my/"], r"there is no file or folder my/: check its path, or name a dataset, one of digits, cora"),
        (["my.csv"], r"there is no file or folder my.csv: check its path, or name a dataset"),
        (["rings", "--nodes", "nodes.csv"], r"rings is given beside `--nodes` or `--edges`: give one or the other"),
        (["digits", "--label", "kind"], r"`--label` is for a graph of your own: leave it out for the dataset digits"),
        (["--label", "kind"], r"`--label` is for a graph of your own: name your folder or file, or give `--nodes`"),
        (["digits", "--task", "classes"], r"`--task` is for a graph of your own"),
        (["digits", "--split-column", "part"], r"`--split-column` is for a graph of your own"),
        (["digits", "--balanced", "--recipe", "auto"], r"`--balanced` is for a graph of your own"),
        (["digits", "--budget", "60s"], r"`--budget` is for the recipe auto: add `--recipe auto`"),
        (["digits", "--fast"], r"`--fast` is for the recipe auto"),
        (["digits", "--average"], r"`--average` is for the recipe auto"),
        (["digits", "--calibration", "0"], r"`--calibration` is for the recipe auto"),
        (
            ["digits", "--recipe", "auto", "--compare", "2"],
            r"`--compare` is for a single recipe, and auto tries several",
        ),
        (["digits", "--recipe", "auto", "--set", "train.epochs=2"], r"`--set` is for a single recipe"),
        (["digits", "--recipe", "auto", "--seed", "-1"], r"`--seed` must be from 0"),
    ],
)
def test_sources_and_options_that_do_not_fit_are_refused(beltrami: Beltrami, arguments: list[str], match: str) -> None:
    check_refused(beltrami("train", *arguments), match)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--recipe", "blend"], r"`--recipe blend` is for datasets: a graph of your own is trained by auto"),
        (["--set", "train.epochs=2"], r"`--set` is for datasets, and this is a graph of your own: leave it out"),
        (["--split", "shchur"], r"`--split` is for datasets"),
        (["--split-seed", "0"], r"`--split-seed` is for datasets"),
        (["--log", "log.jsonl"], r"`--log` is for datasets"),
        (["--compare", "2"], r"`--compare` is for datasets"),
        (["--budget", "soon"], r"`--budget` takes a time such as 60s, 5m or 1h; got 'soon'"),
        (["--budget", "60s", "--fast"], r"`--fast` trains no portfolio and takes no `--budget`"),
        (["--average", "--fast"], r"`--fast` trains one model, and `--average` averages several"),
        (["--calibration", "1"], r"`--calibration` takes a share from 0 to below 1; got 1"),
        (["--seed", "-1"], r"`--seed` must be from 0"),
        (["--device", "tpu"], r"`--device` takes cpu, cuda or cuda:N; got 'tpu'"),
        ([], r"no label column was found: name it with `--label`"),
        (["--label", "kin"], r"unknown column 'kin': did you mean 'kind'\?"),
        (["--label", "kind", "--id", "nam"], r"unknown column 'nam': did you mean 'name'\?"),
        (["--label", "kind", "--features", "hight"], r"unknown column 'hight': did you mean 'height'\?"),
        (["--label", "kind", "--weight", "w"], r"unknown column 'w'"),
        (["--label", "kind", "--split-column", "prt"], r"unknown column 'prt': did you mean 'part'\?"),
        (["--label", "kind", "--split-column", "colour"], r"the split column names no labelled node `train`"),
        (["--label", "kind", "--task", "clases"], r"unknown task 'clases': did you mean 'classes'\?"),
        (["--label", "kind", "--task", "numbers"], r"'kind' holds words where `--task numbers` needs numbers"),
        (["--label", "price", "--balanced"], r"`balanced` weights classes, and the task is numbers"),
        (["--label", "kind,price", "--task", "classes"], r"2 label columns cannot hold one class"),
    ],
)
def test_options_that_do_not_fit_an_own_graph_are_refused(
    beltrami: Beltrami, files: Path, arguments: list[str], match: str, tmp_path: Path
) -> None:
    check_refused(beltrami("train", str(files), *arguments), match)
    assert list(tmp_path.iterdir()) == []


def test_one_class_is_refused_by_training_and_by_check(beltrami: Beltrami, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,x,class\na,1,u\nb,2,u\nc,3,\n")
    for check in ([], ["--check"]):
        check_refused(beltrami("train", "nodes.csv", *check), r"all labels are 'u': at least two classes are needed")


def test_bad_file_is_one_line_with_its_place(beltrami: Beltrami, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,x,class\na,1,u\na,2,v\n")
    check_refused(beltrami("train", "nodes.csv"), r"nodes.csv, line 3: the id 'a' .* already on line 2", code=1)
    (tmp_path / "graph.txt.gz").write_bytes(b"")
    check_refused(beltrami("train", "graph.txt.gz"), r"has the extension '.gz': a graph is read from", code=1)


@pytest.mark.parametrize(
    ("arguments", "match", "code"),
    [
        (["--out", "p.xlsx"], r"cannot be written to p.xlsx: its extension must be .csv, .tsv, .parquet", 2),
        (["--out", "p.csv", "--coverage", "1.5"], r"`--coverage` must lie between 0 and 1, both excluded; got 1.5", 2),
        (["--out", "p.csv", "--coverage", "0.9", "--no-sets"], r"`--no-sets` leaves them out: give one of them", 2),
        (["--out", "p.csv", "--coverage", "0.99"], r"a coverage of 0.99 needs at least 99 calibration labels", 2),
        (["new.csv", "--nodes", "new.csv", "--out", "p.csv"], r"new.csv is given beside `--nodes`", 2),
        (["--nodes", "new.csv", "--out", "./new.csv"], r"`--out new.csv` would replace a file of the graph", 2),
        (["new.csv", "--out", "p.csv"], r"the nodes have no column 'height', which the model was trained on", 2),
        (["nowhere.csv", "--out", "p.csv"], r"there is no file or folder nowhere.csv", 1),
        (["--out", "p.csv", "--device", "tpu"], r"`--device` takes cpu", 2),
    ],
)
def test_predictions_that_cannot_be_made_are_refused_and_write_nothing(
    beltrami: Beltrami, run: Path, tmp_path: Path, arguments: list[str], match: str, code: int
) -> None:
    (tmp_path / "new.csv").write_text("id,weight\na,1\nb,2\n")
    check_refused(beltrami("predict", str(run), *arguments), match, code=code)
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


@pytest.mark.slow
def test_coverage_without_calibration_labels_is_refused(beltrami: Beltrami, tmp_path: Path) -> None:
    columns = {"x": [0.0, 0.1, 0.9, 1.0]}
    fit_graph(small_table(columns, "uuvv"), fast=True).save(tmp_path / "run")
    check_refused(
        beltrami("predict", "run", "--out", "p.csv", "--coverage", "0.8"),
        r"`--coverage 0.8` needs labels that were set aside for calibration, and run has none: train with more labels",
    )
    outcome = beltrami("predict", "run", "--out", "p.csv")
    assert outcome.code == 0
    assert "no sets are given" in outcome.out


def test_explanation_of_no_node_is_refused(beltrami: Beltrami, run: Path) -> None:
    check_refused(beltrami("explain", str(run), "n99"), r"the graph has no node 'n99': its first ids are n0, n1, n2")
    check_refused(beltrami("explain", str(run), "n1", "--top", "0"), r"`--top` must be at least 1; got 0")


def test_folder_without_a_predictor_is_one_line_and_exit_code_1(beltrami: Beltrami) -> None:
    for verb in (["predict", "nowhere", "--out", "p.csv"], ["explain", "nowhere", "n1"]):
        check_refused(beltrami(*verb), r"nowhere has no predictor.json", code=1)


def small_table(columns: dict[str, list[float]], labels: str) -> GraphTable:
    """Return a path through nodes with these columns and one-letter labels."""
    from beltrami.data.table import Numbers, Words

    names = sorted({*labels})
    label = Words(np.array([names.index(each) for each in labels]), names)
    return GraphTable(
        "path",
        [f"n{k}" for k in range(len(labels))],
        columns={name: Numbers(np.array(values)) for name, values in columns.items()},
        labels={"class": label},
    )


@pytest.mark.slow
def test_training_with_few_calibration_labels_writes_predictions_without_sets(
    beltrami: Beltrami, tmp_path: Path
) -> None:
    graph = two_groups()
    graph.add("part", lambda k: "calibration" if k < 5 else "train")
    graph.write(tmp_path / "groups")
    assert beltrami("train", "groups", "--split-column", "part", "--fast").code == 0
    rows = rows_of(tmp_path / "runs" / "groups" / "predictions.csv")
    assert len(rows) == 40
    assert "set" not in rows[0]
    check_refused(
        beltrami("predict", "runs/groups", "--out", "p.csv"), "needs at least 9 calibration labels; there are 5"
    )
