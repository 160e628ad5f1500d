// Shared by the browser checks: Chromium, a gateway as a process, and the report of each check.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

/** How long a check waits for an event of the page. */
export const WAIT_MS = 30_000;

const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts the Chromium of this machine. */
export async function openBrowser() {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  return chromium.launch({ executablePath, args: CHROMIUM_ARGS });
}

/** The faults of every session that was opened. */
export const allFaults = [];

/**
 * Opens a browser session of one viewer. Every console error, page error and CSP report of its
 * pages is kept in `faults`.
 */
export async function openSession(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(WAIT_MS);
  const faults = [];
  allFaults.push(faults);
  await context.exposeBinding('reportViolation', (_, text) => faults.push(`CSP: ${text}`));
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => {
      window.reportViolation(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  context.on('page', (page) => {
    page.on('console', (message) => {
      // A request that a check expects to be refused is logged by the browser itself.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
        faults.push(message.text());
      }
    });
    page.on('pageerror', (error) => faults.push(error.stack ?? String(error)));
  });
  return { context, faults };
}

/** A temporary folder that `close` removes. */
export function temporaryFolder() {
  const path = mkdtempSync(join(tmpdir(), 'outlast-browser-'));
  return { path, close: () => rmSync(path, { recursive: true, force: true }) };
}

/** A port of the loopback address that is free now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** A child process whose standard output is read by lines. */
export class Process {
  constructor(command, args, options = {}) {
    this.child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    this.lines = [];
    this.errors = '';
    this.ended = once(this.child, 'exit');
    this.child.on('error', (error) => { this.errors += String(error); });
    this.waiting = [];
    const output = createInterface({ input: this.child.stdout });
    output.on('line', (line) => {
      this.lines.push(line);
      this.waiting.splice(0).forEach((wake) => wake());
    });
    this.child.stderr.on('data', (chunk) => { this.errors = (this.errors + chunk).slice(-100_000); });
    this.ended.then(() => this.waiting.splice(0).forEach((wake) => wake()), () => {});
  }

  /** The first line of standard output that matches. */
  async line(pattern) {
    const until = Date.now() + WAIT_MS;
    for (;;) {
      const found = this.lines.find((line) => pattern.test(line));
      if (found !== undefined) return found;
      if (this.child.exitCode !== null || this.child.signalCode !== null) {
        throw new Error(`the process ended before it printed ${pattern}:\n${this.errors}`);
      }
      const left = until - Date.now();
      if (left <= 0) throw new Error(`the process did not print ${pattern}:\n${this.errors}`);
      await new Promise((wake) => {
        this.waiting.push(wake);
        setTimeout(wake, left).unref();
      });
    }
  }

  /** Sends a signal and waits for the end. */
  async end(signal = 'SIGTERM') {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill(signal);
    const timeout = setTimeout(() => this.child.kill('SIGKILL'), 15_000);
    await this.ended;
    clearTimeout(timeout);
  }
}

/** Runs a command to its end and returns its standard output. */
export async function run(command, args, options = {}) {
  const child = new Process(command, args, options);
  const [code] = await child.ended;
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${child.errors}`);
  return child.lines.join('\n');
}

/** Asks `probe` until it returns a value that is not false. */
export async function until(what, probe) {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not happen within ${WAIT_MS} ms`);
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

/** Runs named checks one after the other and prints `ok TITLE` for each that passed. */
export class Checks {
  constructor() {
    this.failed = 0;
    // A regular expression for the titles, to run some checks alone.
    this.only = process.env.ONLY && new RegExp(process.env.ONLY);
  }

  async check(title, work) {
    if (this.only && !this.only.test(title)) return;
    const began = Date.now();
    try {
      await work();
      console.log(`ok      ${title}`);
      console.error(`        ${((Date.now() - began) / 1000).toFixed(1)} s`);
    } catch (error) {
      this.failed += 1;
      console.log(`FAILED  ${title}\n${error.stack ?? error}`);
    }
  }

  finish() {
    process.exitCode = this.failed === 0 ? 0 : 1;
  }
}
