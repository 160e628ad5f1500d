// A server that creates sampling and elicitation tasks at its client, which is the console of `outlast inspect`, in
// Chromium. The server records every message of the client and returns the record.
import assert from 'node:assert/strict';
import { Checks, Process, openBrowser, openSession, temporaryFolder } from './harness.mjs';

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
const { context, faults } = await openSession(browser);

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
async function create(request, then = '') {
  await tool.fill(field('/request'), request);
  await tool.fill(field('/then'), then);
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

await checks.check('no_page_reported_an_error', async () => {
  assert.deepEqual(faults, []);
});

await browser.close();
await inspect.end();
folder.close();
checks.finish();
