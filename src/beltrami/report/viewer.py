"""The flow viewer of a page: the nodes move from z(0) to z(T) in a picture that WebGL2 draws."""

from beltrami.report.markup import json_block, text
from beltrami.report.page_shell import asset
from beltrami.report.run_data import FlowData, RunData
from beltrami.report.still_picture import still_picture
from beltrami.report.viewer_data import viewer_data

SCRIPTS = ("viewer-data.js", "viewer-shaders.js", "viewer-draw.js", "viewer-details.js", "viewer.js")
MODES = {
    "classes": {
        "label": "class",
        "predicted": "predicted class",
        "confidence": "confidence",
        "error": "right or wrong",
    },
    "labels": {"predicted": "likeliest label", "confidence": "its probability", "error": "right or wrong"},
    "numbers": {"label": "label", "predicted": "prediction", "error": "size of the error"},
}
KEYS = {
    "Space": "plays",
    ", .": "step in time",
    "arrow keys": "move the picture",
    "+ \u2212 0": "zoom",
    "Esc": "closes a node",
}
CONTROLS = """<div class="only-live"><div class="viewer">
<div class="card">
<div class="stage"><canvas tabindex="0" role="application" aria-label="Picture of the flow"
aria-describedby="flow-says"></canvas>
<svg class="lasso" aria-hidden="true"><polygon points=""/></svg><div class="tip" aria-hidden="true" hidden></div>
<div class="zoom"><button type="button" class="zoom-in" aria-label="Zoom in">+</button>
<button type="button" class="zoom-out" aria-label="Zoom out">\u2212</button>
<button type="button" class="reset" aria-label="Show everything">all</button></div></div>
<div class="bar"><button type="button" class="play">Play</button>
<input type="range" id="viewer-time" aria-label="Time" min="0" max="100" value="0">
<output class="time-said" for="viewer-time"></output></div>
<div class="tools"><label>Colour <select id="viewer-colour">{modes}</select></label>
<label>Edges <input type="range" id="viewer-edges" aria-label="Edges" min="0" max="100">
<span class="edges-said"></span></label>
<div class="search"><input type="search" id="viewer-search" placeholder="Find a node" aria-label="Find a node"
role="combobox" aria-expanded="false" aria-controls="viewer-matches" aria-autocomplete="list" autocomplete="off">
<ul id="viewer-matches" role="listbox" aria-label="Nodes" hidden></ul></div>
<button type="button" class="lasso-button" aria-pressed="false">Lasso</button>
<button type="button" class="select-view">Select all in view</button>
<div class="selection" hidden><span class="count"></span>
<button type="button" class="save-selected">Save as CSV</button>
<button type="button" class="clear-selected">Clear</button></div></div>
<div class="legend" role="group" aria-label="Colours"></div></div>
<aside class="card node-panel" aria-label="Chosen node" hidden></aside></div>
<p class="hidden said" role="status"></p></div>"""


def viewer_section(data: RunData, flow: FlowData, *, explain_at: str = "") -> str:
    """Return the content of the section ``flow`` of a page; without WebGL2 and in print it is a still picture.

    Args:
        explain_at: where a server explains predictions (``viewer_data``); empty for a page from a file.
    """
    modes = "".join(f'<option value="{key}">{name}</option>' for key, name in MODES[data.kind].items())
    keys = "".join(f" <kbd>{key}</kbd> {does}," for key, does in KEYS.items()).rstrip(",")
    says = f"{text(flow.projection)} The larger the diffusivity of an edge, the stronger its line."
    live = (
        "The slider passes quickly through times at which the nodes move little. Point at a node to see its neighbours "
        "and its path through all times; click it for all its facts and its explanation. The lasso selects several; so "
        f'does dragging with Shift. <span class="keys">In the picture,{keys}.</span>'
    )
    return (
        f'{CONTROLS.format(modes=modes)}\n<div class="card still-picture">{still_picture(data, flow)}</div>\n'
        f'<p class="viewer-says" id="flow-says">{says} <span class="only-live">{live}</span></p>\n'
        f"{json_block(viewer_data(data, flow, explain_at=explain_at), key='flow-data')}"
    )


def viewer_css() -> str:
    """Return the style of the viewer."""
    return asset("viewer.css")


def viewer_js() -> str:
    """Return the script of the viewer."""
    content = "\n".join(asset(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{content}}})();\n'
