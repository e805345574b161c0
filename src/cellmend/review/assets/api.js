// The server, asked with the token of this start. What it refuses is an Error with its sentence.
const TOKEN = new URLSearchParams(location.search).get("token") ?? "";

async function call(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { "X-Cellmend-Token": TOKEN, ...options.headers } });
  } catch {
    throw Object.assign(new Error("The server does not answer. What it acknowledged is saved; start cellmend review again and open the new address."), { status: 0 });
  }
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({ error: `The server answered ${answer.status}.` }));
    throw Object.assign(new Error(said.error), { status: answer.status, mayInsist: said.may_insist === true });
  }
  return answer;
}

export async function ask(name, question = {}) {
  const given = Object.entries(question).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return (await call(`/api/${name}?${new URLSearchParams(given)}`)).json();
}

export async function tell(name, deed = {}) {
  const body = JSON.stringify(deed);
  return (await call(`/api/${name}`, { method: "POST", body, headers: { "Content-Type": "application/json" } })).json();
}

export async function download(what, name) {
  const file = URL.createObjectURL(await (await call(`/api/export/${what}`)).blob());
  Object.assign(document.createElement("a"), { href: file, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(file), 60_000);
}
