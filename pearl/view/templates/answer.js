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
