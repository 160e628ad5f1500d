// The MCP Inspector's own command line, `mcpdo`, as a client of the tasks_server sample: node
// tasks.mjs URL
//
// The Inspector keeps a connection in a daemon. It gets its own folder and home directory and is
// stopped at the end.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [url] = process.argv.slice(2);
const program = join(import.meta.dirname, 'node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js');
const home = mkdtempSync(join(tmpdir(), 'inspector-'));
const env = { ...process.env, HOME: home, MCP_INSPECTOR_SECRET_STORE: 'memory' };

function run(...args) {
  const options = { env, encoding: 'utf8', timeout: 60_000, stdio: ['ignore', 'pipe', 'pipe'] };
  return execFileSync(process.execPath, [program, ...args], options);
}

function inspect(...args) {
  return JSON.parse(run('--connection', 'sample', '--format', 'json', ...args));
}

// `export NAME='VALUE'`, one per line.
for (const [, name, value] of run('private').matchAll(/export (\w+)='([^']*)'/g)) {
  env[name] = value;
}
let failed = false;
try {
  inspect('connect', url);
  const { tools } = inspect('tools/list');
  const tool = tools.find(({ name }) => name === 'LongRunningAnalysis');
  assert.equal(tool.execution.taskSupport, 'optional');
  console.log('ok      the_inspector_connects_and_lists_the_tool');

  const result = inspect('tools/call', 'LongRunningAnalysis', 'data:=tides', 'durationSeconds:=1', '--task');
  assert.equal(result.content[0].text, 'Analysis complete for: tides');
  const { taskId } = result._meta['io.modelcontextprotocol/related-task'];
  console.log('ok      the_inspector_calls_the_tool_as_a_task');

  const { task } = inspect('tasks/get', taskId);
  assert.deepEqual([task.taskId, task.status], [taskId, 'completed']);
  const { tasks } = inspect('tasks/list');
  assert.deepEqual(tasks.map((task) => task.taskId), [taskId]);
  const fetched = inspect('tasks/result', taskId);
  assert.deepEqual(fetched.content, result.content);
  console.log('ok      the_inspector_polls_with_get_and_fetches_with_result');
} catch (error) {
  failed = true;
  console.log(`FAILED  ${error.stack}\n${error.stdout ?? ''}${error.stderr ?? ''}`);
} finally {
  run('daemon', 'stop');
  rmSync(home, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
