"use strict";
(() => {
  // Opens what holds the target of a link; browsers differ in whether they do.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const closed = target?.closest("details:not([open])");
    if (!closed) return;
    for (let at = closed; at; at = at.parentElement.closest("details")) at.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);

  const paper = document.getElementById("document");
  const first = paper?.dataset.first && document.getElementById(`d${paper.dataset.first}`);
  // Only when the document comes into view are its parts laid out.
  const opening = new IntersectionObserver(seen => {
    if (!seen.some(each => each.isIntersecting)) return;
    opening.disconnect();
    const at = paper.querySelector(":target") ?? first;
    for (let box = at.parentElement; paper.contains(box); box = box.parentElement) {
      const above = at.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 4;
      if (box.scrollHeight > box.clientHeight) box.scrollTo({ top: box.scrollTop + above, behavior: "instant" });
    }
  });
  if (location.hash) reveal();
  if (first) opening.observe(paper);

  // Steps through the evidence in the document, by buttons, j and k, and arrows.
  const stepping = paper?.querySelector(".stepping");
  if (stepping) {
    const numbers = [...paper.querySelectorAll("[id^=d]")].map(each => +each.id.slice(1)).filter(n => n > 0).sort((a, b) => a - b);
    const at = () => numbers.indexOf(+location.hash.slice(2));
    const step = by => {
      const y = scrollY;
      location.replace(`#d${numbers[Math.max(0, Math.min(numbers.length - 1, at() + by))]}`);
      if (getComputedStyle(paper).position === "sticky") scrollTo({ top: y, behavior: "instant" }); // it is in sight
    };
    stepping.hidden = false;
    stepping.querySelector(".back").addEventListener("click", () => step(-1));
    stepping.querySelector(".on").addEventListener("click", () => step(1));
    const BY = { j: 1, k: -1, ArrowRight: 1, ArrowLeft: -1 };
    addEventListener("keydown", event => {
      const isOther = event.ctrlKey || event.metaKey || event.altKey || event.target.closest(event.key.startsWith("Arrow") ? ".rows, .wide, input" : "input");
      if (BY[event.key] && !isOther) step(BY[event.key]);
    });
    addEventListener("hashchange", () => {
      for (const each of document.querySelectorAll(".now")) each.classList.remove("now");
      document.getElementById(`e${numbers[at()]}`)?.classList.add("now");
      stepping.querySelector("[role=status]").textContent = at() < 0 ? "" : `${at() + 1} of ${numbers.length}`;
    });
  }

  for (const search of document.querySelectorAll(".search")) {
    const behind = search.closest(".behind"), more = behind.querySelector(".more");
    const rows = [...behind.querySelectorAll("tbody tr")], texts = [];
    search.hidden = false;
    search.querySelector("input").addEventListener("input", event => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      let n = 0;
      rows.forEach((row, i) => {
        texts[i] ??= row.textContent.toLowerCase();
        row.hidden = !words.every(word => texts[i].includes(word));
        n += !row.hidden;
      });
      if (more && words.length) more.open = true;
      search.querySelector("[role=status]").textContent = words.length ? `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : "";
    });
  }
})();
