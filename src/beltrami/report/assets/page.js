"use strict";
// The switch between light and dark, and tables that are sorted by a click on a heading. The page reads well without.
(() => {
  const root = document.documentElement;
  const KEY = "beltrami-theme";

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // the browser keeps nothing for this page
    }
  }

  function addThemeSwitch() {
    const top = document.querySelector(".top");
    if (!top) return;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "theme";
    const show = () => {
      button.textContent = isDark() ? "Light theme" : "Dark theme";
    };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem(KEY, root.dataset.theme);
      } catch {
        // it holds until the page is closed
      }
      show();
    });
    dark.addEventListener("change", show);
    if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
    show();
    top.append(button);
  }

  function compare(a, b) {
    if (a.missing || b.missing) return a.missing - b.missing; // missing values are last in either order
    return a.number === null ? a.text.localeCompare(b.text, undefined, { numeric: true }) : a.number - b.number;
  }

  function value(row, column) {
    const cell = row.cells[column];
    const number = cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    return { text: cell.textContent, number, missing: cell.textContent === "\u2013" ? 1 : 0 };
  }

  function sort(table, heading, column) {
    const numeric = heading.classList.contains("number");
    const before = heading.getAttribute("aria-sort");
    const descending = before ? before === "ascending" : numeric; // the largest numbers are first at first
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = Array.from(table.tBodies[0].rows, (row) => ({ row, value: value(row, column) }));
    rows.sort((a, b) => compare(a.value, b.value) * (descending && !a.value.missing && !b.value.missing ? -1 : 1));
    table.tBodies[0].append(...rows.map(({ row }) => row));
  }

  function makeSortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => sort(table, heading, column));
    });
  }

  addThemeSwitch();
  document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
})();
