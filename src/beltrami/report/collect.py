"""The folder of a trained run as the data of its report, and explanations of its predictions on demand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from time import perf_counter

from beltrami.arguments import AnyPath, DeviceName, checked
from beltrami.data import Progress
from beltrami.errors import DataError
from beltrami.model import BLEND
from beltrami.model.linear_diffusion import LinearDiffusion
from beltrami.predict.shares import Explanation
from beltrami.predict.trained_models import fitting_threads
from beltrami.report.explanation import METHODS
from beltrami.report.flow_data import ShownModel, pictures, scores_along
from beltrami.report.listed_nodes import suspicious, uncertain
from beltrami.report.run_data import Reasons, RunData, Share
from beltrami.run_folder import RESULTS, is_finished
from beltrami.train import predict

Baselines = Sequence[tuple[str, float, float | None]]
SHARES = 8  # nodes, and edges, of an explanation
SECONDS = 6.0  # for explanations
FLOW_COST, NETWORK_COST = 6, 60  # of an explanation, in predictions: one backward solve, or integrated gradients
STEPS = ("reading the run", "following the flow", "fitting baselines", "explaining predictions")


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A trained run in memory.

    Args:
        base: its data, without the flow, the baselines and the explanations.
        shown: the model whose flow is drawn.
        explanation: from a node to the explanation of its prediction.
        baselines: computes the scores of other models.
    """

    base: RunData
    shown: ShownModel
    explanation: Callable[[int], Explanation]
    baselines: Callable[[], Baselines]

    @staticmethod
    @checked
    def load(folder: AnyPath, *, device: DeviceName = "cpu", progress: Progress | None = None) -> "LoadedRun":
        """Return the run in a folder that ``beltrami train`` wrote; one that is damaged or not finished is refused."""
        from beltrami.report.collect_predictor import read_predictor
        from beltrami.report.collect_recipe import read_recipe

        found = Path(folder)
        _show(progress, 0)
        if not found.is_dir():
            raise DataError(f"{folder} is no folder: name the folder that `beltrami train` wrote.")
        if not is_finished(found):
            remedy = "go on with it by `beltrami train ... --resume`, or name the folder of a finished `beltrami train`"
            raise DataError(f"{folder} holds no finished run: {remedy}.")
        read = read_recipe if (found / RESULTS[0]).exists() else read_predictor
        return LoadedRun(*read(found, shown_as=str(folder), device=device))

    def data(self, *, seconds: float = SECONDS, progress: Progress | None = None) -> RunData:
        """Return the data of the report; explanations take ``seconds``, 0 for none."""
        data = self.with_flow(progress=progress)
        with fitting_threads(len(self.base.nodes.ids)):
            return self._with_baselines(data, seconds, progress)

    def with_flow(self, *, progress: Progress | None = None) -> RunData:
        """Return the data with the flow, without baselines and explanations."""
        with fitting_threads(len(self.base.nodes.ids)):
            return self._with_flow(progress)

    def _with_flow(self, progress: Progress | None) -> RunData:
        _show(progress, 1)
        data, flow = self.base, self.shown.flow()
        if flow is None:
            return replace(data, along=scores_along(self.shown))
        start = perf_counter()
        stats = flow.solve()
        solver = {
            "accepted steps": float(stats.accepted),
            "rejected steps": float(stats.rejected),
            "evaluations of f": float(stats.evaluations),
            "seconds of a solve": perf_counter() - start,
        }
        along, frames, weights, notes = pictures(self.shown, flow)
        notes = [*data.notes, *notes]
        return replace(data, along=along, flow=frames, weights=weights, solver=solver | dict(data.solver), notes=notes)

    def _with_baselines(self, data: RunData, seconds: float, progress: Progress | None) -> RunData:
        _show(progress, 2)
        data = replace(data, baselines=self.baselines())
        _show(progress, 3)
        reasons, listed = self._reasons(data, seconds)
        if seconds > 0 and len(reasons) < listed:
            data = replace(
                data, notes=[*data.notes, f"Within the time, {len(reasons)} of {listed} nodes are explained."]
            )
        return replace(data, reasons=reasons)

    def explain(self, node: int) -> Reasons:
        """Return from which nodes, and along which edges, the prediction at a node came."""
        if not 0 <= node < len(self.base.nodes.ids):
            raise ValueError(f"`node` must be from 0 to {len(self.base.nodes.ids) - 1}; got {node}.")
        found, names, unit = self.explanation(node), self.base.names, self.shown.scale
        method = METHODS[found.method]
        if self.base.kind == "numbers":
            method += f"; in the units of the label, from the mean of the training labels, {self.shown.centre:.4g}"
        return Reasons(
            node=node,
            predicted=names[found.predicted],
            other="" if found.other is None else names[found.other],
            margin=unit * found.margin,
            method=method,
            nodes=[Share(each.node, unit * each.share) for each in found.top_nodes(SHARES)],
            edges=[Share(each.j, unit * each.share, each.i) for each in found.top_edges(SHARES)],
        )

    def _reasons(self, data: RunData, seconds: float) -> tuple[dict[int, Reasons], int]:
        """Return explanations of the nodes that the report lists, the first of both lists first, and how many it lists;
        the time may end before the list."""
        stop, lists = perf_counter() + seconds, (uncertain(data).tolist(), suspicious(data).tolist())
        listed = dict.fromkeys(node for pair in zip_longest(*lists) for node in pair if node is not None)
        found: dict[int, Reasons] = {}
        if self._explanation_seconds() > seconds:
            return found, len(listed)
        for node in listed:
            if perf_counter() > stop:
                break
            found[node] = self.explain(node)
        return found, len(listed)

    def _explanation_seconds(self) -> float:
        """Return about how long an explanation takes, from the time of a prediction."""
        start = perf_counter()
        predict(self.shown.model, self.shown.inputs, time=self.shown.time)
        flow = isinstance(self.shown.model, BLEND | LinearDiffusion)
        return (perf_counter() - start) * (FLOW_COST if flow else NETWORK_COST)


def _show(progress: Progress | None, step: int) -> None:
    if progress is not None:
        progress(STEPS[step], step, len(STEPS))
