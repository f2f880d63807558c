// Before and after of an image under one divider, and a slider for the time of "after".
(() => {
  "use strict";
  const states = [...document.querySelectorAll("img.state")];
  const part = (id) => document.getElementById(id);
  const [earlier, later, divider, time, said] = ["earlier", "later", "divider", "time", "said"].map(part);

  function show() {
    const state = states[Number(time.value)];
    if (later.src !== state.src) later.src = state.src;
    earlier.style.clipPath = `inset(0 ${100 - divider.value}% 0 0)`;
    part("divided").style.setProperty("--at", `${divider.value}%`);
    time.setAttribute("aria-valuetext", `t = ${state.dataset.time}`);
    divider.setAttribute("aria-valuetext", `${divider.value}% before`);
    said.textContent = `t = ${state.dataset.time}`;
  }

  earlier.src = states[0].src;
  part("divided").hidden = false;
  for (const each of [divider, time]) each.addEventListener("input", show);
  const stack = part("divided").querySelector(".stack");
  function drag(event) {
    const box = stack.getBoundingClientRect();
    divider.value = Math.round((100 * (event.clientX - box.left)) / box.width);
    show();
  }
  stack.addEventListener("pointerdown", (event) => {
    stack.setPointerCapture(event.pointerId);
    drag(event);
  });
  stack.addEventListener("pointermove", (event) => event.buttons && drag(event));
  show();
})();
