// `outlast inspect` in Chromium: tasks at FastMCP and at an rmcp server, what a server asks inline,
// and servers that are added by a person.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { Checks, Process, allFaults, openBrowser, openSession, temporaryFolder, until } from './harness.mjs';

const checks = new Checks();
const browser = await openBrowser();
const folder = temporaryFolder();
const env = { ...process.env, HOME: folder.path, XDG_DATA_HOME: folder.path };
const ASKING = join(import.meta.dirname, 'asking_server.mjs');
const processes = [];

/** Starts `outlast inspect` and opens its console. */
async function inspect(...command) {
  const started = new Process(process.env.OUTLAST, ['inspect', '--http', '127.0.0.1:0', ...command], { env });
  const link = await started.line(/^http:/);
  const session = await openSession(browser);
  processes.push(started);
  const page = await session.context.newPage();
  await page.goto(link);
  await page.waitForSelector('nav#pages');
  const { origin } = new URL(link);
  const open = async (path) => {
    const other = await session.context.newPage();
    await other.goto(origin + path);
    return other;
  };
  return { ...session, page, origin, open };
}

const field = (pointer) => `[name=${JSON.stringify(pointer)}]`;

/** Calls a tool as a task at a server with tasks, follows it in the list, and cancels another one there. */
async function tasksAt(site, quick, long) {
  const { page, open } = site;
  const list = await open('/tasks');
  await list.waitForSelector('#empty');
  assert.match(await list.locator('#empty').textContent(), /page Tools/, 'it says how to begin');
  await list.waitForSelector('#stream[data-state="open"]');
  await page.click(`#tool-items li[data-key="${quick.tool}"] a`);
  await page.waitForSelector(`#tool[data-key="tool-${quick.tool}"]`);
  await quick.fill?.(page);
  await page.click('#run');
  await page.waitForSelector('#call-list li[data-status="completed"]');
  assert.match(await page.locator('#call-list li').first().textContent(), quick.result);
  // The list was open before: it gets the row by an event.
  const row = list.locator('#rows tr[data-origin="requested"]');
  await row.first().waitFor();
  await list.waitForSelector('#rows tr outlast-task-status[status="completed"]');
  assert.match(await row.first().textContent(), /Requested/);
  await page.click(`#tool-items li[data-key="${long.tool}"] a`);
  await page.waitForSelector(`#tool[data-key="tool-${long.tool}"]`);
  await long.fill?.(page);
  await page.click('#run');
  await list.waitForSelector('#new-rows:not([hidden])');
  await list.click('#new-rows');
  const working = list.locator('#rows tr:has(outlast-task-status[status="working"])');
  await working.waitFor();
  await working.locator('outlast-task-status').locator('button').click();
  await list.click('#confirm-yes');
  await list.waitForSelector('#rows tr outlast-task-status[status="cancelled"]');
  await list.goto(`${site.origin}/tasks?q=${encodeURIComponent(`origin:requested status:completed tool:${quick.tool}`)}`);
  assert.equal(await list.locator('#rows tr').count(), 1);
  await list.goto(`${site.origin}/tasks?q=origin%3Ahosted`);
  assert.equal(await list.locator('#rows tr').count(), 0);
  await list.goto(`${site.origin}/`);
  assert.equal((await list.locator('[data-count="completed"]').textContent()).trim(), '1', 'the overview counts it');
  await list.close();
}

await checks.check('tasks_at_fastmcp_are_called_listed_and_cancelled', async () => {
  const site = await inspect('--', process.env.PYTHON, process.env.FASTMCP_SERVER, 'stdio');
  await tasksAt(site, { tool: 'slow', result: /\S/ }, { tool: 'endless' });
});

await checks.check('tasks_at_an_rmcp_server_are_called_listed_and_cancelled', async () => {
  const site = await inspect('--', process.env.RMCP_SERVER);
  const pages = (count) => async (page) => {
    await page.fill(field('/title'), 'Tides');
    await page.fill(field('/pages'), count);
  };
  const tool = 'render_report';
  // A call of a few hundred milliseconds is answered without a task.
  await tasksAt(site, { tool, fill: pages('30'), result: /Tides: 30 pages/ }, { tool, fill: pages('900') });
});

const asking = await inspect('--', process.execPath, ASKING);
await asking.page.waitForSelector('#tool-items li[data-key="ask"]');
await asking.page.click('#tool-items li[data-key="ask"] a');
await asking.page.waitForSelector('#call-form');

/** Lets the server ask, and returns the open page with the card. */
async function asked(what, tab = 'elicitations') {
  const page = await asking.open(`/requests?tab=${tab}`);
  await page.waitForSelector('#stream[data-state="open"]');
  await asking.page.selectOption(field('/what'), { label: what });
  await asking.page.click('#run');
  const card = page.locator('#requests section.request');
  await card.waitFor();
  return { page, card };
}

/** What the server received, as the newest call shows it. @param {string} [earlier] the newest call before */
async function received(earlier) {
  const newest = earlier ? `:first-child:not([data-key="${earlier}"])` : ':first-child';
  await asking.page.waitForSelector(`#call-list li${newest}[data-status="completed"]`);
  return JSON.parse(await asking.page.locator('#call-list li:first-child .result pre').first().textContent());
}

await checks.check('a_page_to_open_is_shown_completely_with_its_host', async () => {
  const { page, card } = await asked('page');
  assert.match(await card.textContent(), /https:\/\/example\.invalid\/pay\?amount=5#now/);
  assert.match(await card.locator('dl.facts').textContent(), /example\.invalid/);
  const link = card.locator('a[target="_blank"]');
  assert.equal(await link.getAttribute('href'), 'https://example.invalid/pay?amount=5#now');
  assert.match(await link.getAttribute('rel'), /noopener.*noreferrer/);
  await card.locator('button[value="accept"]').click();
  await page.waitForSelector('#left [data-why]');
  assert.deepEqual(await received(), { action: 'accept' });
  await page.close();
});

await checks.check('a_page_with_a_false_host_has_a_warning_and_a_script_is_no_link', async () => {
  for (const [what, warning] of [['trap', /before the @ is not the host/], ['script', /not the address of a web page/]]) {
    const { page, card } = await asked(what);
    assert.match(await card.textContent(), warning);
    assert.equal(await card.locator('a[href^="javascript:"]').count(), 0);
    assert.equal(await page.locator('main img').count(), 0);
    assert.ok(!(await page.title()).includes('attacked'));
    await card.locator('button[value="decline"]').click();
    await page.waitForSelector('#empty');
    assert.deepEqual(await received(), { action: 'decline' });
    await page.close();
  }
});

await checks.check('hostile_questions_are_text', async () => {
  const { page, card } = await asked('markup');
  assert.match(await card.locator('.asked').textContent(), /<img src=x/);
  assert.equal(await page.locator('main img, main script, main b').count(), 0);
  await card.locator('button[value="cancel"]').last().click();
  await page.waitForSelector('#empty');
  assert.deepEqual(await received(), { action: 'cancel' });
  const sampling = await asked('sampling', 'sampling');
  assert.match(await sampling.card.textContent(), /<script>document\.title/);
  assert.equal(await sampling.page.locator('main img, main script').count(), 0);
  assert.ok(!(await sampling.page.title()).includes('attacked'));
  await sampling.card.locator('button[value="decline"]').click();
  await sampling.page.waitForSelector('#empty');
  await received();
  await sampling.page.close();
  await page.close();
});

await checks.check('a_refused_sampling_request_is_an_error_for_the_server', async () => {
  const { page, card } = await asked('sampling', 'sampling');
  await card.locator('button[value="decline"]').click();
  await page.waitForSelector('#left [data-why]');
  assert.match(await page.locator('#left [data-why]').first().textContent(), /refused|declined/);
  const { error } = await received();
  assert.ok(error.code < 0 && error.message, JSON.stringify(error));
  await page.close();
});

await checks.check('a_wrong_answer_is_reported_at_its_field_and_a_draft_survives_a_reload', async () => {
  const { page, card } = await asked('form');
  await card.locator(field('/name')).fill('Ada');
  await card.locator(field('/age')).fill('999');
  await card.locator('button[value="accept"].primary').click();
  await page.waitForSelector('[aria-invalid="true"]');
  assert.equal(await page.locator(field('/name')).inputValue(), 'Ada');
  await page.goto(`${asking.origin}/requests?tab=elicitations`);
  await page.locator(field('/name')).fill('Ada Lovelace');
  await page.locator(field('/age')).fill('36');
  await page.waitForTimeout(400);
  await page.reload();
  await page.waitForFunction((name) => document.querySelector(name)?.value === 'Ada Lovelace', field('/name'));
  assert.equal(await page.locator(field('/age')).inputValue(), '36');
  await page.locator('section.request button[value="accept"].primary').click();
  await page.waitForSelector('#left [data-why]');
  assert.deepEqual(await received(), { action: 'accept', content: { name: 'Ada Lovelace', age: 36, agrees: true } });
  await page.close();
});

await checks.check('folders_of_the_settings_are_the_roots_of_servers', async () => {
  const page = await asking.open('/connections');
  await page.fill('#roots', 'file:///home/ada/project');
  await page.click('#settings button.primary');
  await page.waitForFunction(() => document.querySelector('#roots')?.value.includes('/home/ada'));
  await page.fill('#roots', 'https://example.invalid/');
  await page.click('#settings button.primary');
  await page.waitForSelector('#connection-problem');
  const earlier = await asking.page.locator('#call-list li').first().getAttribute('data-key');
  await asking.page.selectOption(field('/what'), { label: 'roots' });
  await asking.page.click('#run');
  const { roots } = await received(earlier);
  assert.deepEqual(roots.map(({ uri }) => uri), ['file:///home/ada/project']);
  await page.close();
});

await checks.check('a_request_leaves_when_its_server_ends_and_says_why', async () => {
  const { page } = await asked('leave');
  await page.waitForSelector('#left [data-why]');
  await page.waitForFunction(() => /connection|ended/.test(document.querySelector('#left [data-why]')?.textContent ?? ''));
  await page.waitForSelector('#empty');
  await page.close();
});

await checks.check('a_server_is_added_by_a_command_changed_and_removed', async () => {
  const page = await asking.open('/connections');
  await page.fill('#command', `${process.execPath} ${ASKING} empty`);
  await page.fill('#command-name', 'added');
  await page.click('#add-command button.primary');
  const card = page.locator('section.connection[data-server="added"]');
  await until('the command is connected', async () => (await card.getAttribute('data-health')) === 'open');
  assert.match(await card.textContent(), /legacy/);
  // Each mode is kept, and the connection is opened again in it.
  for (const [mode, health] of [['v1', 'open'], ['plain', 'open'], ['v2', 'failed'], ['auto', 'open']]) {
    await card.locator('select[name="mode"]').selectOption(mode);
    await card.locator('button[value="reconnect"]').click();
    await page.waitForLoadState();
    await until(`the mode ${mode} is ${health}`, async () => (await card.getAttribute('data-health')) === health);
    assert.equal(await card.locator('select[name="mode"]').inputValue(), mode);
    if (health === 'failed') assert.match(await card.locator('.notice').textContent(), /mode/, 'it says what to do');
  }
  await card.locator('button[value="ping"]').click();
  await page.waitForFunction(() => /ms/.test(document.querySelector('section.connection[data-server="added"] dl')?.textContent ?? ''));
  await page.close();
});

await checks.check('connected_without_tools_says_so_and_a_broken_list_says_why', async () => {
  const page = await asking.open('/tools');
  await page.click('#servers a:has-text("added")');
  await page.waitForSelector('#no-tools');
  assert.match(await page.locator('#no-tools').textContent(), /has no tools/);
  await page.goto(`${asking.origin}/connections`);
  await page.locator('section.connection[data-server="added"] button[value="remove"]').click();
  await page.waitForSelector('section.connection[data-server="added"]', { state: 'detached' });
  await page.fill('#command', `${process.execPath} ${ASKING} broken`);
  await page.fill('#command-name', 'broken');
  await page.click('#add-command button.primary');
  const card = page.locator('section.connection[data-server="broken"]');
  await until('it is connected', async () => (await card.getAttribute('data-health')) === 'open');
  await card.locator('a:has-text("Tools")').click();
  await page.waitForSelector('#tools-problem');
  assert.match(await page.locator('#tools-problem').textContent(), /the list of tools is broken.*Read the tools again/s);
  await page.close();
});

await checks.check('a_server_is_added_by_url_with_headers_that_are_never_shown', async () => {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(request.headers['x-secret']);
    response.writeHead(401, { 'content-type': 'text/plain' }).end('no');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const page = await asking.open('/connections');
  await page.fill('#url', `http://127.0.0.1:${server.address().port}/mcp`);
  await page.fill('#headers', 'X-Secret: hunter2');
  await page.fill('#url-name', 'by-url');
  await page.click('#add-url button.primary');
  const card = page.locator('section.connection[data-server="by-url"]');
  await until('it has failed', async () => (await card.getAttribute('data-health')) === 'failed');
  assert.ok(seen.length > 0 && seen.every((value) => value === 'hunter2'), seen.join());
  assert.match(await card.textContent(), /Authorization: Bearer/, 'it says what to do');
  assert.ok(!(await page.content()).includes('hunter2'));
  await page.goto(`${asking.origin}/traffic`);
  assert.ok(!(await page.content()).includes('hunter2'));
  await card.page().goto(`${asking.origin}/connections`);
  await card.locator('button[value="remove"]').click();
  await page.waitForSelector('section.connection[data-server="by-url"]', { state: 'detached' });
  server.close();
  await page.close();
});

await checks.check('the_file_of_a_host_is_imported', async () => {
  const page = await asking.open('/connections');
  await page.fill('#file', '{ "mcpServers": ');
  await page.click('#import button.primary');
  await page.waitForSelector('#connection-problem');
  const file = { mcpServers: { 'from-file': { command: process.execPath, args: [ASKING], env: { KEY: 'hunter3' } } } };
  await page.fill('#file', JSON.stringify(file));
  await page.click('#import button.primary');
  const card = page.locator('section.connection[data-server="from-file"]');
  await until('it is connected', async () => (await card.getAttribute('data-health')) === 'open');
  assert.match(await card.textContent(), /from import/);
  assert.ok(!(await page.content()).includes('hunter3'));
  await page.close();
});

await checks.check('an_edited_form_is_unchanged_through_a_thousand_updates', async () => {
  const page = await asking.open('/connections');
  await page.setViewportSize({ width: 1000, height: 500 });
  await page.waitForSelector('#stream[data-state="open"]');
  const card = page.locator('section.connection[data-server="from-file"]');
  await card.locator('details[data-key="capabilities"] summary').click();
  const updates = () => page.evaluate(() => window.updates);
  await page.evaluate(() => {
    window.updates = 0;
    window.loads = 0;
    new EventSource(`${document.documentElement.dataset.base}/api/v1/events`)
      .addEventListener('connectionChanged', () => { window.updates += 1; });
    document.addEventListener('outlast-refreshed', () => { window.loads += 1; });
  });
  const other = await asking.open('/connections');
  /** Measures the connection this many times: each is an event, and a change of the page. */
  const change = (times) => other.evaluate(async (count) => {
    const csrf = document.querySelector('meta[name="csrf"]').content;
    const body = new URLSearchParams({ csrf, server: 'from-file', source: 'import', op: 'ping' });
    const post = () => fetch('/connections/change', { method: 'POST', body, redirect: 'manual' });
    for (let n = 0; n < count; n += 10) await Promise.all(Array.from({ length: 10 }, post));
  }, times);
  const input = page.locator('#command');
  await input.scrollIntoViewIfNeeded();
  await input.pressSequentially('node server.mjs');
  await input.press('ArrowLeft');
  await input.press('ArrowLeft');
  await page.waitForTimeout(200);
  const look = () => page.evaluate(() => {
    const element = document.querySelector('#command');
    window.sameInput ??= element;
    return {
      isSame: element === window.sameInput && document.activeElement === element,
      text: element.value,
      caret: element.selectionStart,
      // The part above grows by a line: the browser scrolls by as much, so that the field stays
      // where it is.
      top: Math.round(element.getBoundingClientRect().top),
      isOpen: document.querySelector('section.connection[data-server="from-file"] details[data-key="capabilities"]').open,
    };
  });
  const before = await look();
  assert.ok(before.isSame && before.isOpen && before.caret === 13, JSON.stringify(before));
  const scrolled = await page.evaluate(() => scrollY);
  assert.ok(scrolled > 100, `the page is scrolled: ${scrolled}`);
  await change(1000);
  await until('a thousand updates arrived', async () => (await updates()) >= 1000);
  await input.press('x');
  await page.waitForTimeout(1500);
  assert.deepEqual(await look(), { ...before, text: 'node server.mxjs', caret: 14 });
  const loads = await page.evaluate(() => window.loads);
  assert.ok(loads >= 2, `the page was changed ${loads} times`);
  // A selection and a focused button of a part that changes.
  await page.evaluate(() => {
    const address = document.querySelector('section.connection[data-server="from-file"] .address code');
    document.getSelection().selectAllChildren(address);
    window.selected = document.getSelection().toString();
  });
  await change(100);
  await page.waitForTimeout(1500);
  assert.ok(await page.evaluate(() => window.selected.length > 5 && document.getSelection().toString() === window.selected));
  await page.evaluate(() => {
    document.getSelection().removeAllRanges();
    window.button = document.querySelector('section.connection[data-server="from-file"] button[value="reconnect"]');
    window.button.focus();
  });
  await change(100);
  await page.waitForTimeout(1500);
  assert.ok(await page.evaluate(() => window.button.isConnected && document.activeElement === window.button));
  await page.close();
  await other.close();
});

await checks.check('no_page_reported_an_error', async () => {
  assert.deepEqual(allFaults.flat(), []);
});

await browser.close();
for (const one of processes) await one.end();
folder.close();
checks.finish();
