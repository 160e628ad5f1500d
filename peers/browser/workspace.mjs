// The pages Tools, Requests, Connections and Traffic of the console in Chromium, with real servers
// behind the gateway.
import assert from 'node:assert/strict';
import { Gateway, TOKENS } from './gateway.mjs';
import { Checks, allFaults, openBrowser, openSession, until } from './harness.mjs';

const checks = new Checks();
const browser = await openBrowser();
const gateway = await Gateway.start();
const { context } = await openSession(browser);

/** Opens a page of the console as ada. */
async function open(path) {
  const page = await context.newPage();
  await page.goto(gateway.origin + path);
  return page;
}

/** Opens the form of a tool. */
async function openTool(server, tool) {
  const page = await open('/tools');
  await page.click(`#servers a:has-text("${server}")`);
  await page.click(`#tool-items li[data-key="${tool}"] a`);
  await page.waitForSelector('#call-form');
  return page;
}

/** The field of the form at a JSON pointer. */
const field = (pointer) => `[name=${JSON.stringify(pointer)}]`;

const signIn = await context.newPage();
await signIn.goto(`${gateway.origin}/sign-in`);
await signIn.fill('#token', TOKENS.ada);
await signIn.click('#sign-in-form button');
await signIn.waitForSelector('nav#pages');
await signIn.close();

// A call that takes longer than the usual limit of 60 s. It runs beside the other checks.
const slow = await openTool('hostile', 'steps');
await slow.fill(field('/count'), '130');
await slow.fill(field('/pause'), '500');
await slow.click('#run');

await checks.check('tools_of_a_server_are_listed_and_searched', async () => {
  const page = await open('/tools');
  await page.click('#servers a:has-text("everything")');
  await page.waitForSelector('#tool-items li[data-key="echo"]');
  assert.ok((await page.locator('#tool-items li').count()) > 5);
  await page.fill('#tool-search', 'long-running');
  await page.press('#tool-search', 'Enter');
  await page.waitForSelector('#tool-items li[data-key="echo"]', { state: 'detached' });
  assert.equal(await page.locator('#tool-items li').count(), 1);
  await page.close();
});

await checks.check('form_and_json_edit_one_value', async () => {
  const page = await openTool('hostile', 'nested');
  await page.fill(field('/title'), 'a title');
  await page.fill(field('/large'), '9007199254740993');
  await page.selectOption(field('/colour'), { label: 'green' });
  await page.click('#to-json');
  const json = page.locator('#arguments-json');
  const text = await json.inputValue();
  assert.ok(text.includes('9007199254740993') && text.includes('"green"'), text);
  await json.fill(text.replace('a title', 'another title'));
  await page.click('#to-form');
  assert.equal(await page.locator(field('/title')).inputValue(), 'another title');
  assert.equal(await page.locator(field('/large')).inputValue(), '9007199254740993');
  await page.click('#run');
  await page.waitForSelector('#call-list li[data-status="completed"]');
  const result = await page.locator('#call-list li .result').first().textContent();
  assert.match(result, /another title/);
  await page.close();
});

await checks.check('nested_objects_and_arrays_have_forms', async () => {
  const page = await openTool('hostile', 'nested');
  await page.fill(field('/title'), 'nested');
  await page.click('button[value="add:/rows"]');
  await page.fill(field('/rows/0/key'), 'first');
  await page.fill(field('/rows/0/value'), '1.5');
  await page.click('button[value="add:/tags"]');
  await page.fill(field('/tags/0'), 'a tag');
  await page.click('#run');
  await page.waitForFunction(() => document.querySelector('#call-list li[data-status="completed"]')?.textContent.includes('nested'));
  const details = await page.locator('#call-list li').first().textContent();
  assert.match(details, /first/);
  assert.match(details, /a tag/);
  await page.close();
});

await checks.check('a_wrong_value_is_reported_at_its_field_and_nothing_is_lost', async () => {
  const page = await openTool('hostile', 'nested');
  await page.fill(field('/ratio'), '7');
  await page.fill(field('/large'), 'twelve');
  await page.click('#run');
  await page.waitForSelector('#call-faults');
  assert.equal(await page.locator(field('/ratio')).inputValue(), '7');
  assert.equal(await page.locator(field('/large')).inputValue(), 'twelve');
  assert.equal(await page.locator('[aria-invalid="true"]').count(), 3, 'ratio, large and the missing title');
  await page.close();
});

await checks.check('a_running_task_never_blocks_the_run_button', async () => {
  const page = await openTool('hostile', 'steps');
  const before = await page.locator('#call-list li').count();
  for (let n = 1; n <= 3; n += 1) {
    await page.fill(field('/count'), '100');
    await page.fill(field('/pause'), '100');
    await page.click('#run');
    await page.waitForFunction((count) => document.querySelectorAll('#call-list li').length >= count, before + n);
  }
  // The indicator stands where the call is shown (S4-69).
  const indicators = '#call-list li outlast-task-status[status="working"]';
  await page.waitForFunction((shown) => document.querySelectorAll(shown).length >= 3, indicators);
  assert.ok(await page.locator('#run').isEnabled());
  await page.close();
});

await checks.check('a_double_click_makes_one_task', async () => {
  const page = await openTool('everything', 'echo');
  await page.fill(field('/message'), 'only once');
  await page.dblclick('#run');
  await page.waitForSelector('#call-list li[data-status="completed"]');
  const count = await page.locator('#call-list li').count();
  assert.equal(count, 1);
  await page.close();
});

await checks.check('a_cancelled_call_stays_cancelled', async () => {
  const page = await openTool('hostile', 'steps');
  const call = page.locator('#call-list li[data-status="working"]').first();
  const key = await call.getAttribute('data-key');
  await call.locator('button[aria-label="Cancel steps"]:visible').click();
  if (await page.locator('#confirm-dialog[open]').count()) await page.click('#confirm-yes');
  await page.waitForSelector(`[data-key="${key}"][data-status="cancelled"]`);
  await page.reload();
  assert.equal(await page.locator(`[data-key="${key}"]`).getAttribute('data-status'), 'cancelled');
  await page.close();
});

await checks.check('an_elicitation_is_answered_on_the_requests_page', async () => {
  const tool = await openTool('everything', 'trigger-elicitation-request');
  await tool.click('#run');
  const page = await open('/requests?tab=elicitations');
  const card = page.locator('#requests section.request').first();
  await card.waitFor();
  assert.match(await page.locator('[data-count="elicitations"]').textContent(), /[1-9]/);
  assert.match(await card.textContent(), /everything/);
  assert.ok(await card.locator('.related').count(), 'the related task or call is named');
  await card.locator(field('/name')).fill('Ada Lovelace');
  await card.locator('button[value="accept"].primary').click();
  await page.waitForSelector('#left [data-why]');
  await tool.waitForSelector('#call-list li[data-status="completed"]');
  assert.match(await tool.locator('#call-list li').first().textContent(), /Ada Lovelace/);
  await tool.close();
  await page.close();
});

await checks.check('a_sampling_request_is_answered_on_the_requests_page', async () => {
  const tool = await openTool('everything', 'trigger-sampling-request');
  await tool.fill(field('/prompt'), 'why is the sky blue');
  await tool.click('#run');
  const page = await open('/requests?tab=sampling');
  const card = page.locator('#requests section.request').first();
  await card.waitFor();
  assert.match(await card.textContent(), /why is the sky blue/);
  await card.locator(field('/text')).fill('because of Rayleigh');
  await card.locator('button[value="answer"]').click();
  await tool.waitForSelector('#call-list li[data-status="completed"]');
  assert.match(await tool.locator('#call-list li').first().textContent(), /because of Rayleigh/);
  await tool.close();
  await page.close();
});

await checks.check('the_answer_of_a_second_person_says_that_the_first_was_accepted', async () => {
  const tool = await openTool('everything', 'trigger-elicitation-request');
  await tool.click('#run');
  const pages = [await open('/requests?tab=elicitations'), await open('/requests?tab=elicitations')];
  for (const page of pages) await page.locator('#requests section.request').first().waitFor();
  const action = await pages[0].locator('#requests section.request form').first().getAttribute('action');
  const csrf = await pages[0].locator('meta[name="csrf"]').getAttribute('content');
  await pages[0].locator('#requests section.request button[value="decline"]').first().click();
  await pages[0].waitForSelector('#left [data-why]');
  const response = await context.request.post(gateway.origin + action, {
    form: { csrf, op: 'decline' },
    headers: { origin: gateway.origin },
  });
  assert.equal(response.status(), 409);
  assert.match(await response.text(), /your answer was not sent: the request was already declined/);
  for (const page of pages) await page.close();
  await tool.close();
});

await checks.check('hostile_names_results_and_schemas_are_text', async () => {
  const page = await openTool('hostile', 'markup');
  await page.click('#run');
  await page.waitForSelector('#call-list li[data-status="failed"], #call-list li[data-status="completed"]');
  assert.ok(!(await page.title()).includes('attacked'));
  assert.equal(await page.locator('main img').count(), 0);
  assert.equal(await page.locator('a[href^="javascript:"]').count(), 0);
  assert.match(await page.locator('#call-list li').first().textContent(), /<img src=x/);
  await page.close();
});

await checks.check('a_form_keeps_its_text_through_a_thousand_updates', async () => {
  const page = await openTool('hostile', 'steps');
  await page.fill(field('/count'), '1000');
  await page.fill(field('/pause'), '5');
  await page.click('#run');
  await page.waitForSelector('#call-list li[data-status="working"]');
  const input = page.locator(field('/count'));
  await input.fill('');
  await input.pressSequentially('4321', { delay: 400 });
  await input.press('ArrowLeft');
  const caret = () => input.evaluate((element) => element.selectionStart);
  assert.equal(await caret(), 3);
  await page.evaluate(() => scrollTo(0, 40));
  const scroll = await page.evaluate(() => scrollY);
  await page.waitForSelector('#call-list li[data-status="completed"]', { timeout: 60_000 });
  assert.equal(await input.inputValue(), '4321');
  assert.equal(await caret(), 3);
  assert.equal(await page.evaluate(() => scrollY), scroll);
  await page.close();
});

await checks.check('buttons_that_copy_and_pause_are_shown_and_work', async () => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: gateway.origin });
  const tool = await openTool('everything', 'echo');
  await tool.fill(field('/message'), 'to copy');
  await tool.click('#run');
  const call = tool.locator('#call-list li[data-status="completed"]').filter({ hasText: 'Echo: to copy' });
  await call.waitFor();
  await call.locator('details.more summary').click();
  await call.locator('[data-action="copy"]').click();
  await tool.waitForSelector('#toasts .toast');
  assert.match(await tool.evaluate(() => navigator.clipboard.readText()), /"content"/);
  await tool.close();
  const page = await open('/traffic?method=tools%2Fcall');
  await page.waitForSelector('#stream[data-state="open"]');
  const message = page.locator('#messages li[data-kind="request"]').first();
  await message.locator('summary').click();
  await message.locator('.command [data-action="copy"]').click();
  await page.waitForSelector('#toasts .toast');
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^outlast call http/);
  await message.locator('[data-action="copy"][data-copy-url]').click();
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith('{"jsonrpc'));
  // A paused page shows nothing new until it continues.
  await page.click('[data-action="pause"]');
  await page.waitForSelector('#stream[data-state="paused"]');
  const other = await openTool('everything', 'echo');
  await other.fill(field('/message'), 'while paused');
  await other.click('#run');
  await other.waitForSelector('#call-list li[data-status="completed"]');
  await page.waitForTimeout(1500);
  assert.ok(await page.locator('#new-rows').isHidden());
  await page.click('[data-action="pause"]');
  await page.waitForSelector('#new-rows:not([hidden])');
  await page.close();
  await other.close();
});

await checks.check('a_task_that_waits_for_input_is_polled_and_asks_once', async () => {
  const tool = await openTool('everything', 'trigger-elicitation-request');
  await tool.click('#run');
  await tool.waitForSelector('#call-list li[data-status="input_required"]');
  const page = await open('/requests?tab=elicitations');
  await page.locator('#requests section.request').first().waitFor();
  const messages = async (method) => {
    const text = await (await context.request.get(`${gateway.origin}/traffic/export?method=${encodeURIComponent(method)}`)).text();
    return text.split('\n').filter(Boolean).length;
  };
  const before = [await messages('tasks/get'), await messages('elicitation/create'), await messages('tasks/result')];
  await page.waitForTimeout(4_000);
  const after = [await messages('tasks/get'), await messages('elicitation/create'), await messages('tasks/result')];
  const grown = after.map((number, at) => number - before[at]);
  console.error(`        in 4 s: tasks/get ${grown[0]}, elicitation/create ${grown[1]}, tasks/result ${grown[2]}`);
  // A request and its response are two messages, and other calls of these checks are polled, too.
  assert.ok(grown[0] < 40 && grown[1] === 0 && grown[2] <= 4, grown.join());
  assert.equal(await page.locator('#requests section.request').count(), 1, 'one request');
  await page.locator('#requests section.request button[value="decline"]').click();
  await tool.waitForSelector('#call-list li[data-status="completed"]');
  await page.waitForSelector('#empty');
  await tool.close();
  await page.close();
});

await checks.check('connections_show_era_capabilities_and_health', async () => {
  const page = await open('/connections');
  for (const server of ['everything', 'fastmcp', 'rmcp', 'hostile']) {
    const card = page.locator(`section.connection[data-server="${server}"]`);
    await until(`${server} is connected`, async () => (await card.getAttribute('data-health')) === 'open');
    assert.ok((await card.locator('.chip').count()) >= 2);
  }
  await page.close();
});

await checks.check('a_server_that_cannot_be_reached_says_what_to_do', async () => {
  const page = await open('/connections');
  await page.fill('#url', 'http://127.0.0.1:9/mcp');
  await page.click('#add-url button');
  await page.waitForSelector('section.connection[data-health="failed"] .notice, #connection-problem');
  await page.close();
});

await checks.check('traffic_shows_filters_and_expands_messages', async () => {
  const page = await open('/traffic?method=tools%2Fcall');
  await page.waitForSelector('#messages li');
  const methods = await page.locator('#messages .m-method').allTextContents();
  assert.ok(methods.every((text) => text.includes('tools/call')), methods.join());
  await page.locator('#messages li summary').first().click();
  await page.waitForSelector('#messages li details[open] pre');
  await page.close();
});

await checks.check('a_call_with_progress_outlasts_the_usual_timeout', async () => {
  await slow.waitForFunction(
    () => document.querySelector('#call-list')?.textContent.includes('130 steps'),
    null,
    { timeout: 120_000 },
  );
});

await checks.check('calls_and_drafts_survive_a_restart_of_the_gateway', async () => {
  const page = await openTool('hostile', 'steps');
  await page.fill(field('/count'), '150');
  await page.fill(field('/pause'), '100');
  await page.click('#run');
  const call = page.locator('#call-list li').first();
  await page.waitForSelector('#call-list li:first-child[data-status="working"]');
  const before = await page.locator('#call-list li').count();
  await page.fill(field('/count'), '4321');
  await gateway.kill();
  await page.waitForSelector('#stream[data-state="broken"]');
  assert.equal(await page.locator('#call-list li').count(), before, 'the list stays while the stream is broken');
  assert.ok(await call.isVisible());
  await gateway.launch();
  await page.waitForSelector('#stream[data-state="open"]');
  assert.equal(await page.locator(field('/count')).inputValue(), '4321');
  await page.reload();
  await page.waitForFunction((name) => document.querySelector(name)?.value === '4321', field('/count'));
  // The task of the call is in the store, so that it is found after the restart.
  await page.goto(`${gateway.origin}/tasks?q=tool%3Asteps`);
  await page.waitForSelector('#rows tr');
  await page.close();
});

await checks.check('no_page_reported_an_error', async () => {
  assert.deepEqual(allFaults.flat(), []);
});

await browser.close();
await gateway.stop();
checks.finish();
