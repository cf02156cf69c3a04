"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const list = $("list"), tools = $("tools"), help = $("help");
  const cards = [...list.children];
  const scores = new Map(cards.map((card) => [
    card, card.dataset.v.split(";").map((run) => run.split(",").map((v) => (v === "" ? NaN : +v))),
  ]));
  const texts = new Map();
  const shown = () => cards.filter((card) => !card.hidden);

  tools.hidden = false;
  document.querySelectorAll(".keys").forEach((one) => { one.hidden = false; });

  /* Numbers as `aligned` writes them: by the largest, three decimals below 10, fewer above. */
  const writer = (values) => {
    const largest = values.reduce((most, v) => Math.max(most, Math.abs(v) || 0), 0);
    const whole = largest > 1 && values.every((v) => Number.isNaN(v) || Number.isInteger(v));
    const digits = whole ? 0 : largest < 10 ? 3 : largest < 1000 ? 2 : 0;
    const form = new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return (v) => (Number.isNaN(v) ? "–" : form.format(v).replace("-", "−"));
  };

  const textOf = (card) => {
    if (!texts.has(card)) texts.set(card, card.textContent.toLowerCase());
    return texts.get(card);
  };

  const filter = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const system = $("system") ? $("system").value : "", level = $("level") ? $("level").value : "";
    const anySystem = !$("system") || $("system").selectedIndex === 0;
    for (const card of cards) {
      card.hidden = !(anySystem || card.dataset.s === system) || (level !== "" && card.dataset.l !== level)
        || !words.every((word) => textOf(card).includes(word));
    }
    const count = shown().length;
    $("count").textContent = count === cards.length ? `${count.toLocaleString("en")} shown`
      : `${count.toLocaleString("en")} of ${cards.length.toLocaleString("en")} shown`;
  };

  const mark = () => {
    const metric = +$("metric").value;
    const write = writer(cards.flatMap((card) => scores.get(card).map((run) => run[metric])));
    for (const card of cards) {
      card.querySelector(".mark").textContent = scores.get(card).map((run) => write(run[metric])).join(" → ");
    }
  };

  const sort = () => {
    const metric = +$("metric").value, order = $("order").value;
    const value = (card) => {
      const runs = scores.get(card), last = runs[runs.length - 1][metric];
      return order === "fell" || order === "rose" ? last - runs[0][metric] : last;
    };
    const sign = order === "high" || order === "rose" ? -1 : 1;
    const place = new Map(cards.map((card, i) => [card, i]));
    const sorted = order === "file" ? cards : [...cards].sort((a, b) => {
      const x = value(a), y = value(b);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || place.get(a) - place.get(b);
      return sign * (x - y) || place.get(a) - place.get(b);
    });
    list.append(...sorted);
  };

  const visible = () => [...list.children].filter((card) => !card.hidden);
  const go = (step) => {
    const all = visible(), here = all.indexOf(document.activeElement.closest(".card"));
    const next = all[here < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + step))];
    if (!next) return;
    next.querySelector("summary").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest", behavior: "instant" });
  };

  const openTarget = () => {
    const card = location.hash.length > 1 ? $(location.hash.slice(1)) : null;
    if (!card || !card.classList.contains("card")) return;
    card.hidden = false;
    card.open = true;
    card.scrollIntoView({ block: "start", behavior: "instant" });
    card.querySelector("summary").focus({ preventScroll: true });
  };

  let waiting = 0;
  $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  for (const id of ["system", "level"]) if ($(id)) $(id).addEventListener("change", filter);
  $("metric").addEventListener("change", () => { mark(); sort(); });
  $("order").addEventListener("change", sort);
  $("toggle").addEventListener("click", () => {
    const open = shown().some((card) => !card.open);
    for (const card of shown()) card.open = open;
    $("toggle").textContent = open ? "Close all" : "Open all";
  });
  window.addEventListener("hashchange", openTarget);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape" && event.target === $("search")) {
      $("search").value = "";
      filter();
      $("search").blur();
    }
    if (typing || help.open) return;
    const inList = list.contains(document.activeElement);
    const keys = {
      j: () => go(1), k: () => go(-1),
      "/": () => { $("search").focus(); $("search").scrollIntoView({ block: "nearest" }); },
      "?": () => help.showModal(),
    };
    if (inList) Object.assign(keys, { ArrowDown: () => go(1), ArrowUp: () => go(-1) });
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
  const watch = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) {
      links.forEach((a) => a.classList.remove("here"));
      links.get(one.target.id).classList.add("here");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  links.forEach((_, id) => watch.observe($(id)));

  filter();
  mark();
  openTarget();
})();
