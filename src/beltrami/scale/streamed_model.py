"""Make a model and a graph folder ready for training in blocks."""

import numpy as np

from beltrami.arguments import Count, DeviceName, checked
from beltrami.data.graph_folder import GraphFolder
from beltrami.errors import DataError
from beltrami.model import BLEND
from beltrami.model.coder import Encoder
from beltrami.scale.frozen_flow import MORE_TERMS
from beltrami.scale.streamable import check_folder_inputs, pair_of
from beltrami.scale.streamed_blend import StreamedBlend
from beltrami.scale.streamed_inputs import FlowSizes, StreamedInputs, plan_training


@checked
def open_streamed(
    model: BLEND,
    folder: GraphFolder,
    *,
    memory: int | None = None,
    device: DeviceName = "cpu",
    val_times: Count = 1,
    labelled_nodes: int = 0,
) -> tuple[StreamedBlend, StreamedInputs]:
    """Return a model that is computed in blocks, and its inputs, for the functions of :mod:`beltrami.train`.

    The graph must have both directions of every edge. All values of the folder are read once, to verify them.

    Args:
        model: BLEND with a frozen flow, on the device; the result shares its weights.
        folder: a graph with features, and positions if the model takes them.
        memory: bytes on the device, within which all tensors are kept; None for most of the free memory. On the
            CPU, tensors in temporary files do not count.
        device: where to compute.
        val_times: times at which validation evaluates the model.
        labelled_nodes: training nodes or validation nodes, whichever are more.
    """
    streamed = StreamedBlend(model)
    check_folder_inputs(model, folder)
    folder.verify()
    folder.verify_rows("x", "pos")
    dtype = next(model.parameters()).dtype
    sizes = _sizes(model, streamed, (val_times, labelled_nodes, model.num_classes))
    plan, on_device = plan_training(np.asarray(folder.ptr), sizes, dtype=dtype, memory=memory, device=device)
    inputs = StreamedInputs(
        folder,
        plan,
        columns=sizes.columns,
        inputs=sizes.inputs,
        states_on_device=on_device,
        dtype=dtype,
        device=device,
    )
    forward, backward = inputs.hashes
    if forward != backward:
        raise DataError(
            f"{folder.path} is directed, and training in blocks needs both directions of every edge: write the graph "
            "again with `beltrami convert`, which adds them."
        )
    return streamed, inputs


def _sizes(model: BLEND, streamed: StreamedBlend, outputs: tuple[int, int, int]) -> FlowSizes:
    pair = pair_of(model) if streamed.learned else None
    encoders = [each for each in (model.psi, model.phi) if isinstance(each, Encoder)]
    inputs = sum(each.linear.in_features + each.linear.out_features for each in encoders)
    return FlowSizes(
        columns=model.xi.linear.in_features,
        terms=streamed.solver.terms(model.time) + MORE_TERMS,
        heads=0 if pair is None else pair.p.shape[1],
        width=0 if pair is None else pair.p.shape[2],
        inputs=inputs,
        outputs=outputs,
    )
