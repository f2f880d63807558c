"""Training on several processes with the numbers of one: parts of the nodes, their exchanges, and the parted model."""

from beltrami.distributed.parted_model import PartedModel
from beltrami.distributed.partition import check_partition, greedy_partition, partition_nodes, read_partition
from beltrami.distributed.workers import WorkerLost, Workers, join_workers

__all__ = [
    "PartedModel", "Workers", "WorkerLost", "join_workers",
    "partition_nodes", "greedy_partition", "read_partition", "check_partition",
]  # fmt: skip
