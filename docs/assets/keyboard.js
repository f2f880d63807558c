// Regions that scroll sideways, such as wide tables and formulae, can be reached and scrolled by keyboard.
"use strict";

function reachScrollingRegions() {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, math[display=block], pre > code")) {
    const scrolls = region.scrollWidth > region.clientWidth;
    if (scrolls) region.setAttribute("tabindex", "0");
    else region.removeAttribute("tabindex");
  }
}

addEventListener("load", reachScrollingRegions);
addEventListener("resize", reachScrollingRegions);
