"use strict";
(() => {
  const grid = document.getElementById("grid"), links = [...grid.querySelectorAll("tbody a")];
  // One stop of the tab key: arrows move between cells, Enter opens one.
  const focusable = link => {
    links.now && (links.now.tabIndex = -1);
    links.now = link;
    link.tabIndex = 0;
  };
  for (const link of links) link.tabIndex = -1;
  if (links.length) focusable(links[0]);
  grid.addEventListener("focusin", event => event.target.closest("tbody a") && focusable(event.target));

  const linkAt = (row, at) => row?.cells[at]?.querySelector("a");
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  grid.addEventListener("keydown", event => {
    const step = STEPS[event.key], cell = event.target.closest("th, td");
    if (!step || !cell || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    let row = cell.parentElement, next = null;
    if (step[1]) next = linkAt(row, cell.cellIndex + step[1]);
    else do {
      row = step[0] < 0 ? row.previousElementSibling : row.nextElementSibling;
      next = row?.checkVisibility() ? linkAt(row, cell.cellIndex) ?? linkAt(row, 0) : null;
    } while (row && !next);
    next?.focus();
  });
  addEventListener("keydown", event => {
    if (event.key !== "Escape" || !document.querySelector("article:target, article :target")) return;
    location.replace("#grid");
    links.now?.focus();
  });

  // Shows the rows that have a text, and opens the lists that hide it.
  const search = document.querySelector(".search"), rows = [...grid.querySelectorAll(":scope > table > tbody > tr")];
  search.hidden = rows.length < 2;
  search.oninput = event => {
    const wanted = event.target.value.trim().toLowerCase(), has = node => node.textContent.toLowerCase().includes(wanted);
    for (const row of rows) row.classList.toggle("apart", !has(row));
    for (const list of grid.querySelectorAll("details")) list.open = Boolean(wanted) && has(list);
    search.querySelector("[role=status]").textContent = wanted ? `${rows.filter(has).length} of ${rows.length}` : "";
  };

  // Marks the cell that is open, and scrolls the text beside the grid to its first passage.
  function show() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (const each of document.querySelectorAll(".now")) each.classList.remove("now");
    const article = target?.closest("article");
    if (!article) return;
    grid.querySelector(`a[href="#${target.id}"]`)?.parentElement.classList.add("now");
    const wanted = new Set(target.dataset.marks?.split(" "));
    const marks = [...article.querySelectorAll("mark, .box")].filter(mark => mark.dataset.marks.split(" ").some(n => wanted.has(n)));
    for (const mark of marks) if (target.localName === "li") mark.classList.add("now");
    const texts = article.querySelector(".texts");
    if (target.localName === "li" && marks.length)
      texts.scrollTop += marks[0].getBoundingClientRect().top - texts.getBoundingClientRect().top - texts.clientHeight / 3;
  }
  addEventListener("hashchange", show);
  if (location.hash) show();
})();
