// The gateway of the browser checks: real servers behind it, two owners, and their sign-in to the
// console.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Process, freePort, run, temporaryFolder } from './harness.mjs';

const OUTLAST = process.env.OUTLAST;

/** The tokens of two owners. `local` is the operator. */
export const TOKENS = { ada: 'secret-of-ada', bob: 'secret-of-bob' };

/** An owner can have the tasks of `fill_store` and more. */
const LIMITS = { tasksPerOwner: 1_000_000, tasks: 1_000_000 };

/** The real servers, and one whose texts and sizes are hostile. */
export function servers() {
  return {
    everything: { command: process.execPath, args: [process.env.EVERYTHING, 'stdio'] },
    fastmcp: { command: process.env.PYTHON, args: [process.env.FASTMCP_SERVER, 'stdio'] },
    rmcp: { command: process.env.RMCP_SERVER },
    hostile: { command: process.execPath, args: [join(import.meta.dirname, 'hostile_server.mjs')] },
  };
}

/** `outlast serve` in a folder of its own. It can be killed and started again at the same port. */
export class Gateway {
  static async start(options = {}) {
    const gateway = new Gateway();
    gateway.folder = temporaryFolder();
    gateway.port = await freePort();
    gateway.store = `sqlite:${join(gateway.folder.path, 'tasks.db')}`;
    gateway.config = join(gateway.folder.path, 'servers.json');
    gateway.tokens = join(gateway.folder.path, 'tokens.json');
    writeFileSync(gateway.config, JSON.stringify({ mcpServers: { ...servers(), ...options.servers }, outlast: LIMITS }));
    writeFileSync(gateway.tokens, JSON.stringify(TOKENS));
    gateway.env = { ...process.env, HOME: gateway.folder.path, XDG_DATA_HOME: gateway.folder.path };
    delete gateway.env.OUTLAST_TOKEN;
    if (options.tasks) await run(process.env.FILL_STORE, [gateway.store, String(options.tasks), 'ada']);
    await gateway.launch();
    return gateway;
  }

  get origin() {
    return `http://127.0.0.1:${this.port}`;
  }

  async launch() {
    const args = ['serve', '--config', this.config, '--tokens', this.tokens, '--store', this.store];
    args.push('--http', `127.0.0.1:${this.port}`);
    this.process = new Process(OUTLAST, args, { env: this.env });
    await this.process.line(/^http:/);
    this.token = (await this.cli('gateway', 'token', '--store', this.store)).trim();
  }

  /** The link that `outlast serve` prints for the operator. */
  async link() {
    const end = Date.now() + 10_000;
    for (;;) {
      const found = /console: (\S+)/.exec(this.process.errors);
      if (found) return found[1];
      if (Date.now() > end) throw new Error(`no link to the console in:\n${this.process.errors}`);
      await new Promise((wake) => setTimeout(wake, 50));
    }
  }

  /** Runs a command of the command line with the data folder of this gateway. */
  async cli(...args) {
    return run(OUTLAST, args, { env: this.env });
  }

  /** Calls a tool as a task of an owner, and returns without its result. */
  async detach(owner, server, tool, ...args) {
    const token = owner === 'local' ? this.token : TOKENS[owner];
    const env = { ...this.env, OUTLAST_TOKEN: token };
    const url = `${this.origin}/mcp/${server}`;
    return run(OUTLAST, ['call', '--as', 'v1', '--detach', '--json', url, tool, ...args], { env });
  }

  async kill() {
    await this.process.end('SIGKILL');
  }

  async stop() {
    await this.process.end();
    this.folder.close();
  }
}
