// A V1 server on the TypeScript SDK, for the benchmarks: prints its address and serves until its
// input ends.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore,
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';

const taskStore = new InMemoryTaskStore();
const result = { content: [{ type: 'text', text: '0123456789'.repeat(15) }] };
const sessions = new Map();

function server() {
  const server = new McpServer({ name: 'bench', version: '1' }, {
    capabilities: { tasks: { requests: { tools: { call: {} } } } },
    taskStore,
    taskMessageQueue: new InMemoryTaskMessageQueue(),
  });
  server.registerTool('plain', { description: 'does nothing' }, async () => result);
  server.experimental.tasks.registerToolTask('nothing', { description: 'does nothing' }, {
    async createTask({ taskStore, taskRequestedTtl }) {
      const task = await taskStore.createTask({ ttl: taskRequestedTtl });
      await taskStore.storeTaskResult(task.taskId, 'completed', result);
      return { task };
    },
    async getTask({ taskId, taskStore }) {
      return await taskStore.getTask(taskId);
    },
    async getTaskResult({ taskId, taskStore }) {
      return await taskStore.getTaskResult(taskId);
    },
  });
  return server;
}

async function transport(session) {
  const known = sessions.get(session);
  if (known) return known;
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => sessions.set(id, transport),
  });
  await server().connect(transport);
  return transport;
}

const http = createServer(async (request, response) => {
  const found = await transport(request.headers['mcp-session-id']);
  await found.handleRequest(request, response);
});
http.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${http.address().port}`));
process.stdin.resume().on('end', () => process.exit(0));
