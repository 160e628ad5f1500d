// The web console of `outlast serve` in Chromium, with real servers behind the gateway and two owners.
import assert from 'node:assert/strict';
import { Gateway, TOKENS } from './gateway.mjs';
import { Checks, openBrowser, openSession } from './harness.mjs';

const checks = new Checks();
const browser = await openBrowser();
const gateway = await Gateway.start();

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
  const mcp = await context.request.post(`${gateway.origin}/everything/mcp`, {
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

await checks.check('a_signed_in_owner_sees_the_overview', async () => {
  const { context, page, faults } = await signedIn(TOKENS.ada);
  await page.waitForSelector('#counts');
  await page.waitForSelector('#stream[data-state="open"]');
  assert.deepEqual(faults, []);
  await context.close();
});

await browser.close();
await gateway.stop();
checks.finish();
