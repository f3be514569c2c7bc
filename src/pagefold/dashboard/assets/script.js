// Follows what goes on: asks for what changed, puts it where it belongs, and stops while nobody looks.
"use strict";
const main = document.querySelector("main");
const follows = main.dataset.live;
const levels = ["full", "compressed", "structured", "pointer"];
const by = (id) => document.getElementById(id);
let paused = false, number = Number(main.dataset.n), told = Number(main.dataset.k);

function short(n) {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(n) >= size) {
      const scaled = n / (letter === "k" ? 1e3 : size);
      return scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0) + letter;
    }
  }
  return n.toLocaleString("en");
}

function put(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

function say(state, kind) {
  by("dot").className = kind;
  put(by("state"), state);
}

function row(name) {
  const known = by("s-" + name);
  if (known) return known;
  const made = by("row").content.firstElementChild.cloneNode(true);
  made.id = "s-" + name;
  made.querySelector("a").href = "/pagefold/session/" + name;
  by("sessions").prepend(made);
  while (by("sessions").children.length > 100) by("sessions").lastElementChild.remove();
  by("empty").hidden = true;
  return made;
}

function draw(made, counts) {
  const total = counts.reduce((sum, one) => sum + one, 0) || 1;
  let at = 0;
  made.querySelectorAll("rect").forEach((rect, index) => {
    const width = 100 * counts[index] / total;
    rect.setAttribute("x", at.toFixed(2));
    rect.setAttribute("width", width.toFixed(2));
    at += width;
  });
  const words = levels.map((level, index) => counts[index] ? level + " " + counts[index].toLocaleString("en") : "");
  made.querySelector("svg").setAttribute("aria-label", words.filter(Boolean).join(", ") || "nothing yet");
}

function session([name, a, b, c, d, saved, cache, turns, folds, faults, ago, who, about], now) {
  const made = row(name), cells = made.querySelectorAll("td.n");
  draw(made, [a, b, c, d]);
  const texts = [short(a + b + c + d), short(saved), cache < 0 ? "-" : cache + " %", short(turns), short(folds), short(faults),
    new Date((now - ago) * 1000).toLocaleTimeString("en-GB")];
  texts.forEach((text, index) => put(cells[index], text));
  if (who) put(made.querySelector("a"), who);
  if (about) put(made.querySelector(".about"), about);
}

function happened(items) {
  const list = by("happened");
  for (const item of items) list.insertAdjacentHTML("afterbegin", item);
  while (list.children.length > 40) list.lastElementChild.remove();
  if (items.length && list.previousElementSibling) list.previousElementSibling.remove();
}

function show(update) {
  if (follows !== "now") {
    if (update.n !== number) {
      const open = main.querySelector("details")?.open;
      by("part").innerHTML = update.html;
      if (open) main.querySelector("details").open = true;
    }
    number = update.n;
    return;
  }
  for (const [key, [figure, words]] of Object.entries(update.t)) {
    put(by("tile-" + key), figure);
    put(by("words-" + key), words);
  }
  update.s.reverse().forEach((one) => session(one, update.at));
  happened(update.h);
  number = update.n;
  told = update.k;
}

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function follow() {
  const url = follows === "now" ? "/pagefold/changes" : "/pagefold/session/" + follows + "/part";
  for (;;) {
    if (paused || document.hidden) {
      await wait(200);
      continue;
    }
    try {
      const answer = await fetch(`${url}?n=${number}&k=${told}`);
      if (!answer.ok) throw new Error(answer.status);
      const update = await answer.json();
      if (paused) continue; // it was asked for before: what it says is told again after the pause
      show(update);
      say("live", "on");
      await wait(follows === "now" ? 60 : 400);
    } catch (error) {
      say("not reached, trying again", "off");
      await wait(2000);
    }
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    by("q").focus();
  }
});

if (follows) {
  const pause = by("pause");
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    say(paused ? "paused" : "live", paused ? "" : "on");
  });
  follow();
}
