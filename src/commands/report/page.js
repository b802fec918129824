"use strict";
// Shows the calls of the page. Text is only ever set as text: nothing here makes markup from data.
(() => {
  const byId = (id) => document.getElementById(id);
  const index = JSON.parse(byId("index").textContent);
  const root = document.documentElement;
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  if (!byId("list")) return;

  const PAGE = 100;
  const [ENDED, SKILL, STATUS, TOOK, COST, PROJECT, SESSION, ATTEMPTS, MESSAGE] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  // Characters that are not seen or that turn text around. They stay in the text, alone in a box that shows their number.
  const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

  function put(node, text) {
    text = String(text);
    if (!ODD.test(text)) {
      node.append(document.createTextNode(text));
      return node;
    }
    let plain = "";
    for (const c of text) {
      if (!ODD.test(c)) { plain += c; continue; }
      node.append(document.createTextNode(plain));
      plain = "";
      const odd = document.createElement("span");
      odd.className = "odd";
      odd.dataset.code = "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      odd.append(document.createTextNode(c));
      node.append(odd);
    }
    node.append(document.createTextNode(plain));
    return node;
  }
  function el(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined && text !== null) put(node, text);
    return node;
  }
  const field = (name, node) => { node.dataset.field = name; return node; };

  const money = (usd) => usd === null || usd === undefined ? "cost unknown" : "$" + (usd !== 0 && Math.abs(usd) < 0.1 ? usd.toFixed(4) : usd.toFixed(2));
  const took = (ms) => ms < 1000 ? ms + " ms" : ms < 9950 ? (ms / 1000).toFixed(1) + " s" : ms < 999500 ? Math.round(ms / 1000) + " s" : ms < 5970000 ? Math.round(ms / 60000) + " min" : (ms / 3600000).toFixed(1) + " h";
  const when = (ms) => ms === null ? "no time" : new Date(ms).toISOString().slice(0, 16).replace("T", " ");
  const CLASS = { accepted: "s-pass", tampered: "s-error", rejected: "s-fail", contradiction: "s-fail", cannot_verify: "s-fail", unreadable: "s-none" };
  const badge = (cause) => el("span", "badge " + (cause ? CLASS[cause] || "s-none" : "s-none"), cause || "?");

  const calls = index.calls;
  const haystack = calls.map((call) => {
    const reasons = call[ATTEMPTS].flatMap(([model, , reason]) => [index.models[model], reason === null ? "" : index.reasons[reason].join(" ")]);
    return [call[MESSAGE], index.skills[call[SKILL]], index.projects[call[PROJECT]], index.sessions[call[SESSION]], ...reasons].join("\n").toLowerCase();
  });
  const causes = [...new Set(calls.flatMap((call) => call[ATTEMPTS].map(([, cause]) => cause)).filter(Boolean))].sort();
  const options = (id, words, values) => words.forEach((word, n) => { const option = el("option", "", word || "(no name)"); option.value = values ? values[n] : n; byId(id).append(option); });
  options("skill", index.skills);
  options("model", index.models);
  options("cause", causes, causes);

  const picked = { from: null, to: null, reason: null, label: "" };
  let found = [];
  let shown = 0;

  function matches(call, n, want) {
    return (want.skill === "" || call[SKILL] === +want.skill)
      && (want.status === "" || call[STATUS] === want.status)
      && (want.model === "" || call[ATTEMPTS].some(([model]) => model === +want.model))
      && (want.cause === "" || call[ATTEMPTS].some(([, cause]) => cause === want.cause))
      && (picked.reason === null || call[ATTEMPTS].some(([, , reason]) => reason === picked.reason))
      && (picked.from === null || (call[ENDED] !== null && call[ENDED] >= picked.from && call[ENDED] < picked.to))
      && want.words.every((word) => haystack[n].includes(word));
  }
  function filter() {
    const want = { words: byId("words").value.toLowerCase().split(/\s+/).filter(Boolean) };
    for (const id of ["skill", "status", "model", "cause"]) want[id] = byId(id).value;
    found = [];
    for (let n = calls.length - 1; n >= 0; n--) if (matches(calls[n], n, want)) found.push(n);
    const all = found.length === calls.length;
    byId("shown").textContent = all ? " " + calls.length : " " + found.length + " of " + calls.length;
    byId("clear").hidden = all && picked.from === null && picked.reason === null;
    byId("picked").hidden = !picked.label;
    byId("picked").textContent = picked.label;
    byId("list").replaceChildren();
    shown = 0;
    more();
  }
  function more() {
    const part = document.createDocumentFragment();
    for (const n of found.slice(shown, shown + PAGE)) part.append(row(n));
    shown = Math.min(found.length, shown + PAGE);
    byId("list").append(part);
    if (found.length === 0) byId("list").append(el("p", "dim", "No call is left by these filters."));
    byId("more").hidden = shown >= found.length;
    byId("more").textContent = "show " + Math.min(PAGE, found.length - shown) + " more of " + (found.length - shown);
  }

  function row(n) {
    const call = calls[n];
    const item = el("article", "call");
    item.id = "c" + n;
    const head = el("button", "head");
    head.type = "button";
    head.setAttribute("aria-expanded", "false");
    head.append(el("span", "dot s-" + call[STATUS]), el("time", "dim", when(call[ENDED])), el("b", "", index.skills[call[SKILL]]));
    const way = el("span", "way");
    for (const [model, cause] of call[ATTEMPTS]) {
      const step = el("span", "step " + (CLASS[cause] || "s-none"), index.models[model]);
      step.title = cause || "";
      way.append(step);
    }
    head.append(way, el("span", "n dim", took(call[TOOK]) + " · " + money(call[COST])), field("row-message", el("bdi", "message", call[MESSAGE])));
    head.addEventListener("click", () => open(item, head, n));
    item.append(head);
    return item;
  }
  function open(item, head, n) {
    const body = item.querySelector(":scope > .body");
    if (body) { body.hidden = !body.hidden; head.setAttribute("aria-expanded", String(!body.hidden)); return; }
    head.setAttribute("aria-expanded", "true");
    const data = byId("d" + n);
    item.append(data ? whole(JSON.parse(data.textContent)) : el("div", "body dim", "This call is older than what fits on this page. `supervisor report --session " + index.sessions[calls[n][SESSION]] + " --html FILE` has it."));
  }

  function facts(pairs) {
    const list = el("dl", "facts");
    for (const [name, value] of pairs) {
      if (value === undefined || value === null || value === "") continue;
      list.append(el("dt", "", name), field(name, el("dd", "", value)));
    }
    return list;
  }
  function fold(title, name, content, isOpen) {
    if (!content) return "";
    const details = el("details");
    details.open = Boolean(isOpen);
    details.append(el("summary", "", title), content instanceof Node ? content : field(name, el("pre", "", content)));
    return details;
  }
  function diff(text) {
    if (!text) return "";
    const pre = field("diff", el("pre", "diff"));
    const lines = text.split("\n");
    lines.forEach((line, n) => {
      const kind = line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : line.startsWith("@@") ? "hunk" : "";
      pre.append(put(el("span", kind), line + (n + 1 < lines.length ? "\n" : "")));
    });
    return pre;
  }
  function gates(list) {
    if (!list || list.length === 0) return "";
    const items = el("ul", "gates");
    for (const gate of list) {
      const item = el("li", gate.pass ? "pass" : "fail");
      item.append(field("gate", el("code", "", gate.id)), " ", field("gate-detail", el("bdi", "", gate.detail || "")));
      items.append(item);
    }
    return items;
  }
  function attempt(one, change, answers, last) {
    const box = el("section", "attempt");
    const head = el("h4");
    head.append(badge(one.cause || one.verdict), " ", field("model", el("bdi", "", one.model)), el("span", "dim", " " + one.tier + " · " + took(one.duration_ms) + (one.generate_ms || one.verify_ms ? " (asking " + took(one.generate_ms) + ", checking " + took(one.verify_ms) + ")" : "")
      + (one.tokens_in === null ? "" : " · " + one.tokens_in + " → " + one.tokens_out + " tokens") + " · " + money(one.cost_usd) + (one.warm_start === false ? " · cold start" : "")));
    box.append(head);
    if (one.feedback) box.append(field("feedback", el("p", "text", one.feedback)));
    box.append(gates(one.gates));
    for (const flag of Array.isArray(one.flags) ? one.flags : []) {
      const item = el("p", "flag");
      item.append("flag ", el("code", "", flag.id), " ", el("bdi", "", [flag.where, flag.detail, flag.upheld === true ? "upheld" : flag.upheld === false ? "dismissed" : "", flag.why].filter(Boolean).join(" · ")));
      box.append(item);
    }
    for (const ask of one.asks || []) box.append(el("p", "dim text", (ask.follow_up || "task") + ": " + took(ask.duration_ms) + (ask.said ? " · " + ask.said : "")));
    if (one.flaky && one.flaky.length) box.append(field("flaky", el("p", "", "flaky: " + one.flaky.join(", "))));
    box.append(fold("what it answered", "output_summary", one.output_summary), ...(answers || []).map((text) => fold("its whole answer", "answer", text)), fold("diff", "diff", diff(change), last), fold("test output", "runner_output", one.runner_output));
    return box;
  }
  function whole(entry) {
    const body = el("div", "body");
    const kept = entry.kept || {};
    body.append(field("message", el("p", "text", entry.message || "")));
    body.append(facts([["session_id", entry.session_id], ["timestamp", entry.timestamp], ["phase", entry.phase], ["project_root", entry.project_root], ["file_path", entry.file_path], ["model_used", entry.model_used],
      ["top tier alone", entry.top_tier ? entry.top_tier.model + ", " + money(entry.top_tier.cost_usd) + " (" + entry.top_tier.basis.replaceAll("_", " ") + ")" : ""]]));
    const attempts = entry.attempts || [];
    attempts.forEach((one, n) => body.append(attempt(one, (kept.diffs || [])[n], (kept.answers || [])[n], n + 1 === attempts.length)));
    body.append(fold("arguments", "input", entry.input ? JSON.stringify(entry.input, null, 2) : ""));
    return body;
  }

  function pick(change, label) {
    Object.assign(picked, { from: null, to: null, reason: null }, change, { label });
    filter();
    byId("calls").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }
  document.addEventListener("click", (event) => {
    const bar = event.target.closest(".bar");
    if (bar) pick({ from: +bar.dataset.from, to: +bar.dataset.to }, "only calls of " + bar.dataset.label + " UTC");
    const reason = event.target.closest("[data-reason]");
    if (reason) pick({ reason: +reason.dataset.reason }, "only calls with this reason: " + index.reasons[+reason.dataset.reason].filter(Boolean).join(" · "));
    const model = event.target.closest("[data-model]");
    if (model) { byId("model").value = model.dataset.model; pick({}, ""); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.closest(".bar")) event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("input", filter);
  byId("clear").addEventListener("click", () => { byId("filters").reset(); Object.assign(picked, { from: null, to: null, reason: null, label: "" }); filter(); });
  byId("more").addEventListener("click", more);
  filter();
})();
