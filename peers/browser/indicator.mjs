// The task indicator of the console in Chromium: each part of it, on a page with the styles of the
// console.
import assert from 'node:assert/strict';
import { Gateway, TOKENS } from './gateway.mjs';
import { Checks, WAIT_MS, allFaults, openBrowser, openSession } from './harness.mjs';

const checks = new Checks();
const browser = await openBrowser();
const gateway = await Gateway.start();
const { context } = await openSession(browser, { colorScheme: 'light' });
const page = await context.newPage();
await page.goto(`${gateway.origin}/sign-in`);
await page.fill('#token', TOKENS.ada);
await page.click('#sign-in-form button');
await page.waitForSelector('nav#pages');

const STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'];
const ACTIVE = ['working', 'input_required'];
const CIRCLE = 'M14.2 8a6.2 6.2 0 1 1-12.4 0 6.2 6.2 0 0 1 12.4 0z';

/** The drawing of each status: a loader, a pause sign, a check mark, a cross, an exclamation mark. */
const ICONS = {
  working: ['M8 2a6 6 0 0 1 6 6'],
  input_required: ['M5 3v10', 'M11 3v10'],
  completed: [CIRCLE, 'm5.2 8.2 2 2 3.7-4.2'],
  failed: [CIRCLE, 'm5.7 5.7 4.6 4.6m0-4.6-4.6 4.6'],
  cancelled: [CIRCLE, 'M8 4.6v4', 'M8 11.2v.1'],
};

/** The custom property of the console with the colour of each status. */
const COLOURS = {
  working: '--working',
  input_required: '--input',
  completed: '--completed',
  failed: '--failed',
  cancelled: '--cancelled',
};

/** Puts an indicator with these attributes onto the page, in place of the last one. */
async function show(attributes) {
  await page.evaluate((all) => {
    document.querySelector('#shown')?.remove();
    const one = document.createElement('outlast-task-status');
    one.id = 'shown';
    for (const [name, value] of Object.entries(all)) one.setAttribute(name, value);
    // Outside `main`, whose content follows the server.
    document.body.prepend(one);
  }, attributes);
}

/** What the indicator on the page looks like. */
async function look() {
  return page.evaluate(() => {
    const one = document.querySelector('#shown');
    const part = (name) => one.shadowRoot.querySelector(name);
    const style = (name) => getComputedStyle(part(name));
    const isShown = (name) => part(name).checkVisibility();
    return {
      paths: [...one.shadowRoot.querySelectorAll('svg path')].map((path) => path.getAttribute('d')),
      iconColour: style('svg').color,
      animation: style('svg').animationName,
      word: part('.word').textContent,
      weight: style('.word').fontWeight,
      message: isShown('.message') ? part('.message').textContent : null,
      messageColour: style('.message').color,
      server: isShown('.server') ? part('.server').textContent : null,
      progress: isShown('progress') ? [part('progress').value, part('progress').max] : null,
      button: isShown('button') ? part('button').getAttribute('aria-label') : null,
    };
  });
}

/** The three numbers of the colour of a custom property on this page. */
async function colourOf(property) {
  const colour = await page.evaluate((name) => {
    const probe = document.createElement('span');
    probe.style.color = `var(${name})`;
    document.querySelector('main').append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }, property);
  return colour;
}

/** Fails after the time that a check may wait. */
function late(why) {
  return new Promise((_, fail) => {
    setTimeout(() => fail(new Error(why)), WAIT_MS).unref();
  });
}

const numbers = (colour) => colour.match(/\d+/g).slice(0, 3).map(Number);

await checks.check('each_status_has_its_own_icon', async () => {
  for (const status of STATUSES) {
    await show({ status });
    const seen = await look();
    assert.deepEqual(seen.paths, ICONS[status], status);
    assert.equal(seen.animation, status === 'working' ? 'spin' : 'none', status);
  }
});

await checks.check('each_status_has_the_colour_of_its_meaning', async () => {
  const seen = {};
  for (const status of STATUSES) {
    await show({ status });
    const { iconColour } = await look();
    assert.equal(iconColour, await colourOf(COLOURS[status]), status);
    seen[status] = numbers(iconColour);
  }
  const [warnRed, warnGreen, warnBlue] = seen.input_required;
  assert.ok(warnRed > warnGreen && warnGreen > warnBlue, `a warning is amber: ${seen.input_required}`);
  const [red, green, blue] = seen.completed;
  assert.ok(green > red && green > blue, `success is green: ${seen.completed}`);
  const [failRed, failGreen, failBlue] = seen.failed;
  assert.ok(failRed > 2 * failGreen && failRed > 2 * failBlue, `failure is red: ${seen.failed}`);
  const spread = Math.max(...seen.cancelled) - Math.min(...seen.cancelled);
  assert.ok(spread < 40, `cancelled is muted: ${seen.cancelled}`);
});

await checks.check('word_message_server_and_progress_are_shown', async () => {
  const task = { server: 'files', source: 'global', 'task-id': 't-1', tool: 'render' };
  await show({ ...task, status: 'input_required', message: 'page 3', progress: '3', total: '8', 'show-server': '' });
  let seen = await look();
  assert.equal(seen.word, 'Input Required');
  assert.equal(seen.weight, '500', 'medium weight');
  assert.equal(seen.message, '— page 3');
  assert.equal(seen.messageColour, await colourOf('--muted'));
  assert.equal(seen.server, 'files');
  assert.deepEqual(seen.progress, [3, 8]);
  assert.equal(seen.button, 'Cancel render');
  // An update of the task changes all of them. An older one is dropped.
  const update = (data) => page.evaluate((change) => document.querySelector('#shown').update(change), data);
  await update({ status: 'working', statusMessage: 'page 5', progress: 5, total: 8, revision: 4 });
  await update({ status: 'failed', statusMessage: 'late', revision: 3 });
  seen = await look();
  assert.deepEqual([seen.word, seen.message, seen.progress], ['Working', '— page 5', [5, 8]]);
  await update({ status: 'completed', revision: 5 });
  seen = await look();
  assert.deepEqual([seen.word, seen.message, seen.progress, seen.button], ['Completed', null, null, null]);
  // Without the options, neither the server nor a bar without an end is shown.
  await show({ ...task, status: 'working', progress: '3' });
  seen = await look();
  assert.deepEqual([seen.server, seen.progress, seen.message], [null, null, null]);
});

await checks.check('the_cancel_button_is_small_ghost_and_red_until_the_task_ends', async () => {
  for (const status of STATUSES) {
    await show({ status });
    const { button } = await look();
    assert.equal(button, ACTIVE.includes(status) ? 'Cancel task' : null, status);
  }
  await show({ status: 'working', readonly: '' });
  assert.equal((await look()).button, null, 'a viewer that may not cancel');
  await show({ status: 'working' });
  const style = await page.evaluate(() => {
    const one = document.querySelector('#shown');
    const { backgroundColor, borderTopWidth, color, fontSize } = getComputedStyle(one.shadowRoot.querySelector('button'));
    const host = getComputedStyle(one);
    return { backgroundColor, borderTopWidth, color, fontSize, hostSize: host.fontSize };
  });
  assert.equal(style.backgroundColor, 'rgba(0, 0, 0, 0)', 'no background');
  assert.equal(style.borderTopWidth, '0px', 'no border');
  assert.equal(style.color, await colourOf('--failed'));
  assert.ok(parseFloat(style.fontSize) < parseFloat(style.hostSize), JSON.stringify(style));
});

await checks.check('the_cancel_button_names_server_source_and_task', async () => {
  await show({ server: 'files', source: 'global', 'task-id': 't-1', status: 'working' });
  // The console handles the event at the document. This listener is a callback of another page.
  const event = page.evaluate(() => new Promise((done) => {
    const listen = (cancel) => {
      cancel.stopImmediatePropagation();
      done({ detail: cancel.detail, target: cancel.target.id, bubbles: cancel.bubbles });
    };
    addEventListener('cancelMcpTask', listen, { once: true, capture: true });
    window.isListening = true;
  }));
  await page.waitForFunction(() => window.isListening);
  await page.locator('#shown').locator('button').click();
  assert.deepEqual(await event, {
    detail: { server: 'files', source: 'global', taskId: 't-1' },
    target: 'shown',
    bubbles: true,
  });
});

await checks.check('an_equal_update_draws_nothing_and_the_parts_are_in_a_row', async () => {
  await show({ status: 'working', message: 'page 3', progress: '3', total: '8', 'show-server': '', server: 'files' });
  const seen = await page.evaluate(() => {
    const one = document.querySelector('#shown');
    const path = () => one.shadowRoot.querySelector('svg path');
    const before = path();
    one.setAttribute('status', 'working');
    one.update({ status: 'working', statusMessage: 'page 4', progress: 4, total: 8 });
    const isSame = path() === before;
    one.setAttribute('status', 'completed');
    const isOther = path() !== before;
    one.setAttribute('status', 'working');
    const { display, columnGap, fontSize } = getComputedStyle(one);
    const boxes = [...one.shadowRoot.children].filter((part) => part.checkVisibility());
    const places = boxes.map((part) => part.getBoundingClientRect());
    const inRow = places.every((place, at) => at === 0 || place.left >= places[at - 1].right);
    const body = getComputedStyle(document.documentElement).fontSize;
    return { isSame, isOther, display, columnGap, fontSize, body, inRow, parts: boxes.length };
  });
  assert.ok(seen.isSame, 'the icon is not drawn again');
  assert.ok(seen.isOther, 'another status draws another icon');
  assert.ok(seen.display.includes('flex') && seen.inRow, JSON.stringify(seen));
  assert.equal(seen.parts, 6, 'icon, server, word, message, progress, button');
  assert.ok(parseFloat(seen.columnGap) > 0, seen.columnGap);
  assert.ok(parseFloat(seen.fontSize) < parseFloat(seen.body), `${seen.fontSize} in ${seen.body}`);
});

await checks.check('an_event_of_a_task_has_every_member', async () => {
  /** The first event of a new task of this tool that has this member, and the id of the task. */
  const firstWith = async (member, server, tool, ...args) => {
    const event = page.evaluate(({ origin, wanted, name }) => new Promise((done) => {
      const source = new EventSource(`${origin}/api/v1/events`);
      source.addEventListener('mcpTaskStatus', ({ data }) => {
        const found = JSON.parse(data);
        if (found.tool !== name || found[wanted] === undefined) return;
        source.close();
        done(found);
      });
      window.listening = new Promise((open) => source.addEventListener('hello', open));
    }), { origin: gateway.origin, wanted: member, name: tool });
    await page.waitForFunction(() => window.listening);
    await page.evaluate(() => window.listening);
    const printed = await gateway.detach('ada', server, tool, ...args);
    const task = JSON.parse(printed.trim().split('\n').at(-1)).taskId;
    return [await Promise.race([event, late(`no event has ${member}`)]), task];
  };
  const [moved, steps] = await firstWith('progress', 'hostile', 'steps', 'count=50', 'pause=100');
  assert.deepEqual(
    [moved.server, moved.source, moved.taskId, moved.status, moved.total],
    ['hostile', 'store', steps, 'working', 50],
  );
  assert.ok(moved.progress >= 1 && moved.progress <= 50 && moved.revision >= 0, JSON.stringify(moved));
  const [said, research] = await firstWith('statusMessage', 'everything', 'simulate-research-query', 'topic=tides');
  assert.deepEqual([said.server, said.source, said.taskId, said.status], ['everything', 'store', research, 'working']);
  assert.ok(said.statusMessage.length > 3, JSON.stringify(said));
});

await checks.check('no_page_reported_an_error', async () => {
  assert.deepEqual(allFaults.flat(), []);
});

await browser.close();
await gateway.stop();
checks.finish();
