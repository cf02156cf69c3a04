// Rating by keyboard, and saving without losing anything: a rating that could not be sent is sent
// again under the same submission name, which the server stores once, until it says "saved".
"use strict";

const form = document.getElementById("rating");
const state = document.getElementById("status");
const questions = [...form.querySelectorAll("fieldset")];
const save = document.getElementById("save");
let isSaving = false;
let isLeaving = false;

form.noValidate = true;

const radios = (question) => [...question.querySelectorAll("input[type=radio]")];
const chosen = (question) => radios(question).find((radio) => radio.checked);
const current = () => questions.find((question) => question.classList.contains("current"));

function tell(text, kind) {
  state.textContent = text;
  state.className = `status ${kind}`;
}

function mark(question) {
  for (const one of questions) one.classList.toggle("current", one === question);
}

function go(question) {
  if (!question) {
    mark(null);
    save.focus();
    return;
  }
  mark(question);
  (chosen(question) || radios(question)[0]).focus({ preventScroll: true });
  question.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const place = questions.indexOf(current());
  if (place < 0) go(by < 0 ? questions[questions.length - 1] : questions[0]);
  else go(questions[place + by] || (by > 0 ? null : questions[0]));
}

// 1 is the first option of a comparison, and the point 1 of a scale; 0 is 10 where there is no 0.
function rate(digit) {
  const question = current() || questions.find((one) => !chosen(one)) || questions[0];
  const options = radios(question);
  const isScale = options.every((radio) => /^\d+$/.test(radio.value));
  const wanted = isScale
    ? options.find((radio) => radio.value === digit) ||
      (digit === "0" && options.find((radio) => radio.value === "10"))
    : options[Number(digit) - 1];
  if (!wanted) return;
  wanted.checked = true;
  renew();
  go(questions[questions.indexOf(question) + 1]);
}

// Browsers go from the last option round to the first: from best to worst with one key too many.
function shift(by) {
  const question = current();
  if (!question) return;
  const options = radios(question);
  const place = options.indexOf(chosen(question)) + by;
  const wanted = options[Math.max(0, Math.min(options.length - 1, place))];
  wanted.checked = true;
  wanted.focus();
  renew();
}

// Changed answers are a new submission; unchanged ones keep their name.
function renew() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  form.elements.submission.value = [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
  if (!isSaving) tell("", "");
}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

async function send(body) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body,
        headers: { Accept: "application/json" },
        redirect: "error",
      });
      if (answer.ok) return (await answer.json()).next;
      if (answer.status === 403) throw new Refusal("Not saved: this page is out of date. Load it again.");
      if (answer.status === 422) throw new Refusal((await answer.json()).problem);
      if (answer.status < 500 && answer.status !== 429) {
        throw new Refusal("Not saved: the server did not take it. Load the page again.");
      }
    } catch (error) {
      if (error instanceof Refusal) throw error;
    }
    const wait = Math.min(10, 2 ** attempt / 2);
    tell(`Not saved yet: no answer from the server. Trying again (${attempt + 1}). Keep this page open.`, "bad");
    await pause(wait);
  }
}

class Refusal extends Error {}

async function submit(event) {
  event.preventDefault();
  if (isSaving) return;
  const open = questions.find((question) => !chosen(question));
  if (open) {
    tell("Answer every question first.", "bad");
    go(open);
    return;
  }
  isSaving = true;
  save.disabled = true;
  tell("Saving …", "");
  try {
    const next = await send(new URLSearchParams(new FormData(form)));
    tell("✓ Saved", "good");
    isLeaving = true;
    location.assign(next);
  } catch (error) {
    tell(error.message, "bad");
    isSaving = false;
    save.disabled = false;
  }
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isSaving) return;
  if (event.target.closest("textarea")) return; // there, digits are digits
  const name = event.key;
  if (/^[0-9]$/.test(name)) rate(name);
  else if (name === "ArrowDown") step(1);
  else if (name === "ArrowUp") step(-1);
  else if (name === "ArrowRight") shift(1);
  else if (name === "ArrowLeft") shift(-1);
  else if (name === "b") location.assign(form.dataset.back);
  else if (name === "p") location.assign(form.dataset.pause);
  else if (name === "Enter" && !event.target.closest("a, summary, button")) form.requestSubmit();
  else return;
  event.preventDefault();
}

form.addEventListener("submit", submit);
form.addEventListener("change", renew);
form.addEventListener("input", renew);
form.addEventListener("focusin", (event) => mark(event.target.closest("fieldset")));
document.addEventListener("keydown", key);
window.addEventListener("beforeunload", (event) => {
  if (isSaving && !isLeaving) event.preventDefault();
});
// A page that comes back from the browser's memory is live again.
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  isSaving = isLeaving = false;
  save.disabled = false;
  renew();
});
go(questions.find((question) => !chosen(question)) || questions[0]);
