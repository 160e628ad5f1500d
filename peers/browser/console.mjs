// The web console of `outlast serve` in Chromium, with real servers behind the gateway and two
// owners.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Gateway, TOKENS } from './gateway.mjs';
import { Checks, allFaults, openBrowser, openSession, until } from './harness.mjs';

const checks = new Checks();
const browser = await openBrowser();
// Many tasks of ada, so that lists have many pages.
const failing = { command: process.execPath, args: ['-e', 'console.error("no licence"); process.exit(3)'] };
const gateway = await Gateway.start({ tasks: 100_000, servers: { failing } });

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
  // Each count is that of its status, beyond the newest 10,000 tasks of the plots.
  const failed = await page.evaluate(async () => {
    const { counts } = await (await fetch('/api/v1/overview')).json();
    const found = await (await fetch('/tasks?q=status:failed')).text();
    const shown = new DOMParser().parseFromString(found, 'text/html').querySelector('#count').textContent;
    return { count: counts.find(({ status }) => status === 'failed'), shown };
  });
  const number = `${failed.count.number.toLocaleString('en')}${failed.count.isMore ? '+' : ''}`;
  assert.equal(failed.shown.trim().split(' ')[0], number);
  assert.equal((await page.locator('[data-count="failed"]').textContent()).trim(), number);
  assert.ok((await page.locator('svg.plot[role="img"]').count()) >= 2, 'plots');
  for (const plot of await page.locator('svg.plot[role="img"]').all()) {
    const labels = await plot.locator('text').allTextContents();
    assert.ok(labels.includes('0'), `an axis with numbers: ${labels}`);
  }
  assert.ok((await page.locator('details.plot-table table').count()) >= 2, 'tables beside the plots');
  await page.waitForSelector('#health li');
  await page.click('#counts li[data-status="failed"] a');
  await page.waitForSelector('#rows tr');
  const shown = await page.locator('#rows outlast-task-status').evaluateAll((all) => all.map((one) => one.getAttribute('status')));
  assert.ok(shown.length > 0 && shown.every((status) => status === 'failed'), shown.join());
});

await checks.check('a_server_that_fails_has_its_reason_and_a_next_step', async () => {
  const { page } = operator;
  await page.goto(`${gateway.origin}/tools?server=failing`);
  await page.goto(`${gateway.origin}/`);
  await until('the reason is shown', async () => {
    await page.reload();
    const text = await page.locator('#health li[data-key="failing"]').textContent();
    return /failing/.test(text) && /exit|ended|licence/.test(text) && /Check the command/.test(text);
  });
});

await checks.check('the_views_are_json_too', async () => {
  const { context } = ada;
  const get = async (path) => {
    const response = await context.request.get(gateway.origin + path);
    assert.equal(response.status(), 200, path);
    return response.json();
  };
  const overview = await get('/api/v1/overview');
  assert.equal(overview.counts.length, 5);
  assert.ok(overview.health.some(({ name }) => name === 'Store') && overview.perMinute.created >= 0);
  const { requests, left } = await get('/api/v1/requests');
  assert.ok(Array.isArray(requests) && Array.isArray(left));
  const { connections, taskTtlSeconds } = await get('/api/v1/connections');
  assert.ok(connections.some(({ name, mode }) => name === 'hostile' && mode === 'auto') && taskTtlSeconds > 0);
  const { tool, server } = await get('/api/v1/tools?server=hostile&tool=nested');
  assert.ok(server.tools.length > 2 && tool.inputSchema.properties.title, JSON.stringify(tool).slice(0, 300));
  assert.ok(Array.isArray((await get('/api/v1/calls')).calls));
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
  const status = async () => (await ada.context.request.get(`${gateway.origin}/api/v1/tasks/${task}`)).status();
  assert.equal(await status(), 404, 'it is gone until the undo');
  assert.equal(await page.locator(`#rows tr[data-key="${task}"]`).count(), 0);
  await undo.click();
  await page.waitForSelector(`#rows tr[data-key="${task}"]`);
  // The time for an undo passes, and the task stays.
  await page.waitForTimeout(10_500);
  assert.equal(await status(), 200);
});

await checks.check('all_tasks_that_match_are_deleted_and_restored', async () => {
  const tasks = [];
  for (const title of ['one', 'two', 'three']) tasks.push(await detached('bob', 'hostile', 'nested', `title=${title}`));
  const bob = await signedIn(TOKENS.bob);
  const { page } = bob;
  await until('they have ended', async () => {
    await page.goto(`${gateway.origin}/tasks?q=${encodeURIComponent('tool:nested status:completed')}`);
    return (await page.locator('#rows tr').count()) >= 3;
  });
  const all = await page.locator('#rows tr').count();
  await page.locator('#rows input[type=checkbox]').first().check();
  // The button is there when there are more pages; one page is selected in the same way.
  await page.evaluate(() => document.getElementById('bulk-all').removeAttribute('hidden'));
  await page.click('#bulk-all');
  await page.click('[data-bulk="delete"]');
  await page.waitForSelector('#confirm-dialog[open]');
  assert.match(await page.locator('#confirm-dialog').textContent(), new RegExp(`Delete ${all} tasks.*undo this`, 's'));
  await page.click('#confirm-yes');
  await page.waitForSelector('#empty');
  await page.locator('#toasts button', { hasText: 'Undo' }).click();
  await page.waitForFunction((count) => document.querySelectorAll('#rows tr').length === count, all);
  for (const task of tasks) await page.waitForSelector(`#rows tr[data-key="${task}"]`);
  await bob.context.close();
});

await checks.check('an_input_request_of_a_task_is_answered_on_its_page', async () => {
  const task = await detached('ada', 'everything', 'trigger-elicitation-request');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'input_required');
  // The same form as on the page of the requests, with the fields of the schema.
  // The server may also ask for the roots of a new connection.
  const card = page.locator('section.request:has([name="/name"])');
  await card.waitFor();
  assert.equal(await card.locator('textarea.json').count(), 0);
  await card.locator('button[value="accept"].primary').click();
  await page.waitForSelector('section.request [aria-invalid="true"]');
  assert.equal(new URL(page.url()).pathname.startsWith('/requests/task/'), true);
  await card.locator('[name="/name"]').fill('Ada Lovelace');
  await card.locator('button[value="accept"].primary').click();
  await page.waitForURL(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'completed');
  assert.match(await page.locator('#timeline').textContent(), /Input provided.*by ada/s);
  assert.match(await page.locator('#outcome').textContent(), /Ada Lovelace/);
});

await checks.check('a_sampling_request_of_a_task_is_answered_on_its_page', async () => {
  const task = await detached('ada', 'everything', 'trigger-sampling-request', 'prompt=why is the sky blue');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'input_required');
  const card = page.locator('section.request:has([name="/text"])');
  await card.waitFor();
  assert.match(await card.textContent(), /why is the sky blue/);
  await card.locator('[name="/text"]').fill('because of Rayleigh');
  await card.locator('button[value="answer"]').click();
  await waitForStatus(page, task, 'completed');
  assert.match(await page.locator('#outcome').textContent(), /because of Rayleigh/);
});

await checks.check('a_second_answer_to_a_task_names_the_first_person', async () => {
  const task = await detached('ada', 'everything', 'trigger-elicitation-request');
  await ada.page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(ada.page, task, 'input_required');
  await operator.page.goto(`${gateway.origin}/tasks/${task}`);
  await operator.page.locator('[name="/name"]').fill('typed by another person');
  const { inputRequests } = await (await ada.context.request.get(`${gateway.origin}/api/v1/tasks/${task}`)).json();
  const { key } = inputRequests.find(({ method }) => method === 'elicitation/create');
  const answer = { taskId: task, key, result: { action: 'decline' } };
  const post = (session, body) => session.page.evaluate(async (data) => {
    const headers = { 'content-type': 'application/json', 'x-outlast-csrf': document.querySelector('meta[name="csrf"]').content };
    const response = await fetch('/api/v1/tasks/answer', { method: 'POST', headers, body: JSON.stringify(data) });
    return { status: response.status, body: await response.json() };
  }, body);
  assert.equal((await post(ada, answer)).status, 200);
  const second = await post(operator, answer);
  assert.equal(second.status, 409);
  assert.match(second.body.error.message, /already answered by ada/);
  // The open form of the other person says so, keeps what was typed, and cannot be sent.
  await operator.page.waitForSelector('[data-local-left]');
  assert.match(await operator.page.locator('[data-local-left]').textContent(), /answered by ada/);
  assert.equal(await operator.page.locator('[name="/name"]').inputValue(), 'typed by another person');
  assert.ok(await operator.page.locator('section.request:has([name="/name"]) button.primary').isDisabled());
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

/** Sends an event to a page as the tab that reads the stream does. */
async function inject(page, name, data) {
  await page.evaluate((message) => {
    const channel = new BroadcastChannel(`outlast-${document.documentElement.dataset.instance}`);
    channel.postMessage(message);
    channel.close();
  }, { name, data });
}

await checks.check('revisions_belong_to_server_source_and_task_until_a_resync', async () => {
  const { page } = ada;
  await page.goto(`${gateway.origin}/traffic`);
  await page.waitForSelector('#stream[data-state="open"]');
  await page.evaluate(() => {
    for (const server of ['one', 'two']) {
      const element = document.createElement('outlast-task-status');
      for (const [name, value] of Object.entries({ server, source: 'test', 'task-id': 't-1', status: 'working' })) {
        element.setAttribute(name, value);
      }
      element.id = `of-${server}`;
      document.querySelector('#toasts').after(element);
    }
  });
  const event = (server, status, revision) => inject(page, 'mcpTaskStatus', { server, source: 'test', taskId: 't-1', status, revision });
  const status = (server) => page.locator(`#of-${server}`).getAttribute('status');
  const isShown = (server, wanted) => until(`${server} is ${wanted}`, async () => (await status(server)) === wanted);
  await event('one', 'input_required', 9);
  await isShown('one', 'input_required');
  assert.equal(await status('two'), 'working', 'a task with the same id at another server');
  await event('two', 'completed', 3);
  await isShown('two', 'completed');
  await event('one', 'working', 8);
  // After a resync, revisions are those of the pages: an element that knows none takes the event.
  await inject(page, 'resync', {});
  await page.evaluate(() => document.querySelector('#of-one').removeAttribute('revision'));
  await event('one', 'failed', 1);
  await isShown('one', 'failed');
  await page.evaluate(() => ['one', 'two'].forEach((server) => document.querySelector(`#of-${server}`).remove()));
});

await checks.check('an_older_page_never_replaces_a_newer_status', async () => {
  const task = await detached('ada', 'hostile', 'steps', 'count=30', 'pause=100');
  const { page } = ada;
  const url = `${gateway.origin}/tasks/${task}`;
  await page.goto(url);
  await waitForStatus(page, task, 'working');
  const stale = await (await ada.context.request.get(url)).text();
  await waitForStatus(page, task, 'completed');
  await page.waitForSelector('#outcome');
  let served = 0;
  await page.route(url, (route) => {
    served += 1;
    return route.fulfill({ contentType: 'text/html', body: stale });
  });
  await inject(page, 'resync', {});
  await until('the older page was loaded', () => served > 0);
  await page.waitForTimeout(500);
  assert.equal(await page.locator('#status-card outlast-task-status').getAttribute('status'), 'completed');
  await page.unroute(url);
});

await checks.check('a_page_that_was_just_opened_misses_no_event', async () => {
  const { context } = ada;
  // The first tab reads the stream. The second one is rendered before it listens.
  const task = await detached('ada', 'hostile', 'steps', 'count=2000', 'pause=100');
  const page = await context.newPage();
  let isFirst = true;
  const url = `${gateway.origin}/tasks/${task}`;
  await page.route(url, async (route) => {
    const response = await route.fetch();
    if (isFirst) {
      isFirst = false;
      // The task ends between the rendering and the first event that the page can get.
      const csrf = await ada.page.locator('meta[name="csrf"]').getAttribute('content');
      const cancelled = await ada.page.evaluate(async ({ id, token }) => {
        const headers = { 'content-type': 'application/json', 'x-outlast-csrf': token };
        const body = JSON.stringify({ server: 'hostile', source: 'store', taskId: id });
        return (await fetch('/api/v1/tasks/cancel', { method: 'POST', headers, body })).status;
      }, { id: task, token: csrf });
      assert.equal(cancelled, 200);
      await new Promise((wake) => setTimeout(wake, 500));
    }
    await route.fulfill({ response });
  });
  await page.goto(url);
  await waitForStatus(page, task, 'cancelled');
  await page.close();
});

await checks.check('notifications_name_the_task_on_every_page_and_only_for_its_owner', async () => {
  const options = { permissions: ['notifications'] };
  const sessions = [await signedIn(TOKENS.ada, options), await signedIn(TOKENS.bob, options)];
  for (const { page } of sessions) {
    await page.goto(`${gateway.origin}/traffic`);
    await page.waitForSelector('#stream[data-state="open"]');
    // No person looks at the page.
    await page.evaluate(() => {
      window.shown = [];
      Object.defineProperty(document, 'hidden', { get: () => true });
      window.Notification = class {
        static permission = 'granted';
        constructor(_, { body }) { window.shown.push(body); }
      };
    });
  }
  await detached('ada', 'everything', 'trigger-elicitation-request');
  const [mine, others] = sessions.map(({ page }) => page);
  await mine.waitForFunction(() => window.shown.some((text) => /trigger-elicitation-request at everything waits/.test(text)));
  assert.deepEqual(await others.evaluate(() => window.shown), []);
  for (const { context } of sessions) await context.close();
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
  const response = await page.goto(`${gateway.origin}/tasks/${task}`, { waitUntil: 'load' });
  const bytes = (await response.body()).length;
  assert.ok(bytes < 200_000, `${bytes} bytes`);
  // The time of the browser: from the first byte until the page is loaded. The program of the
  // checks is not optimised, so its own time is only printed.
  const times = await page.evaluate(() => {
    const [load] = performance.getEntriesByType('navigation');
    return { server: load.responseStart - load.requestStart, browser: load.loadEventEnd - load.responseStart };
  });
  console.error(`        16 MiB result: ${bytes} bytes of HTML, ${times.server} ms in the server, ${times.browser} ms in the browser`);
  assert.ok(times.browser > 0 && times.browser < 300, `${times.browser} ms`);
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

await checks.check('the_key_c_cancels_the_row_and_focus_is_visible', async () => {
  const task = await detached('ada', 'hostile', 'steps', 'count=2000', 'pause=100');
  const { page } = ada;
  await page.goto(`${gateway.origin}/tasks?q=${task}`);
  await page.keyboard.press('j');
  const link = page.locator(`#rows tr[data-key="${task}"] a[data-open]`);
  assert.ok(await link.evaluate((element) => element === document.activeElement));
  const outline = await link.evaluate((element) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    return `${outlineStyle} ${outlineWidth}`;
  });
  assert.match(outline, /solid [2-9]px/, 'the focus is visible');
  await page.keyboard.press('c');
  await page.waitForSelector('#confirm-dialog[open]');
  assert.match(await page.locator('#confirm-dialog').textContent(), /Cancel steps\?/);
  await page.click('#confirm-yes');
  await waitForStatus(page, task, 'cancelled');
  // Every control that the tabulator reaches shows the focus.
  for (let n = 0; n < 25; n += 1) {
    await page.keyboard.press('Tab');
    const look = await page.evaluate(() => {
      let element = document.activeElement;
      while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
      if (!element || element === document.body) return undefined;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      return { html: element.outerHTML.slice(0, 120), isShown: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1 };
    });
    if (look) assert.ok(look.isShown, look.html);
  }
});

await checks.check('the_theme_is_kept_and_motion_is_reduced_on_request', async () => {
  const session = await signedIn(TOKENS.ada, { colorScheme: 'light', reducedMotion: 'reduce' });
  const { page } = session;
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.click('[data-action="theme"]');
  const dark = await background();
  assert.notEqual(light, dark);
  await page.reload();
  assert.equal(await background(), dark, 'the choice survives a reload');
  const task = await detached('ada', 'hostile', 'steps', 'count=50', 'pause=100');
  await page.goto(`${gateway.origin}/tasks/${task}`);
  await waitForStatus(page, task, 'working');
  const motion = await page.evaluate(() => {
    const icon = document.querySelector('#status-card outlast-task-status').shadowRoot.querySelector('svg');
    return getComputedStyle(icon).animationName;
  });
  assert.equal(motion, 'none');
  await session.context.close();
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Every view by its name, with something on it. */
async function views(session) {
  const { page } = session;
  const working = await detached('local', 'hostile', 'steps', 'count=3000', 'pause=100');
  const ended = await detached('local', 'everything', 'get-structured-content', 'location=New York');
  const broken = await detached('local', 'hostile', 'markup');
  const asks = await detached('local', 'everything', 'trigger-elicitation-request');
  // Of another owner: a server asks one thing after the other in a session.
  const samples = await detached('bob', 'everything', 'trigger-sampling-request', 'prompt=Summarise the tides of May');
  await page.goto(`${gateway.origin}/tasks/${asks}`);
  await waitForStatus(page, asks, 'input_required');
  await page.goto(`${gateway.origin}/tasks/${samples}`);
  await waitForStatus(page, samples, 'input_required');
  // A call with its result below the form.
  const form = '/tools?server=hostile&source=gateway&tool=nested';
  await page.goto(gateway.origin + form);
  await page.fill('[name="/title"]', 'A report');
  await page.click('#run');
  await page.waitForSelector('#call-list li[data-status="completed"]');
  await page.goto(`${gateway.origin}/traffic?method=tools%2Fcall`);
  const message = await page.locator('#messages li a[data-open]').first().getAttribute('href');
  return {
    overview: '/', tasks: '/tasks', task: `/tasks/${ended}`, working: `/tasks/${working}`, failed: `/tasks/${broken}`,
    waiting: `/tasks/${asks}`, elicitations: '/requests?tab=elicitations', sampling: '/requests?tab=sampling',
    tools: form, connections: '/connections', traffic: '/traffic', message, missing: '/nothing',
  };
}

let made;
/** The views, which are filled once. */
const shown = () => (made ??= views(operator));

await checks.check('axe_finds_nothing_serious_on_any_page', async () => {
  for (const colorScheme of ['light', 'dark']) {
    const session = await signedIn(gateway.token, { colorScheme });
    const outside = await openSession(browser, { colorScheme });
    const door = await outside.context.newPage();
    const pages = [...Object.entries(await shown()).map(([name, path]) => [name, session.page, path]), ['sign-in', door, '/sign-in']];
    for (const [name, page, path] of pages) {
      await page.goto(gateway.origin + path);
      await page.waitForLoadState('load');
      // The policy of the page admits no foreign script, so the checker is evaluated by the driver.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      const text = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
      assert.deepEqual(text, [], `${name}, ${colorScheme}`);
    }
    await session.context.close();
    await outside.context.close();
  }
});

await checks.check('every_view_is_drawn_light_and_dark_wide_and_narrow', async () => {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1280, 390]) {
      const { context, page } = await signedIn(gateway.token, { colorScheme, viewport: { width, height: 900 } });
      const outside = await openSession(browser, { colorScheme, viewport: { width, height: 900 } });
      const door = await outside.context.newPage();
      const pages = [...Object.entries(await shown()).map(([name, path]) => [name, page, path]), ['sign-in', door, '/sign-in']];
      for (const [name, drawn, path] of pages) {
        await drawn.goto(gateway.origin + path);
        if (drawn === page) await drawn.waitForSelector('#stream[data-state="open"]');
        const wide = await drawn.evaluate(() => {
          if (document.documentElement.scrollWidth <= innerWidth) return [];
          const all = [...document.querySelectorAll('main *')].filter((one) => !one.closest('.tabs, .code, .table-scroll'));
          return all.filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 120));
        });
        assert.deepEqual(wide, [], `${name} at ${width} is too wide`);
        await drawn.screenshot({ path: join(process.env.SCREENSHOTS, `${name}-${colorScheme}-${width}.png`) });
      }
      await context.close();
      await outside.context.close();
    }
  }
});

await checks.check('no_page_reported_an_error', async () => {
  assert.deepEqual(allFaults.flat(), []);
});

await browser.close();
await gateway.stop();
checks.finish();
