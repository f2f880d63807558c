"""The figures of the paper's tables, as printed."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

THREE = ("cora", "citeseer", "pubmed")
SIX = (*THREE, "coauthor-cs", "computers", "photo")
SEVEN = (*SIX, "ogbn-arxiv")
PRINTED = {"paper": "blend", "paper-knn": "blend-knn"}  # the printed rows of methods with other names


@dataclass(frozen=True)
class PrintedNumber:
    """A printed number and its printed standard deviation."""

    value: float
    deviation: float | None = None

    def __str__(self) -> str:
        value = f"{self.value:,.0f}" if self.value >= 1000 else f"{self.value}"
        return value if self.deviation is None else f"{value} ± {self.deviation}"


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper."""

    label: str  # its place in the paper
    rows: Mapping[str, Mapping[str, PrintedNumber]]  # its figures by our name of the method and by dataset

    def figure(self, method: str, dataset: str) -> PrintedNumber | None:
        return self.rows.get(PRINTED.get(method, method), {}).get(dataset)


def _table(text: str) -> PaperTable:
    """Parse a table as printed: its place in the paper, a line of datasets, and rows in which ``-`` is no figure."""
    label, header, *lines = text.splitlines()
    rows = {}
    for name, *words in map(str.split, lines):
        figures = zip(header.split(), words, strict=True)
        rows[name] = {dataset: PrintedNumber(*map(float, word.split("±"))) for dataset, word in figures if word != "-"}
    return PaperTable(label, MappingProxyType(rows))


PLANETOID = _table("""Table 2
               cora      citeseer  pubmed
gcn            81.9±0.8  69.5±0.9  79.0±0.5
gat            82.8±0.5  71.0±0.6  77.0±1.3
monet          82.2±0.7  70.0±0.6  77.7±0.6
sage-maxpool   77.4±1.0  67.0±1.0  76.6±0.8
lanczosnet     79.5±1.8  66.2±1.9  78.3±0.3
adalanczosnet  80.4±1.1  68.7±1.0  78.1±0.4
cgnn           81.7±0.7  68.1±1.2  80.2±0.3
gde            83.8±0.5  72.5±0.5  79.9±0.3
gode           83.3±0.3  72.4±0.6  80.1±0.3
blend          84.2±0.6  74.4±0.7  80.7±0.7
blend-knn      83.1±0.8  73.3±0.9  81.5±0.5""")
RANDOM = _table("""Table 3
              cora      citeseer  pubmed    coauthor-cs  computers  photo     ogbn-arxiv
gcn           81.5±1.3  71.9±1.9  77.8±2.9  91.1±0.5     82.6±2.4   91.2±1.2  71.74±0.29
gat           81.8±1.3  71.4±1.9  78.7±2.3  90.5±0.6     78.0±19    85.7±20   73.01±0.19
gat-ppr       81.6±0.3  68.5±0.2  76.7±0.3  91.3±0.1     85.4±0.3   90.9±0.3  -
monet         81.3±1.3  71.2±2.0  78.6±2.3  90.8±0.6     83.5±2.2   91.2±2.3  -
sage-mean     79.2±7.7  71.6±1.9  77.4±2.2  91.3±2.8     82.4±1.8   91.4±1.3  71.49±0.27
sage-maxpool  76.6±1.9  67.5±2.3  76.1±2.3  85.0±1.1     -          90.4±1.3  -
cgnn          81.4±1.6  66.9±1.8  66.6±4.4  92.3±0.2     80.3±2.0   91.4±1.5  58.70±2.50
gde           78.7±2.2  71.8±1.1  73.9±3.7  91.6±0.1     82.9±0.6   92.4±2.0  56.66±10.9
blend         84.8±0.9  75.9±1.3  79.5±1.4  92.9±0.2     86.9±0.6   92.9±0.6  72.56±0.1
blend-knn     82.5±0.9  73.4±0.5  80.9±0.7  92.3±0.1     86.7±0.6   93.5±0.3  -""")
ATTENTION = _table("""the appendix's table of attention functions
            cora      citeseer  pubmed    coauthor-cs  computers  photo
cosine      83.8±0.5  73.5±1.1  79.0±2.3  92.8±0.1     84.8±0.7   93.2±0.4
exp-kernel  83.6±1.8  75.0±1.3  79.9±1.4  92.8±0.2     84.8±0.5   93.2±0.5
pearson     83.7±1.5  75.2±1.3  80.0±1.2  92.8±0.2     84.8±0.5   93.5±0.3
scaled-dot  84.8±0.9  75.9±1.3  79.5±1.4  92.9±0.2     86.9±0.6   92.9±0.6""")
TRAINING = _table("""the appendix's table of training times, on a Tesla K80
           cora   citeseer  pubmed  coauthor-cs  computers  photo
blend      26.79  27.74     168.71  183.29       230.20     69.85
blend-knn  44.65  83.84     387.86  216.94       157.77     73.86
gat        1.68   1.76      9.85    18.96        27.12      10.65""")
INFERENCE = _table("""the appendix's table of inference times, on a Tesla K80
           cora    citeseer  pubmed  coauthor-cs  computers  photo
blend      0.0712  0.0878    0.2955  0.449        0.4603     0.2071
blend-knn  0.114   0.2458    0.9463  0.4945       0.3029     0.2246
gat        0.0031  0.0039    0.0070  0.0326       0.0165     0.0093""")
PARAMETERS = _table("""Section 5.1
           ogbn-arxiv
gcn        143000
sage-mean  219000
gat        1630000
blend      70000""")
