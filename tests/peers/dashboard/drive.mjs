// Drives every page of the dashboard in Chromium, as the test `dashboard_browser` asks it to. Prints one JSON document: what was seen, and every fault.
//
// node drive.mjs '{"packages", "chromium", "link", "origin", "folder", "tool", "callUrl", "callHeaders"}'

import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const plan = JSON.parse(process.argv[2]);
const require = createRequire(join(plan.packages, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(join(plan.packages, "axe-core/axe.min.js"), "utf8");

const WIDTHS = [390, 820, 1440];
const THEMES = ["light", "dark"];
const faults = [];
const seen = {};

const browser = await chromium.launch({ executablePath: plan.chromium, args: ["--no-sandbox"] });

// A context whose pages report what must not happen.
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(20_000);
  context.on("page", (page) => {
    page.on("console", (message) => message.type() === "error" && !expected(message) && faults.push(`console: ${message.text()} ${message.location().url}`));
    page.on("pageerror", (error) => faults.push(`script: ${error}`));
    page.on("dialog", (dialog) => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
    page.on("request", (request) => {
      if (!request.url().startsWith(plan.origin) && !request.url().startsWith("data:")) faults.push(`request to ${request.url()}`);
    });
  });
  return context;
}

// Chromium reports a page with an error status in the console; those are asked for below.
const expected = (message) => message.text().includes("status of 403") || message.text().includes("status of 404") || message.text().includes("status of 410");

async function check(page, name) {
  if (await page.evaluate(() => window.owned)) faults.push(`${name}: a text of a server ran as a script`);
  const images = await page.evaluate(() => [...document.images].filter((image) => !image.src.includes("/ui/assets/")).length);
  if (images) faults.push(`${name}: a text of a server became an image`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);
  if (wide) {
    const who = await page.evaluate(() => [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, pre, .tabs, .top ul")).slice(0, 3).map((one) => one.outerHTML.slice(0, 120)));
    faults.push(`${name}: the page scrolls sideways at ${page.viewportSize().width}: ${who.join(" | ")}`);
  }
}

// axe is loaded by the browser's own tools, which the policy of the page does not hold back.
async function audit(page, name) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    expression: "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).slice(0, 3).join(' | '))))",
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) faults.push(`${name}: axe failed: ${exceptionDetails.text} ${exceptionDetails.exception?.description}`);
  else for (const found of JSON.parse(result.value)) faults.push(`${name}: axe: ${found}`);
  await session.detach();
}

try {
  mkdirSync(plan.folder, { recursive: true });

  // Without a token the user may look and call, and change nothing.
  const reader = await open();
  const looked = await reader.newPage();
  await looked.goto(plan.origin + "/");
  seen.reader = await looked.locator(".who .name").innerText();
  seen.readerButtons = await looked.getByRole("button", { name: "Disable" }).count();
  await looked.goto(plan.origin + "/ui/servers");
  seen.readerButtons += await looked.getByRole("button", { name: "Disable" }).count();
  await reader.close();

  // The link of `pegboard open` works once.
  const context = await open();
  const page = await context.newPage();
  await page.goto(plan.link);
  seen.owner = await page.locator(".who .name").innerText();
  seen.landed = new URL(page.url()).pathname;
  const again = await context.newPage();
  const second = await again.goto(plan.link);
  seen.secondUse = second.status();
  await again.close();

  // A call appears in the feed without a reload.
  await page.goto(plan.origin + "/ui/calls");
  const before = await page.locator("table.calls tbody tr").count();
  for (let at = 0; at < 5; at++) {
    const response = await fetch(plan.callUrl, { method: "POST", headers: plan.callHeaders, body: JSON.stringify({ name: "good.search", arguments: { query: `oak ${at}`, limit: 3 }, id: `feed-${at}` }) });
    if (!response.ok) faults.push(`call ${at}: ${response.status} ${await response.text()}`);
  }
  await page.waitForFunction((rows) => document.querySelectorAll("table.calls tbody tr").length >= rows + 5, before);
  await page.getByRole("link", { name: "good.search" }).first().click();
  seen.waterfall = await page.locator("table.waterfall").innerText();
  seen.arguments = await page.locator("pre").first().innerText();
  const call = new URL(page.url()).pathname;

  // A tool is found as its name is typed, and called with a form.
  await page.goto(plan.origin + "/ui/tools");
  await page.keyboard.press("/");
  await page.keyboard.type("sear");
  await page.waitForFunction(() => document.querySelectorAll("table.tools tbody tr").length >= 1 && location.search.includes("sear"));
  await page.getByRole("link", { name: "search" }).first().click();
  await page.getByLabel("query").fill("elm");
  await page.getByLabel("limit").fill("2");
  await page.getByRole("button", { name: "Call the tool" }).click();
  seen.result = await page.locator(".result pre").first().innerText();
  const tool = plan.tool;

  // What a hostile server says is text.
  await page.goto(plan.origin + "/ui/tools?q=hostile");
  await check(page, "hostile tools");
  await page.locator("table.tools a").first().click();
  await check(page, "hostile tool");
  await page.getByRole("button", { name: "Call the tool" }).click();
  seen.hostile = await page.locator(".result pre").first().innerText();
  await check(page, "hostile result");

  // So is its definition, which a person accepts.
  await page.goto(plan.origin + "/ui/policy");
  await page.locator('a[href^="/ui/definitions/hostile/"]', { hasText: "hostile" }).first().click();
  await check(page, "hostile definition");
  seen.definition = await page.locator("main").innerText();
  const definition = new URL(page.url()).pathname;

  // A server that dies is shown as it is, and can be disabled and enabled.
  await page.goto(plan.origin + "/ui/servers/dies");
  seen.dead = await page.locator("#instances").innerText();
  await page.locator("#instances").getByRole("button", { name: "Disable" }).click();
  await page.locator("#instances .badge", { hasText: "disabled" }).waitFor();
  await page.locator("#instances").getByRole("button", { name: "Enable" }).click();
  await page.locator("#instances .badge", { hasText: /down|crash looping|connecting/ }).first().waitFor();

  // A change that others make is shown without a reload.
  await page.goto(plan.origin + "/ui/servers");
  const other = await context.newPage();
  await other.goto(plan.origin + "/ui/servers/floods");
  await other.locator("#instances").getByRole("button", { name: "Disable" }).click();
  await page.locator("tr", { hasText: "floods" }).locator(".badge", { hasText: "disabled" }).waitFor();
  await other.locator("#instances").getByRole("button", { name: "Enable" }).click();
  await page.locator("tr", { hasText: "floods" }).locator(".badge", { hasText: "ready" }).waitFor();
  await other.close();

  // A server that needs a sign-in leads to its page.
  await page.locator("tr", { hasText: "locked" }).getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/signin/server/locked*");
  seen.signIn = await page.locator("h1").innerText();

  // A form without the token of the session is refused.
  await page.goto(plan.origin + "/ui/servers");
  seen.forged = await page.evaluate(async () => (await fetch("/ui/servers/good/disable", { method: "POST", body: "form_token=x" })).status);

  // Every page, at every width, in both themes.
  const pages = { overview: "/", servers: "/ui/servers", server: "/ui/servers/dies", good: "/ui/servers/good", tools: "/ui/tools", tool, calls: "/ui/calls", call, agents: "/ui/agents", policy: "/ui/policy", definition, config: "/ui/config", "sign-in": "/ui/sign-in", missing: "/ui/nowhere" };
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [name, path] of Object.entries(pages)) {
      await page.setViewportSize({ width: 1440, height: 900 });
      const response = await page.goto(plan.origin + path);
      if (name !== "missing" && !response.ok()) faults.push(`${name}: status ${response.status()}`);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: width < 500 ? 844 : 900 });
        await page.waitForTimeout(50);
        await check(page, name);
        await page.screenshot({ path: join(plan.folder, `${name}-${width}-${theme}.png`), fullPage: false });
        if (width !== 820) await audit(page, `${name} ${width} ${theme}`);
      }
    }
  }

  // What is accepted is no longer on the list.
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(plan.origin + definition);
  await page.getByRole("button", { name: "Accept this definition" }).click();
  await page.waitForURL("**/ui/policy");
  seen.leftDefinitions = await page.locator(`a[href="${definition}"]`).count();

  // Keys lead through the pages.
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto(plan.origin + "/");
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.waitForURL("**/ui/servers");
  await page.keyboard.press("j");
  seen.focused = await page.evaluate(() => document.activeElement.matches("a[data-row]"));

  // The session ends with the sign-out.
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL("**/ui/sign-in");
  await page.goto(plan.origin + "/");
  seen.after = await page.locator(".who .name").innerText();
} catch (error) {
  faults.push(`the test stopped: ${error.stack ?? error}`);
} finally {
  await browser.close();
}

process.stdout.write(JSON.stringify({ seen, faults }) + "\n");
