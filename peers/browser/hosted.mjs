// A server that creates sampling and elicitation tasks at its client, which is the console of
// `outlast inspect`, in Chromium. The server records every message of the client and returns the
// record.
import assert from 'node:assert/strict';
import { Checks, Process, allFaults, openBrowser, openSession, temporaryFolder } from './harness.mjs';

const SAMPLING = 'sampling/createMessage';
const ELICITATION = 'elicitation/create';

const checks = new Checks();
const browser = await openBrowser();
const folder = temporaryFolder();
const env = { ...process.env, HOME: folder.path, XDG_DATA_HOME: folder.path };
const args = ['inspect', '--http', '127.0.0.1:0', '--as', 'v1', '--', process.env.RECEIVER_PROBE];
const inspect = new Process(process.env.OUTLAST, args, { env });
const link = await inspect.line(/^http:/);
const { origin } = new URL(link);
const { context } = await openSession(browser);

// The page of the tool. Other pages show what the server asks.
const tool = await context.newPage();
await tool.goto(link);
await tool.waitForSelector('#tool-items li[data-key="probe"]');
await tool.click('#tool-items li[data-key="probe"] a');
await tool.waitForSelector('#call-form');

/** The field of a form at a JSON pointer. */
const field = (pointer) => `[name=${JSON.stringify(pointer)}]`;

/** The requests page with this tab. */
async function openTab(tab) {
  const page = await context.newPage();
  await page.goto(`${origin}/requests?tab=${tab}`);
  await page.waitForSelector('#stream[data-state="open"]');
  return page;
}

let calls = 0;

/** Has the server create a task at its client. */
async function create(request, then = '', ttl = '') {
  await tool.fill(field('/request'), request);
  await tool.fill(field('/then'), then);
  await tool.fill(field('/ttl'), ttl);
  await tool.click('#run');
  calls += 1;
  await tool.waitForFunction((count) => document.querySelectorAll('#call-list li').length === count, calls);
}

/** What the server recorded about the newest call: pairs of a sent and a received message, as text. */
async function record() {
  const newest = '#call-list li:first-child[data-status="completed"]';
  await tool.waitForSelector(newest);
  return tool.locator(`${newest} pre[id^="raw-"]`).textContent();
}

await checks.check('a_sampling_task_of_a_server_is_approved_on_its_tab', async () => {
  // The page was open before: it gets the item by an event, without a reload.
  const page = await openTab('sampling');
  await page.waitForSelector('#empty');
  const events = page.evaluate((from) => new Promise((done) => {
    const seen = [];
    const source = new EventSource(`${from}/api/v1/events`);
    const note = ({ type }) => {
      seen.push(type);
      if (type !== 'pendingRemoved') return;
      source.close();
      done(seen);
    };
    for (const name of ['newPendingSample', 'newPendingElicitation', 'pendingRemoved']) source.addEventListener(name, note);
    window.listening = new Promise((open) => source.addEventListener('hello', open));
  }), origin);
  await page.waitForFunction(() => window.listening);
  await page.evaluate(() => window.listening);
  await create(SAMPLING);
  const card = page.locator('#requests section.request');
  await card.waitFor();
  assert.equal(await page.locator('[data-count="sampling"]').textContent(), '1');
  assert.match(await card.textContent(), /receiver_probe.*asks for a response of a model/s);
  assert.match(await card.textContent(), /Say hello\./);
  const task = await card.locator('.related code').textContent();
  assert.match(task, /^[0-9a-z]{26}$/, 'the related task');
  await card.locator(field('/text')).fill('Hello from a person.');
  await card.locator('button[value="answer"]').click();
  await page.waitForSelector('#left [data-why]');
  assert.match(await page.locator('#left [data-why]').first().textContent(), /answered/);
  assert.deepEqual(await events, ['newPendingSample', 'pendingRemoved']);
  const shown = await record();
  assert.match(shown, /Hello from a person\./, 'tasks/result returned the answer');
  assert.ok(shown.includes(task), 'the server created this task');
  assert.match(shown, /input_required.*completed/s);
  await page.close();
});

await checks.check('an_elicitation_task_of_a_server_is_declined_on_its_tab', async () => {
  const page = await openTab('elicitations');
  await create(ELICITATION);
  const card = page.locator('#requests section.request');
  await card.waitFor();
  assert.equal(await page.locator('[data-count="elicitations"]').textContent(), '1');
  assert.match(await card.textContent(), /Who is there\?/);
  assert.match(await card.locator('.related code').textContent(), /^[0-9a-z]{26}$/);
  await card.locator('button[value="decline"]').click();
  await page.waitForSelector('#empty');
  assert.match(await page.locator('#left [data-why]').first().textContent(), /declined/);
  assert.match(await record(), /"action":\s*"decline"/);
  await page.close();
});

await checks.check('an_item_leaves_when_the_server_cancels_its_task', async () => {
  const page = await openTab('sampling');
  await create(SAMPLING, 'cancel');
  assert.match(await record(), /Task cancelled by server/);
  await page.waitForSelector('#empty');
  await page.waitForFunction(() => document.querySelector('#left [data-why]')?.textContent.includes('cancelled'));
  await page.close();
});

await checks.check('the_ttl_of_the_settings_is_that_of_a_hosted_task', async () => {
  const page = await context.newPage();
  await page.goto(`${origin}/connections`);
  await page.fill('#task-ttl', '75');
  await page.click('#settings button');
  await page.waitForFunction(() => document.querySelector('#task-ttl')?.value === '75');
  await page.goto(`${origin}/requests?tab=elicitations`);
  await create(ELICITATION);
  await page.locator('#requests section.request button[value="cancel"]').click();
  assert.match(await record(), /"ttl":\s*75000/);
  await page.close();
});

await checks.check('hosted_tasks_are_in_the_list_of_tasks_apart_from_others', async () => {
  const page = await context.newPage();
  await page.goto(`${origin}/tasks?q=origin%3Ahosted`);
  await page.waitForSelector('#stream[data-state="open"]');
  const before = await page.locator('#rows tr').count();
  assert.ok(before > 0, 'the tasks of the checks before');
  assert.match(await page.locator('#rows tr').first().textContent(), /Hosted/);
  await create(SAMPLING);
  await page.click('#new-rows:not([hidden])');
  const row = page.locator('#rows tr:has(outlast-task-status[status="input_required"])');
  await row.waitFor();
  assert.match(await row.textContent(), /sampling\/createMessage.*receiver_probe/s);
  assert.equal(await page.locator('#rows tr').count(), before + 1);
  // It changes in place, and its page is that of the request.
  await row.locator('a[data-open]').click();
  await page.waitForURL(/\/requests\?tab=sampling#request-/);
  await page.goBack();
  await page.locator('#rows outlast-task-status[status="input_required"]').locator('button').click();
  await page.click('#confirm-yes');
  await page.waitForSelector('#rows tr:first-child outlast-task-status[status="cancelled"]');
  assert.match(await record(), /cancelled/);
  await page.goto(`${origin}/tasks?q=origin%3Astore`);
  assert.equal(await page.locator('#rows tr').count(), 0);
  const { tasks } = await (await context.request.get(`${origin}/api/v1/tasks?q=origin:hosted`)).json();
  assert.ok(tasks.length > 0 && tasks.every((task) => task.origin === 'hosted'), JSON.stringify(tasks[0]));
  await page.close();
});

await checks.check('a_declined_elicitation_fails_its_task_with_the_switch', async () => {
  const page = await context.newPage();
  await page.goto(`${origin}/connections`);
  await page.check('[name="decline_fails"]');
  await page.click('#settings button.primary');
  await page.waitForFunction(() => document.querySelector('[name="decline_fails"]')?.checked);
  await page.goto(`${origin}/requests?tab=elicitations`);
  await create(ELICITATION);
  await page.locator('#requests section.request button[value="decline"]').click();
  assert.match(await record(), /"failed"/);
  await page.goto(`${origin}/tasks?q=${encodeURIComponent('origin:hosted status:failed')}`);
  assert.equal(await page.locator('#rows tr').count(), 1);
  await page.goto(`${origin}/connections`);
  await page.uncheck('[name="decline_fails"]');
  await page.click('#settings button.primary');
  await page.close();
});

await checks.check('an_item_leaves_when_the_ttl_of_its_task_ends', async () => {
  const page = await openTab('elicitations');
  await create(ELICITATION, 'wait', '1500');
  await page.locator('#requests section.request').waitFor();
  await page.waitForFunction(() => document.querySelector('#left [data-why]')?.textContent.includes('TTL'));
  await page.waitForSelector('#empty');
  await page.close();
});

await checks.check('an_item_leaves_when_its_server_ends_and_the_calls_stay', async () => {
  const page = await openTab('elicitations');
  await create(ELICITATION, 'leave');
  // The server ends as soon as it was asked. The connection is opened again below.
  await page.waitForFunction(() => /connection/.test(document.querySelector('#left [data-why]')?.textContent ?? ''));
  await page.close();
  const connections = await context.newPage();
  await connections.goto(`${origin}/connections`);
  const server = connections.locator('section.connection');
  await server.locator('button[value="reconnect"]').click();
  await connections.waitForFunction(() => document.querySelector('section.connection')?.dataset.health === 'open');
  await connections.close();
  // The calls that were made before are still listed.
  assert.ok((await tool.locator('#call-list li').count()) >= 8);
});

await checks.check('no_page_reported_an_error', async () => {
  assert.deepEqual(allFaults.flat(), []);
});

await browser.close();
await inspect.end();
folder.close();
checks.finish();
