"use strict";
// Rows are data: they become text, by textContent, and never markup.
(() => {
  const PAGE = 50;
  const data = JSON.parse(document.getElementById("records").textContent);
  const at = Object.fromEntries(data.columns.map((name, i) => [name, i]));
  const lines = data.lines.map((cells, i) => entry(cells, i));
  const $ = id => document.getElementById(id);
  let heads = [...document.querySelectorAll("thead th")];
  const body = document.querySelector("tbody");
  const CHOSEN = ["status", "error", "choice", "score"];
  const KNOWN = ["answered", "degraded", "nothing_found", "undecided", "refused", "failed", "unfinished"];
  const NUMBERS = ["score", "evidence", "unverified", "coverage", "tokens_in", "tokens_out", "cost", "seconds"];
  const TEXTS = ["id", "status", "question", "answer", "document", "model", "choice", "error"];
  const TOLD = ["question", "document", "model"];
  let found = [];
  let state = fromHash();
  let drawing = 0, telling = 0;

  function entry(cells, i) {
    return { cells, i, text: null };
  }

  function make(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  // The hash holds the filters, so that a view can be sent: #status=failed&q=ada&row=ID
  function fromHash() {
    const said = new URLSearchParams(location.hash.slice(1));
    const text = name => said.get(name) || "";
    return { q: text("q"), status: text("status"), error: text("error"), choice: text("choice"), score: text("score"),
      unverified: said.has("unverified"), sort: at[text("sort")] === undefined && !text("sort").startsWith("output:") ? "" : text("sort"), down: said.has("down"),
      page: Math.max(0, (parseInt(text("page"), 10) || 1) - 1), row: text("row") };
  }

  function toHash() {
    clearTimeout(telling);
    telling = setTimeout(writeHash, 200);
  }

  function writeHash() {
    const said = new URLSearchParams();
    for (const name of ["q", ...CHOSEN, "sort", "row"]) if (state[name]) said.set(name, state[name]);
    for (const name of ["unverified", "down"]) if (state[name]) said.set(name, "1");
    if (state.page) said.set("page", state.page + 1);
    history.replaceState(null, "", `#${said}`);
  }

  const value = (line, name) => name.startsWith("output:") ? line.cells[at.outputs][name.slice(7)] ?? "" : line.cells[at[name]];
  const written = cell => cell === null || cell === undefined ? "" : String(cell);

  function searched(line) {
    if (line.text === null) line.text = [...TEXTS.map(name => value(line, name)), ...Object.values(value(line, "outputs"))].join("\n").toLowerCase();
    return line.text;
  }

  function select() {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = CHOSEN.filter(name => state[name]);
    found = lines.filter(line => chosen.every(name => written(value(line, name)) === state[name])
      && (!state.unverified || value(line, "unverified") > 0)
      && words.every(word => searched(line).includes(word)));
    if (state.sort) {
      const sign = state.down ? -1 : 1;
      const isEmpty = cell => cell === null || cell === "";
      found.sort((a, b) => {
        const x = value(a, state.sort), y = value(b, state.sort);
        if (isEmpty(x) || isEmpty(y)) return isEmpty(x) - isEmpty(y) || a.i - b.i;  // what is not known comes last
        return (x < y ? -sign : x > y ? sign : 0) || a.i - b.i;
      });
    }
  }

  function show() {
    select();
    const open = state.row ? found.findIndex(line => value(line, "id") === state.row) : -1;
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    if (open >= 0) state.page = Math.floor(open / PAGE);
    draw(pages);
    return open;
  }

  function draw(pages) {
    const first = state.page * PAGE;
    body.replaceChildren(...found.slice(first, first + PAGE).map(drawn));
    for (const head of heads) {
      if (head.dataset.column === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    $("page").textContent = `Page ${(state.page + 1).toLocaleString("en")} of ${pages.toLocaleString("en")}`;
    $("first").disabled = $("before").disabled = state.page === 0;
    $("last").disabled = $("after").disabled = state.page >= pages - 1;
    $("pages").hidden = pages < 2;
    $("told").textContent = `${found.length.toLocaleString("en")} of ${lines.length.toLocaleString("en")} rows`;
    toHash();
  }

  function drawn(line) {
    const row = make("tr");
    for (const head of heads) {
      const name = head.dataset.column, cell = value(line, name);
      let made;
      if (name === "id") {
        made = make("th");
        made.scope = "row";
        const open = make("button", cell || "(no id)", "open");
        open.type = "button";
        open.setAttribute("aria-expanded", "false");
        open.addEventListener("click", () => toggle(line, row, open));
        made.append(open);
      } else if (name === "status") {
        made = make("td");
        made.append(make("span", cell.replaceAll("_", " "), `status ${KNOWN.includes(cell) ? cell : ""}`));
      } else if (NUMBERS.includes(name)) {
        made = make("td", shown(name, cell), "number");
      } else {
        made = make("td", cell);
        if (name.startsWith("output:")) made.dataset.label = name.slice(7);
      }
      made.dataset.column = name;
      made.hidden = head.hidden;
      row.append(made);
    }
    return row;
  }

  function shown(name, cell) {
    if (cell === null) return name === "cost" ? "unknown" : "";
    if (name === "coverage") return `${+(100 * cell).toPrecision(3)} %`;
    if (name === "cost") return String(+cell.toPrecision(3));
    if (name === "seconds") return cell.toFixed(2);
    return cell.toLocaleString("en");
  }

  async function toggle(line, row, button) {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      row.nextElementSibling.remove();
      state.row = "";
    } else {
      const holder = make("tr", undefined, "details"), cell = make("td"), inner = make("div", undefined, "inner");
      cell.colSpan = heads.filter(head => !head.hidden).length;
      cell.append(inner);
      holder.append(cell);
      row.after(holder);
      state.row = value(line, "id");
      await fill(inner, line);
    }
    toHash();
  }

  async function fill(inner, line) {
    const details = data.details[line.i];
    if (!details) {
      inner.append(make("p", "Its details are not in this file: pearl view --row ID shows them.", "soft"));
      return;
    }
    const text = (title, said, element, className) => {
      if (said) inner.append(make("h2", title), make(element, said, className));
    };
    const list = (title, items, flagged) => {
      if (!items.length) return;
      const made = make("ol");
      for (const item of items) {
        const li = make("li", item[0]);
        if (item[1]) li.append(" ", make("span", `(${item[1]})`, flagged ? "flag" : "where"));
        made.append(li);
      }
      inner.append(make("h2", title), made);
    };
    text("Question", details.question, "p", "whole");
    text("Answer", details.answer, "p", "whole");
    text("Error", details.error, "p", "whole flag");
    text("Why it is not sure", details.why, "p", "whole flag");
    list("Notes", details.notes.map(note => [note]));
    list("Quotes that could not be verified", details.unverified, true);
    list("Evidence", details.evidence);
    text("Plan", details.plan, "pre");
    if (details.steps.length) {
      inner.append(make("h2", "Steps"));
      for (const [name, said, how] of details.steps) inner.append(make("p", `${name}${how ? `: ${how}` : ""}`, "soft"), make("pre", said));
    }
  }

  // What is typed is seen at once; the rows follow when no key has come for a moment.
  function change(changes) {
    Object.assign(state, { page: 0, row: "" }, changes);
    clearTimeout(drawing);
    drawing = setTimeout(show, 60);
  }

  // The texts that are searched, some at a time, so that the first search need not make them all.
  function prepare(from) {
    const before = Math.min(lines.length, from + 500);
    for (let i = from; i < before; i++) searched(lines[i]);
    if (before < lines.length) setTimeout(prepare, 0, before);
  }

  function fillChoices() {
    for (const name of CHOSEN) {
      const counts = new Map();
      for (const line of lines) {
        const cell = written(value(line, name));
        if (cell) counts.set(cell, (counts.get(cell) || 0) + 1);
      }
      const ordered = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 200);
      if (state[name] && !counts.has(state[name])) ordered.push([state[name], 0]);
      const options = ordered.map(([cell, n]) => {
        const option = make("option", `${cell.replaceAll("_", " ")} (${n.toLocaleString("en")})`);
        option.value = cell;
        return option;
      });
      const none = make("option", "all");
      none.value = "";
      $(name).replaceChildren(none, ...options);
      $(name).value = state[name];
      const isUseless = name !== "status" && counts.size === 0;
      $(name).parentElement.hidden = isUseless;
    }
    arrange();
  }

  // A column that says the same in every row is told once, above; each output has a column.
  function arrange() {
    for (const told of document.querySelectorAll("#summary .constant")) told.remove();
    const outputs = new Set(lines.slice(0, 200).flatMap(line => Object.keys(value(line, "outputs"))));
    for (const output of [...outputs].slice(0, 12)) {
      const name = `output:${output}`;
      if (heads.some(head => head.dataset.column === name)) continue;
      const head = make("th", output);
      head.scope = "col";
      head.dataset.column = name;
      heads.find(head => head.dataset.column === "status").before(head);
      sortable(head);
    }
    heads = [...document.querySelectorAll("thead th")];
    const groups = [];
    for (const head of heads) {
      const name = head.dataset.column, first = lines.length ? value(lines[0], name) : null;
      const isSame = lines.every(line => value(line, name) === first);
      const isId = name === "document" && lines.every(line => value(line, name) === value(line, "id"));
      head.hidden = name !== "id" && name !== "answer" && (isId || isSame && (lines.length > 1 || !written(first)) && name !== "status");
      if (!head.hidden || isId || !TOLD.includes(name) || !first) continue;
      const group = make("div", undefined, name === "question" ? "constant long" : "constant");
      group.append(make("dt", name), make("dd", first));
      groups.push(group);
    }
    $("summary").prepend(...groups);
  }

  function sortable(head) {
    const name = head.dataset.column, button = make("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => change({ sort: name, down: state.sort === name ? !state.down : NUMBERS.includes(name) }));
    head.replaceChildren(button);
  }

  function setInputs() {
    $("q").value = state.q;
    $("unverified").checked = state.unverified;
    for (const name of CHOSEN) $(name).value = state[name];
  }

  function openSaid(place) {
    if (place < 0) return;
    const row = body.children[place % PAGE];
    row.querySelector("button.open").click();
    row.scrollIntoView({ block: "start" });
  }

  heads.forEach(sortable);
  $("filters").addEventListener("submit", event => event.preventDefault());
  $("q").addEventListener("input", event => change({ q: event.target.value }));
  $("unverified").addEventListener("change", event => change({ unverified: event.target.checked }));
  for (const name of CHOSEN) $(name).addEventListener("change", event => change({ [name]: event.target.value }));
  $("reset").addEventListener("click", () => {
    change({ q: "", status: "", error: "", choice: "", score: "", unverified: false, sort: "", down: false });
    setInputs();
  });
  const go = page => () => { state.page = page(); state.row = ""; show(); $("rows").scrollIntoView(); };
  $("first").addEventListener("click", go(() => 0));
  $("before").addEventListener("click", go(() => state.page - 1));
  $("after").addEventListener("click", go(() => state.page + 1));
  $("last").addEventListener("click", go(() => Math.ceil(found.length / PAGE) - 1));
  addEventListener("hashchange", () => { state = fromHash(); setInputs(); openSaid(show()); });
  $("filters").hidden = false;
  fillChoices();
  setInputs();
  openSaid(show());
  prepare(0);
})();
