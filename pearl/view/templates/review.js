"use strict";
(() => {
  const task = document.getElementById("task"), told = document.getElementById("told"), paper = document.getElementById("document");
  const input = document.getElementById("value"), shown = document.getElementById("picked");
  const KEYS = { a: "accepted", n: "not_stated", s: "skipped", u: "undone" };
  let isBusy = false, quote = null;

  function tell(text, isGood = false) {
    told.textContent = text;
    told.classList.toggle("good", isGood);
  }

  async function send(what, data) {
    try {
      const reply = await fetch(what, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });
      return await reply.json();
    } catch {
      return { problem: "The server does not reply: nothing was stored. Start pearl review again." };
    }
  }

  // One decision at a time: a key that comes before the next field is seen is not meant for it.
  async function decide(what, more = {}) {
    if (isBusy) return;
    isBusy = true;
    const reply = await send("decide", { at: task.dataset.at ?? "", what, quote, ...more });
    if (reply.next === undefined) {
      isBusy = false;
      tell(reply.problem ?? "The server refused it.");
    } else location.assign(reply.next);
  }

  const act = (what, choice) => decide(what, choice ? { choice: +choice } : {});

  document.querySelector("form")?.addEventListener("submit", event => {
    event.preventDefault();
    if (input.value.trim()) decide("corrected", { value: input.value });
    else tell("Type a value, or press n if the document does not state it.");
  });
  task.addEventListener("click", event => {
    const button = event.target.closest("button[data-what]");
    if (button) act(button.dataset.what, button.dataset.choice);
  });
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key === "Escape") {
      quote = null;
      if (shown) shown.hidden = true;
      document.activeElement.blur();
      getSelection().removeAllRanges();
      tell("");
      return;
    }
    if (event.target.closest("input")) return;
    if (event.key === "c" && input) {
      event.preventDefault();
      input.focus();
      input.select();
      return;
    }
    const what = KEYS[event.key], button = document.querySelector(`button[data-choice="${CSS.escape(event.key)}"]`);
    if (!button && !(what && (input || what === "undone"))) return;
    event.preventDefault();
    act(button ? "accepted" : what, button?.dataset.choice);
  });

  // The place of marked words in the text: its block, and what of the block stands before them.
  function placeOf(range) {
    const block = (range.startContainer.nodeType === 1 ? range.startContainer : range.startContainer.parentElement).closest(".block");
    if (!block) return 0;
    const before = document.createRange();
    before.setStart(block, 0);
    before.setEnd(range.startContainer, range.startOffset);
    let at = +block.dataset.start + before.toString().length;
    for (const gap of block.querySelectorAll(".gap"))
      if (before.comparePoint(gap, 0) <= 0) at += +gap.dataset.n - gap.textContent.length;
    return at;
  }
  paper?.addEventListener("pointerup", () => setTimeout(async () => {
    const selection = getSelection(), text = selection.toString().trim();
    if (!text || !paper.querySelector(".text").contains(selection.anchorNode)) return;
    const marked = { text, near: placeOf(selection.getRangeAt(0)) };
    const reply = await send("quote", { at: task.dataset.at, quote: marked });
    if (reply.text === undefined) {
      tell(reply.problem ?? "The server refused it.");
      return;
    }
    quote = marked;
    shown.hidden = false;
    shown.querySelector("q").textContent = reply.text;
    shown.querySelector(".where").textContent = reply.where;
    if (reply.value !== null) input.value = reply.value;
    tell(reply.value === null ? "The passage is kept. Accept, or type the value." : "The passage is kept. Press Enter in the field to take its value.", true);
    if (reply.value !== null) input.focus();
  }));

  // The passage comes into view within the document, not the page.
  const lit = paper?.querySelector(".lit");
  if (lit) paper.scrollTop += lit.getBoundingClientRect().top - paper.getBoundingClientRect().top - paper.clientHeight / 3;
})();
