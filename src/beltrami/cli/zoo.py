"""The command ``zoo``."""


def zoo() -> None:
    """Print the paper's Table 1 from the code: each network as a flow on a graph by a scheme, and how to train it.

    `beltrami train cora --recipe gat-flow` trains the second row, and so on by the names of the last column.
    """
    from beltrami.model.zoo import TABLE
    from beltrami.report.terminal import print_zoo

    print_zoo(TABLE)
