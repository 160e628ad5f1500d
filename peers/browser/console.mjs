// The web console of `outlast serve` in Chromium, with real servers behind the gateway and two owners.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Gateway, TOKENS } from './gateway.mjs';
import { Checks, openBrowser, openSession, until } from './harness.mjs';

const checks = new Checks();
const browser = await openBrowser();
// Many tasks of ada, so that lists have many pages.
const gateway = await Gateway.start({ tasks: 100_000 });

/** A session of an owner, signed in with its token. */
async function signedIn(token, options) {
  const session = await openSession(browser, options);
  const page = await session.context.newPage();
  await page.goto(`${gateway.origin}/sign-in`);
  await page.fill('#token', token);
  await page.click('#sign-in-form button');
  await page.waitForSelector('nav#pages');
  return { ...session, page };
}

await checks.check('the_printed_link_signs_in_once', async () => {
  const link = await gateway.link();
  const { context, faults } = await openSession(browser);
  const page = await context.newPage();
  await page.goto(link);
  await page.waitForSelector('nav#pages');
  assert.equal(new URL(page.url()).search, '', 'the token leaves the address');
  const [cookie] = await context.cookies();
  assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict', JSON.stringify(cookie));
  const mcp = await context.request.post(`${gateway.origin}/mcp/everything`, {
    data: { jsonrpc: '2.0', id: 1, method: 'ping' },
  });
  assert.equal(mcp.status(), 401, 'the endpoint ignores the cookie');
  const other = await openSession(browser);
  const second = await other.context.newPage();
  await second.goto(link);
  await second.waitForSelector('#sign-in-form');
  assert.deepEqual([...faults, ...other.faults], []);
  await context.close();
  await other.context.close();
});

await checks.check('a_wrong_token_is_refused_and_the_page_says_where_to_get_one', async () => {
  const { context } = await openSession(browser);
  const page = await context.newPage();
  await page.goto(`${gateway.origin}/tasks`);
  await page.waitForSelector('#token-hint');
  await page.fill('#token', 'wrong');
  await page.click('#sign-in-form button');
  await page.waitForSelector('#sign-in-error');
  await context.close();
});

const ada = await signedIn(TOKENS.ada);
const operator = await signedIn(gateway.token);

/** Calls a tool as a task and returns its id. */
async function detached(owner, server, tool, ...args) {
  const printed = await gateway.detach(owner, server, tool, ...args);
  return JSON.parse(printed.trim().split('\n').at(-1)).taskId;
}

/** Waits for a status on the page of a task. */
async function waitForStatus(page, task, status) {
  await page.waitForSelector(`outlast-task-status[task-id="${task}"][status="${status}"]`);
}

await checks.check('the_overview_counts_and_plots_what_the_store_has', async () => {
  const { page } = ada;
  await page.goto(`${gateway.origin}/`);
  assert.match(await page.locator('[data-count="completed"]').textContent(), /10,000\+|\d/);
  assert.ok((await page.locator('svg.plot[role="img"]').count()) >= 2, 'plots');
  assert.ok((await page.locator('details.plot-table table').count()) >= 2, 'tables beside the plots');
  await page.waitForSelector('#health li');
  await page.click('#counts li[data-status="failed"] a');
  await page.waitForSelector('#rows tr');
  const shown = await page.locator('#rows outlast-task-status').evaluateAll((all) => all.map((one) => one.getAttribute('status')));
  assert.ok(shown.length > 0 && shown.every((status) => status === 'failed'), shown.join());
});

await checks.check('a_hundred_thousand_tasks_are_paged_and_searched', async () => {
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks`);
  assert.match(await page.locator('#count').textContent(), /10,000\+ tasks/);
  const first = await page.locator('#rows tr').first().getAttribute('data-key');
  await page.click('#older');
  await page.waitForURL(/after=/);
  const second = await page.locator('#rows tr').first().getAttribute('data-key');
  assert.notEqual(first, second);
  await page.goBack();
  await page.waitForSelector(`#rows tr[data-key="${first}"]`);
  await page.fill('#q', 'status:failed tool:search age:<2h');
  await page.press('#q', 'Enter');
  await page.waitForURL(/q=status/);
  await page.waitForSelector('#rows tr');
  const names = await page.locator('#rows .cell-name a').allTextContents();
  assert.ok(names.every((name) => name === 'search'), names.join());
  await page.goto(`${gateway.origin}/tasks?q=${second.slice(0, 10)}`);
  assert.equal(await page.locator('#rows tr').count(), 1, 'a prefix of an id finds one task');
});

await checks.check('an_owner_sees_only_its_own_tasks', async () => {
  const bobs = await detached('bob', 'hostile', 'nested', 'title=of-bob');
  await operator.page.goto(`${gateway.origin}/tasks/${bobs}`);
  await waitForStatus(operator.page, bobs, 'completed');
  const response = await ada.page.goto(`${gateway.origin}/tasks/${bobs}`);
  assert.equal(response.status(), 404);
  await ada.page.goto(`${gateway.origin}/tasks?q=owner:bob`);
  assert.equal(await ada.page.locator(`#rows tr[data-key="${bobs}"]`).count(), 0);
  await operator.page.goto(`${gateway.origin}/tasks?q=${encodeURIComponent('owner:bob server:hostile')}`);
  await operator.page.waitForSelector(`#rows tr[data-key="${bobs}"]`);
  const api = await ada.context.request.get(`${gateway.origin}/api/v1/tasks/${bobs}`);
  assert.equal(api.status(), 404);
});

await checks.check('the_indicator_has_icon_colour_word_and_message_for_each_status', async () => {
  const { page } = ada;
  const colours = new Set();
  for (const [status, word] of [
    ['working', 'Working'],
    ['input_required', 'Input Required'],
    ['completed', 'Completed'],
    ['failed', 'Failed'],
    ['cancelled', 'Cancelled'],
  ]) {
    const look = await page.evaluate(async (wanted) => {
      const one = document.createElement('outlast-task-status');
      one.setAttribute('status', wanted);
      one.setAttribute('message', 'a message');
      document.querySelector('main').append(one);
      const root = one.shadowRoot;
      const seen = {
        word: root.querySelector('.word').textContent,
        weight: getComputedStyle(root.querySelector('.word')).fontWeight,
        message: root.querySelector('.message').textContent,
        colour: getComputedStyle(root.querySelector('svg')).color,
        paths: [...root.querySelectorAll('svg path')].map((path) => path.getAttribute('d')).join(),
        spins: getComputedStyle(root.querySelector('svg')).animationName === 'spin',
        cancel: !root.querySelector('button').hidden,
      };
      one.remove();
      return seen;
    }, status);
    assert.equal(look.word, word);
    assert.equal(look.weight, '500');
    assert.equal(look.message, '— a message');
    assert.ok(look.paths);
    assert.equal(look.spins, status === 'working');
    assert.equal(look.cancel, status === 'working' || status === 'input_required');
    colours.add(look.colour);
  }
  assert.equal(colours.size, 5, [...colours].join());
});

await checks.check('the_status_of_a_task_changes_while_the_page_is_open', async () => {
  const task = await detached('ada', 'hostile', 'steps', 'count=40', 'pause=100');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'working');
  await page.waitForSelector('outlast-task-status[progress]');
  assert.match(await page.locator('#facts').textContent(), /hostile/);
  await waitForStatus(page, task, 'completed');
  await page.waitForSelector('#outcome');
  assert.match(await page.locator('#outcome').textContent(), /40 steps/);
});

await checks.check('the_cancel_button_of_the_indicator_cancels_after_a_confirmation', async () => {
  const task = await detached('ada', 'hostile', 'steps', 'count=2000', 'pause=100');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'working');
  await page.locator('#status-card outlast-task-status').locator('button').click();
  await page.waitForSelector('#confirm-dialog[open]');
  assert.match(await page.locator('#confirm-dialog').textContent(), /steps/);
  await page.click('#confirm-yes');
  await waitForStatus(page, task, 'cancelled');
  await page.reload();
  await waitForStatus(page, task, 'cancelled');
});

await checks.check('an_ended_task_is_run_again_deleted_and_restored', async () => {
  const task = await detached('ada', 'hostile', 'nested', 'title=again');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'completed');
  await page.click('[data-task-action="rerun"]');
  if (await page.locator('#confirm-dialog[open]').count()) await page.click('#confirm-yes');
  await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && !url.pathname.endsWith(task));
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await page.click('[data-task-action="delete"]');
  if (await page.locator('#confirm-dialog[open]').count()) await page.click('#confirm-yes');
  const undo = page.locator('#toasts button', { hasText: 'Undo' });
  await undo.waitFor();
  await undo.click();
  await until('the task is back', async () => {
    const response = await ada.context.request.get(`${gateway.origin}/api/v1/tasks/${task}`);
    return response.status() === 200;
  });
});

await checks.check('an_input_request_of_a_task_is_answered_on_its_page', async () => {
  const task = await detached('ada', 'everything', 'trigger-elicitation-request');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'input_required');
  await page.locator('form.answer button[value="decline"]').click();
  await waitForStatus(page, task, 'completed');
  assert.match(await page.locator('#timeline').textContent(), /input/i);
});

await checks.check('events_of_tasks_name_server_source_task_status_message_and_progress', async () => {
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks`);
  const events = page.evaluate((origin) => new Promise((done) => {
    const seen = [];
    const source = new EventSource(`${origin}/api/v1/events`);
    source.addEventListener('mcpTaskStatus', ({ data }) => {
      const event = JSON.parse(data);
      if (event.tool !== 'steps') return;
      seen.push(event);
      if (event.status === 'completed') {
        source.close();
        done(seen);
      }
    });
    window.listening = new Promise((open) => source.addEventListener('hello', open));
  }), gateway.origin);
  await page.waitForFunction(() => window.listening);
  await page.evaluate(() => window.listening);
  const task = await detached('ada', 'hostile', 'steps', 'count=20', 'pause=100');
  const seen = await events;
  assert.ok(seen.every((event) => event.taskId === task && event.server === 'hostile' && event.source));
  assert.ok(seen.some((event) => event.progress > 0 && event.total === 20), JSON.stringify(seen));
  const revisions = seen.map((event) => event.revision);
  assert.deepEqual(revisions, [...revisions].sort((a, b) => a - b), 'revisions never fall');
});

await checks.check('the_api_gets_lists_cancels_and_returns_results', async () => {
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks`);
  const ended = await detached('ada', 'hostile', 'nested', 'title=by-api');
  const open = await detached('ada', 'hostile', 'steps', 'count=2000', 'pause=100');
  const get = (path) => page.evaluate(async (url) => {
    const response = await fetch(url);
    return { status: response.status, body: await response.json() };
  }, gateway.origin + path);
  await until('the task has ended', async () => (await get(`/api/v1/tasks/${ended}`)).body.status === 'completed');
  const result = await get(`/api/v1/tasks/${ended}/result`);
  assert.equal(result.body.structuredContent.title, 'by-api');
  const list = await get('/api/v1/tasks?q=status:working');
  assert.ok(list.body.tasks.some(({ taskId }) => taskId === open), JSON.stringify(list).slice(0, 300));
  const cancel = (csrf) => page.evaluate(async ({ origin, name, token }) => {
    const headers = { 'content-type': 'application/json', ...(token && { 'x-outlast-csrf': token }) };
    const response = await fetch(`${origin}/api/v1/tasks/cancel`, { method: 'POST', headers, body: JSON.stringify(name) });
    return response.status;
  }, { origin: gateway.origin, name: { server: 'hostile', source: 'store', taskId: open }, token: csrf });
  assert.equal(await cancel(undefined), 403, 'a change needs the token of the page');
  const csrf = await page.locator('meta[name="csrf"]').getAttribute('content');
  assert.equal(await cancel(csrf), 200);
  assert.equal((await get(`/api/v1/tasks/${open}`)).body.status, 'cancelled');
});

await checks.check('rows_never_move_and_new_ones_wait_for_a_click', async () => {
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks`);
  await page.waitForSelector('#stream[data-state="open"]');
  const first = await page.locator('#rows tr').first().getAttribute('data-key');
  const task = await detached('ada', 'hostile', 'nested', 'title=new');
  await page.waitForSelector('#new-rows:not([hidden])');
  assert.equal(await page.locator('#rows tr').first().getAttribute('data-key'), first);
  await page.click('#new-rows');
  await page.waitForSelector(`#rows tr[data-key="${task}"]`);
});

await checks.check('a_large_result_opens_by_parts_with_exact_numbers', async () => {
  const task = await detached('ada', 'hostile', 'huge');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'completed');
  const began = Date.now();
  const response = await page.goto(`${gateway.origin}/tasks/${task}`);
  const bytes = (await response.body()).length;
  console.error(`        16 MiB result: ${bytes} bytes of HTML in ${Date.now() - began} ms`);
  assert.ok(bytes < 200_000, `${bytes} bytes`);
  assert.match(await page.locator('#structured').textContent(), /12345678901234567890/);
  await page.locator('#structured details summary').first().click();
  await page.waitForFunction(() => document.querySelectorAll('#structured details details').length > 10);
  await page.locator('#structured details details summary').first().click();
  await page.waitForFunction(() => document.querySelector('#structured').textContent.includes('9007199254740993'));
});

await checks.check('hostile_texts_of_tasks_are_text', async () => {
  const task = await detached('ada', 'hostile', 'markup');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'failed');
  assert.ok(!(await page.title()).includes('attacked'));
  assert.equal(await page.locator('main img').count(), 0);
  assert.equal(await page.locator('a[href^="javascript:"]').count(), 0);
  assert.match(await page.locator('#outcome').textContent(), /<img src=x/);
  await page.goto(`${gateway.origin}/tasks?q=${encodeURIComponent('"><img src=x onerror=alert(1)>')}`);
  assert.equal(await page.locator('main img').count(), 0);
});

await checks.check('twelve_tabs_share_one_stream', async () => {
  const { context } = ada;
  const pages = [];
  for (let n = 0; n < 12; n += 1) {
    const page = await context.newPage();
    await page.goto(`${gateway.origin}/tasks`);
    await page.waitForSelector('#stream[data-state="open"]');
    pages.push(page);
  }
  await detached('ada', 'hostile', 'nested', 'title=twelve');
  for (const page of pages) await page.waitForSelector('#new-rows:not([hidden])');
  for (const page of pages) await page.close();
});

await checks.check('the_page_recovers_from_a_restart_of_the_gateway', async () => {
  const { page } = ada;
  const task = await detached('ada', 'hostile', 'steps', 'count=100', 'pause=100');
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'working');
  await gateway.kill();
  await page.waitForSelector('#stream[data-state="broken"]');
  await gateway.launch();
  await page.waitForSelector('#stream[data-state="open"]');
  await waitForStatus(page, task, 'completed');
  await page.waitForFunction(() => document.querySelector('#timeline').textContent.match(/Attempt 2/));
});

await checks.check('reading_works_without_javascript', async () => {
  const { context } = await signedIn(TOKENS.ada, { javaScriptEnabled: false });
  const page = context.pages()[0];
  for (const path of ['/', '/tasks', '/tools', '/requests', '/connections', '/traffic']) {
    const response = await page.goto(gateway.origin + path);
    assert.equal(response.status(), 200, path);
    assert.ok((await page.locator('main').textContent()).trim().length > 20, path);
  }
  await context.close();
});

await checks.check('the_keyboard_reaches_everything', async () => {
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks`);
  await page.keyboard.press('?');
  await page.waitForSelector('#keys-dialog[open]');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/tasks\/\w+/);
  await page.keyboard.press('/');
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.waitForURL(/\/tasks$/);
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement?.id === 'q');
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const VIEWS = ['/', '/tasks', '/requests', '/tools', '/connections', '/traffic'];

await checks.check('axe_finds_nothing_serious_on_any_page', async () => {
  const { page } = operator;
  for (const path of VIEWS) {
    await page.goto(gateway.origin + path);
    await page.waitForLoadState('networkidle').catch(() => {});
    // The policy of the page admits no foreign script, so the checker is evaluated by the driver.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run());
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    const text = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
    assert.deepEqual(text, [], path);
  }
});

await checks.check('every_view_is_drawn_light_and_dark_wide_and_narrow', async () => {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1280, 390]) {
      const { context, page } = await signedIn(gateway.token, { colorScheme, viewport: { width, height: 900 } });
      for (const path of VIEWS) {
        await page.goto(gateway.origin + path);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${path} at ${width} is ${overflow} pixels too wide`);
        const name = `${path.slice(1) || 'overview'}-${colorScheme}-${width}.png`;
        await page.screenshot({ path: join(process.env.SCREENSHOTS, name) });
      }
      await context.close();
    }
  }
});

await checks.check('no_page_reported_an_error', async () => {
  assert.deepEqual([...ada.faults, ...operator.faults], []);
});

await browser.close();
await gateway.stop();
checks.finish();
