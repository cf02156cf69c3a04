// Keyboard first: every key does what a link or a field on the page does.
"use strict";

const rows = () => [...document.querySelectorAll("[data-row]")];

function step(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  if (next) next.focus();
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  n: () => follow("a[rel=next]"),
  p: () => follow("a[rel=prev]"),
  ArrowRight: () => follow(".steps a[rel=next]"),
  ArrowLeft: () => follow(".steps a[rel=prev]"),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, select, textarea, button");
  if (event.key === "Escape" && field) return field.blur();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) {
    event.preventDefault();
    return event.target.form.requestSubmit();
  }
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  const named = /^[a-z/]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`);
  if (named) {
    event.preventDefault();
    if (named.matches("a")) named.click();
    else named.focus();
  } else if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

// A form marked data-swap is sent in the background; of the page that comes back, one section
// takes the place of the old one. Without this script the whole page comes back, the same way.
document.addEventListener("submit", (event) => {
  const form = event.target;
  const id = form.dataset.swap;
  if (!id) return;
  event.preventDefault();
  const button = form.querySelector("button");
  const status = form.querySelector("[role=status]");
  const sent = new XMLHttpRequest();
  button.disabled = true;
  status.textContent = status.dataset.busy;
  sent.responseType = "document";
  sent.onloadend = () => {
    button.disabled = false;
    const fresh = sent.response && sent.response.getElementById(id);
    if (fresh && sent.status === 200) {
      document.getElementById(id).replaceWith(document.adoptNode(fresh));
      document.getElementById(id).querySelector("textarea").focus();
    } else {
      const said = sent.response && sent.response.querySelector("main p");
      status.textContent = said ? said.textContent : "The server does not answer.";
    }
  };
  sent.open("POST", form.getAttribute("action"));
  sent.setRequestHeader("content-type", "application/x-www-form-urlencoded");
  sent.send(new URLSearchParams(new FormData(form)).toString());
});

// A form marked data-choose wants exactly so many boxes ticked.
for (const form of document.querySelectorAll("[data-choose]")) {
  const button = form.querySelector("button");
  const check = () => {
    const ticked = form.querySelectorAll("input:checked").length;
    if (button) button.disabled = ticked !== Number(form.dataset.choose);
  };
  form.addEventListener("change", check);
  check();
}
