"use strict";
// The page of an OpenAPI document: what there is to call, and a form to call it. All
// text of the document goes through text nodes, never through HTML.

const methods = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];
let doc, server = "";
const credentials = {};

// el makes an element: el("a.quiet", {href: "#"}, "text", child).
function el(kind, attributes, ...children) {
  const [tag, ...classes] = kind.split(".");
  const e = document.createElement(tag);
  if (classes.length) e.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value != null) e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c != null && c !== false));
  return e;
}

// deref follows a reference inside the document.
function deref(o) {
  for (let n = 0; o && o.$ref && n < 20; n++) {
    const found = o.$ref.slice(2).split("/").reduce((at, step) => at && at[step.replace(/~1/g, "/").replace(/~0/g, "~")], doc);
    const {$ref, ...beside} = o;
    o = {...found, ...beside};
  }
  return o || {};
}

const refName = (s) => (s && s.$ref ? s.$ref.slice(s.$ref.lastIndexOf("/") + 1) : "");

// operations lists what can be called.
function operations() {
  const list = [];
  for (const [path, item] of Object.entries(doc.paths || {})) {
    for (const method of methods) {
      if (item[method]) list.push({path, method, op: item[method], id: item[method].operationId || method + path});
    }
  }
  return list;
}

// paragraphs shows CommonMark as far as prose needs it: paragraphs and `code`.
function paragraphs(text) {
  return (text || "").split(/\n\s*\n/).filter(Boolean).map((p) => {
    const e = el("p");
    p.split(/(`[^`]+`)/).forEach((s) => e.append(s.startsWith("`") && s.length > 2 ? el("code", null, s.slice(1, -1)) : s));
    return e;
  });
}

// typeText names a schema in a few words.
function typeText(s) {
  if (s === true || s == null) return "any";
  const name = refName(s);
  if (name) return name;
  if (s.anyOf) return s.anyOf.map(typeText).join(" or ");
  if (s.allOf) return s.allOf.map(typeText).join(" and ");
  if (s.type === "array") return "list of " + typeText(s.items);
  if (s.type === "object" && s.additionalProperties && !s.properties) return "map of " + typeText(s.additionalProperties);
  return [s.type || "any", s.format ? "(" + s.format + ")" : ""].join(" ").trim();
}

const ruleNames = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems",
  "uniqueItems", "minProperties", "maxProperties", "enum", "const", "default", "contentEncoding", "contentMediaType"];

// ruleText lists the rules of a schema.
function ruleText(s) {
  return ruleNames.filter((n) => s && s[n] !== undefined).map((n) => n + " " + (typeof s[n] === "string" ? s[n] : JSON.stringify(s[n])));
}

// schemaView shows a schema with its members, opened on demand so that recursion ends.
function schemaView(schema, depth = 0) {
  const s = deref(schema);
  const box = el("div");
  const rules = ruleText(s);
  box.append(el("span.quiet", null, typeText(schema)), rules.length ? el("span.quiet", null, " · " + rules.join(" · ")) : "");
  if (s.description) box.append(...paragraphs(s.description));
  const inner = (s.anyOf || s.allOf || []).concat(s.items || []).concat(typeof s.additionalProperties === "object" ? s.additionalProperties : []);
  const open = () => {
    const members = el("div.members");
    for (const [name, m] of Object.entries(s.properties || {})) {
      members.append(el("div", null, el("code" + (m.deprecated ? ".old" : ""), null, name), " ",
        (s.required || []).includes(name) ? el("span.must", null, "required ") : "", schemaView(m, depth + 1)));
    }
    inner.filter((i) => deref(i).properties || deref(i).items || deref(i).anyOf).forEach((i) => members.append(schemaView(i, depth + 1)));
    return members;
  };
  if (s.properties || inner.some((i) => deref(i).properties || deref(i).items || deref(i).anyOf)) {
    if (depth < 2) box.append(open());
    else {
      const d = el("details", {ontoggle: () => { if (d.open && d.children.length === 1) d.append(open()); }}, el("summary", null, "members"));
      box.append(d);
    }
  }
  return box;
}

// sample makes a value that a schema could have.
function sample(schema, depth = 0) {
  const s = deref(schema);
  if (s.examples && s.examples.length) return s.examples[0];
  if (s.default !== undefined) return s.default;
  if (s.enum) return s.enum[0];
  if (s.const !== undefined) return s.const;
  if (s.anyOf) return sample(s.anyOf[0], depth);
  if (s.allOf) return Object.assign({}, ...s.allOf.map((p) => sample(p, depth)));
  switch (s.type) {
    case "object": {
      const o = {};
      for (const [name, m] of Object.entries(s.properties || {})) {
        if ((s.required || []).includes(name) || depth < 1 && !deref(m).properties) o[name] = depth > 4 ? null : sample(m, depth + 1);
      }
      return o;
    }
    case "array": return Array.from({length: Math.max(s.minItems || 0, depth < 3 ? 1 : 0)}, () => sample(s.items, depth + 1));
    case "integer": case "number": {
      const least = s.minimum !== undefined ? s.minimum : s.exclusiveMinimum !== undefined ? s.exclusiveMinimum + 1 : 0;
      return s.multipleOf ? Math.ceil(least / s.multipleOf) * s.multipleOf : least;
    }
    case "boolean": return false;
    case "null": return null;
    case "string": {
      const byFormat = {"date-time": "2026-01-31T15:04:05Z", date: "2026-01-31", time: "15:04:05Z", email: "somebody@example.com", uuid: "123e4567-e89b-12d3-a456-426614174000",
        uri: "https://example.com/", "uri-reference": "/", ipv4: "127.0.0.1", ipv6: "::1", hostname: "example.com", "go-duration": "1m30s"};
      return (byFormat[s.format] || "text").padEnd(s.minLength || 0, "x").slice(0, s.maxLength || undefined);
    }
  }
  return {};
}

// describe shows one operation.
function show(entry) {
  const {path, method, op} = entry;
  const main = document.getElementById("main");
  const parameters = (op.parameters || []).map(deref);
  const title = el("h2" + (op.deprecated ? ".old" : ""), null, op.summary || entry.id);
  main.replaceChildren(title,
    el("div.path", null, el("span.method." + method, null, method), " ", path, " ", op.deprecated ? el("span.tag", null, "deprecated") : ""),
    ...paragraphs(op.description));
  main.append(tryForm(entry, parameters));
  const body = deref(op.requestBody);
  for (const [media, content] of Object.entries(body.content || {})) {
    main.append(el("h3", null, "Body ", el("span.tag", null, media), body.required ? el("span.must", null, " required") : ""), schemaView(content.schema));
  }
  main.append(el("h3", null, "Answers"));
  for (const [status, raw] of Object.entries(op.responses || {})) {
    const r = deref(raw);
    const d = el("details", {open: status < "300"}, el("summary", null, el("span.status." + (status < "400" ? "good" : "bad"), null, status), " ", r.description || ""));
    const inside = el("div");
    for (const [name, h] of Object.entries(r.headers || {})) {
      inside.append(el("div", null, el("code", null, name), " ", el("span.quiet", null, typeText(deref(h).schema) + " header")));
    }
    for (const [media, content] of Object.entries(r.content || {})) {
      inside.append(el("div", null, el("span.tag", null, media)), schemaView(content.itemSchema || content.schema || {}));
      for (const [name, e] of Object.entries(content.examples || {})) {
        inside.append(el("pre", null, "// " + (deref(e).summary || name) + "\n" + JSON.stringify(deref(e).value, null, 2)));
      }
    }
    d.append(inside);
    main.append(d);
  }
  document.title = (op.summary || entry.id) + " · " + doc.info.title;
}

// schemesOf lists the names of the security schemes of an operation.
const schemesOf = (op) => [...new Set((op.security || doc.security || []).flatMap(Object.keys))];

// credentialRows asks for the credentials of security schemes.
function credentialRows(names) {
  const rows = [];
  for (const name of names) {
    const scheme = ((doc.components || {}).securitySchemes || {})[name];
    if (!scheme) continue;
    const what = scheme.type === "apiKey" ? scheme.name + " (" + scheme.in + ")" : scheme.scheme === "basic" ? "name:password" : "token";
    rows.push(el("tr", null, el("td.name", null, el("code", null, name), " ", el("span.tag", null, "credentials")), el("td.quiet", null, what),
      el("td.input", null, el("input", {type: "password", autocomplete: "off", "aria-label": name, value: credentials[name] || "", oninput: (e) => { credentials[name] = e.target.value; }}))));
  }
  return rows;
}

// tryForm is the parameters with fields to fill in, the body, and what came back.
function tryForm(entry, parameters) {
  const {op} = entry;
  const inputs = [];
  const rows = parameters.map((p) => {
    const s = deref(p.schema);
    let input;
    const values = s.enum || (s.type === "boolean" ? [true, false] : null);
    if (values) input = el("select", {"aria-label": p.name}, p.required ? null : el("option", {value: ""}, "—"), ...values.map((v) => el("option", {value: String(v)}, String(v))));
    else input = el("input", {"aria-label": p.name, placeholder: s.default !== undefined ? String(s.default) : s.type === "array" ? "separated by commas" : "",
      value: p.in === "path" ? String(p.example !== undefined ? p.example : sample(p.schema)) : p.example !== undefined ? p.example : ""});
    inputs.push({p, input});
    return el("tr", null,
      el("td.name", null, el("code" + (p.deprecated ? ".old" : ""), null, p.name), " ", el("span.tag", null, p.in), p.required ? el("span.must", null, " required") : ""),
      el("td", null, el("span.quiet", null, [typeText(p.schema), ...ruleText(s)].join(" · ")), ...paragraphs(p.description)),
      el("td.input", null, input));
  });
  rows.push(...credentialRows(schemesOf(op)));
  const box = el("section", {"aria-label": "Request"}, el("h3", null, "Request"));
  if (rows.length) box.append(el("table", null, el("tbody", null, ...rows)));
  const content = deref(op.requestBody).content || {};
  const kinds = Object.keys(content);
  let body, kind, fields;
  if (kinds.length) {
    kind = el("select", {"aria-label": "Media type", onchange: () => fill()}, ...kinds.map((k) => el("option", {value: k}, k)));
    const place = el("div");
    const fill = () => {
      const c = content[kind.value];
      fields = body = null;
      if (kind.value.startsWith("multipart/") || kind.value === "application/x-www-form-urlencoded") {
        const s = deref(c.schema);
        fields = Object.entries(s.properties || {}).map(([name, m]) => {
          const file = deref(m).format === "binary" || deref(deref(m).items).format === "binary";
          return {name, file, input: el("input", {type: file ? "file" : "text", multiple: file && deref(m).type === "array", "aria-label": name})};
        });
        place.replaceChildren(el("table", null, el("tbody", null, ...fields.map((f) => el("tr", null, el("td.name", null, el("code", null, f.name)), el("td", null, f.input))))));
        return;
      }
      const examples = Object.values(c.examples || {});
      const value = examples.length ? deref(examples[0]).value : sample(c.schema || {});
      body = el("textarea", {"aria-label": "Body", spellcheck: "false"});
      body.value = /json/.test(kind.value) ? JSON.stringify(value, null, 2) : "";
      place.replaceChildren(body);
    };
    fill();
    box.append(el("div.row", null, el("span.quiet", null, "Body"), kinds.length > 1 ? kind : el("span.tag", null, kinds[0])), place);
  }
  const result = el("div", {"aria-live": "polite"});
  const send = el("button.go", {type: "button", onclick: async () => {
    send.disabled = true;
    try {
      await call(entry, inputs, kind && {kind: kind.value, body, fields}, result);
    } catch (err) {
      result.replaceChildren(el("p.status.bad", null, String(err)));
    }
    send.disabled = false;
  }}, "Send");
  box.append(el("div.row", null, send), result);
  return box;
}

// request builds what is sent: the URL and the options of fetch.
function request(entry, inputs, content) {
  let path = entry.path;
  const query = [], headers = {};
  for (const {p, input} of inputs) {
    const value = input.value;
    if (p.in === "path") path = path.replace("{" + p.name + "}", encodeURIComponent(value));
    else if (value === "") continue;
    else if (p.in === "header") headers[p.name] = value;
    else if (p.in === "query") {
      const list = deref(p.schema).type === "array" && p.explode !== false ? value.split(",") : [value];
      list.forEach((v) => query.push(encodeURIComponent(p.name) + "=" + encodeURIComponent(v.trim()).replace(/%2C/g, p.explode === false ? "," : "%2C")));
    } else if (p.in === "cookie") document.cookie = p.name + "=" + encodeURIComponent(value) + "; path=/; samesite=strict";
  }
  for (const name of schemesOf(entry.op)) {
    const scheme = ((doc.components || {}).securitySchemes || {})[name] || {}, value = credentials[name];
    if (!value) continue;
    if (scheme.type === "apiKey" && scheme.in === "header") headers[scheme.name] = value;
    else if (scheme.type === "apiKey" && scheme.in === "query") query.push(encodeURIComponent(scheme.name) + "=" + encodeURIComponent(value));
    else if (scheme.type === "apiKey") document.cookie = scheme.name + "=" + encodeURIComponent(value) + "; path=/; samesite=strict";
    else if (scheme.scheme === "basic") headers.Authorization = "Basic " + btoa(value);
    else headers.Authorization = "Bearer " + value;
  }
  let body;
  if (content && content.fields) {
    body = content.kind.startsWith("multipart/") ? new FormData() : new URLSearchParams();
    for (const f of content.fields) {
      if (f.file) for (const file of f.input.files) body.append(f.name, file);
      else if (f.input.value !== "") body.append(f.name, f.input.value);
    }
  } else if (content && content.body && content.body.value !== "") {
    headers["Content-Type"] = content.kind;
    body = content.body.value;
  }
  return {url: server.replace(/\/$/, "") + path + (query.length ? "?" + query.join("&") : ""), options: {method: entry.method.toUpperCase(), headers, body}};
}

const quote = (s) => "'" + String(s).replace(/'/g, "'\\''") + "'";

function curl(url, options) {
  const parts = ["curl", "-X", options.method, quote(new URL(url, location.href).href)];
  for (const [name, value] of Object.entries(options.headers)) parts.push("-H", quote(name + ": " + value));
  if (options.body instanceof FormData) for (const [n, v] of options.body) parts.push("-F", quote(n + "=" + (v instanceof File ? "@" + v.name : v)));
  else if (options.body !== undefined) parts.push("--data-raw", quote(options.body));
  return parts.join(" ");
}

// call sends the request and shows what came back, a stream as it comes.
async function call(entry, inputs, content, result) {
  const {url, options} = request(entry, inputs, content);
  const began = performance.now();
  const response = await fetch(url, options);
  const head = el("p", null, el("span.status." + (response.ok ? "good" : "bad"), {id: "status"}, response.status + " " + response.statusText),
    el("span.quiet", null, " after " + Math.round(performance.now() - began) + " ms"));
  const text = el("pre", {id: "answer"});
  const list = [...response.headers].map(([n, v]) => n + ": " + v).join("\n");
  result.replaceChildren(head, text,
    el("details", null, el("summary", null, "Headers"), el("div", null, el("pre", null, list))),
    el("details", null, el("summary", null, "As a command"), el("div", null, el("pre", null, curl(url, options)))));
  const kind = response.headers.get("Content-Type") || "";
  if (/event-stream|jsonl/.test(kind)) {
    const stop = el("button", {type: "button", onclick: () => reader.cancel()}, "Stop");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    head.append(" ", stop);
    for (let part = await reader.read(); !part.done; part = await reader.read()) text.append(part.value);
    stop.remove();
  } else if (/json/.test(kind)) {
    const body = await response.text();
    try { text.append(JSON.stringify(JSON.parse(body), null, 2)); } catch { text.append(body); }
  } else if (/^text\/|^$/.test(kind)) {
    text.append(await response.text());
  } else {
    const blob = await response.blob();
    text.append(kind + ", " + blob.size + " bytes ");
    text.append(el("a", {href: URL.createObjectURL(blob), download: "answer"}, "save"));
  }
  if (!text.textContent) text.remove();
}

// byTag groups operations by their first tag, in the order of the document.
function byTag(list) {
  const groups = new Map((doc.tags || []).map((t) => [t.name, []]));
  for (const entry of list) {
    const tag = (entry.op.tags || [])[0] || "";
    if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push(entry);
  }
  return [...groups].filter(([, entries]) => entries.length);
}

// navigation lists the operations by tag, with a filter.
function navigation(list) {
  const nav = document.getElementById("nav");
  const filter = el("input", {type: "search", placeholder: "Filter", "aria-label": "Filter operations", oninput: () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    nav.querySelectorAll("li").forEach((li) => { li.hidden = !words.every((w) => li.dataset.text.includes(w)); });
  }});
  const theme = el("button", {type: "button", title: "Light or dark", "aria-label": "Light or dark", onclick: () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || !document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  }}, "◐");
  nav.replaceChildren(el("h1", null, doc.info.title), el("div.quiet", null, "version " + doc.info.version + " · OpenAPI " + doc.openapi + " · ",
    el("a", {href: document.body.dataset.document}, "document")), el("div.tools", null, filter, theme));
  const servers = (doc.servers || []).map((s) => s.url);
  server = "";
  if (servers.length) {
    nav.append(el("div.tools", null, el("select", {"aria-label": "Server", onchange: (e) => { server = e.target.value; }},
      el("option", {value: ""}, "this server"), ...servers.map((u) => el("option", {value: u}, u)))));
  }
  for (const [tag, entries] of byTag(list)) {
    nav.append(el("h2", null, tag || "Operations"), el("ul", null, ...entries.map((e) => el("li", {"data-text": (e.method + " " + e.path + " " + e.id + " " + (e.op.summary || "")).toLowerCase()},
      el("a", {href: "#" + encodeURIComponent(e.id), title: e.method.toUpperCase() + " " + e.path}, el("span.method." + e.method, null, e.method),
        el("span" + (e.op.deprecated ? ".old" : ""), null, e.op.summary || e.path))))));
  }
}

// overview shows the description, the credentials for all operations, and the list of operations.
function overview(list) {
  const main = document.getElementById("main");
  main.replaceChildren(el("h2", null, doc.info.title), el("p.quiet", null, doc.info.summary || ""), ...paragraphs(doc.info.description));
  const rows = credentialRows([...new Set(list.flatMap((e) => schemesOf(e.op)))]);
  if (rows.length) main.append(el("section", {"aria-label": "Login"}, el("h3", null, "Login"), el("table", null, el("tbody", null, ...rows))));
  const described = Object.fromEntries((doc.tags || []).map((t) => [t.name, t.description]));
  for (const [tag, entries] of byTag(list)) {
    main.append(el("h3", null, tag || "Operations"), ...paragraphs(described[tag]), el("table", null, el("tbody", null, ...entries.map((e) => el("tr", null,
      el("td.name", null, el("span.method." + e.method, null, e.method), " ", el("a", {href: "#" + encodeURIComponent(e.id)}, el("code", null, e.path))),
      el("td" + (e.op.deprecated ? ".old" : ""), null, e.op.summary || ""))))));
  }
}

async function start() {
  const main = document.getElementById("main");
  try {
    const response = await fetch(document.body.dataset.document);
    if (!response.ok) throw new Error("the document is answered with " + response.status);
    doc = await response.json();
  } catch (err) {
    main.replaceChildren(el("p.status.bad", null, String(err)));
    return;
  }
  const list = operations();
  navigation(list);
  const route = () => {
    document.title = doc.info.title;
    const entry = list.find((e) => location.hash === "#" + encodeURIComponent(e.id));
    entry ? show(entry) : overview(list);
    document.querySelectorAll("nav a").forEach((a) => a.toggleAttribute("aria-current", !!entry && a.hash === "#" + encodeURIComponent(entry.id)));
  };
  addEventListener("hashchange", () => { route(); main.focus(); scrollTo(0, 0); });
  route();
}
start();
