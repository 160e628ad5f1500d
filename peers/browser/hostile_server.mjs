// An MCP server on standard input and output whose names, texts and schemas try to break a page,
// with results of unusual size. It has no tasks of its own.
import { createInterface } from 'node:readline';

const MARKUP = '<img src=x onerror="document.title=\'attacked\'"><script>document.title="attacked"</script>';

const tools = [
  {
    name: 'markup',
    title: `Markup ${MARKUP}`,
    description: `Returns markup ${MARKUP}`,
    inputSchema: {
      type: 'object',
      properties: { '"><b>name': { type: 'string', title: MARKUP, description: MARKUP, default: MARKUP } },
    },
  },
  {
    name: 'huge',
    description: 'Returns a structured result of nearly 16 MiB',
    inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'steps',
    description: 'Reports progress',
    inputSchema: {
      type: 'object',
      properties: {
        count: { type: 'integer', minimum: 1, maximum: 5000, default: 10 },
        pause: { type: 'integer', title: 'Pause in milliseconds', minimum: 0, default: 10 },
      },
      required: ['count'],
    },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'nested',
    description: 'Returns its arguments',
    inputSchema: {
      type: 'object',
      properties: {
        title: { type: 'string', minLength: 1 },
        day: { type: 'string', format: 'date' },
        ratio: { type: 'number', minimum: 0, maximum: 1 },
        large: { type: 'integer' },
        urgent: { type: 'boolean', default: true },
        colour: { type: 'string', enum: ['red', 'green', 'blue'] },
        tags: { type: 'array', items: { type: 'string' } },
        address: {
          type: 'object',
          properties: { street: { type: 'string' }, number: { type: 'integer' } },
          required: ['street'],
        },
        rows: {
          type: 'array',
          items: { type: 'object', properties: { key: { type: 'string' }, value: { type: 'number' } } },
        },
      },
      required: ['title'],
    },
    annotations: { readOnlyHint: true },
  },
];

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

function hugeResult() {
  const row = (n) => `{"n":${n},"exact":9007199254740993,"text":"${'x'.repeat(200)}"}`;
  const rows = Array.from({ length: 60_000 }, (_, n) => row(n)).join(',');
  const content = '[{"type":"text","text":"many rows"}]';
  return `{"content":${content},"structuredContent":{"large":12345678901234567890,"rows":[${rows}]}}`;
}

async function call(id, { name, arguments: given = {}, _meta: meta }) {
  switch (name) {
    case 'markup': {
      const content = [
        { type: 'text', text: MARKUP },
        { type: 'resource_link', uri: 'javascript:document.title="attacked"', name: MARKUP },
        { type: 'resource_link', uri: 'https://example.invalid/page', name: 'a page' },
      ];
      return send({ id, result: { content, isError: true } });
    }
    case 'huge':
      return process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${hugeResult()}}\n`);
    case 'steps':
      for (let step = 1; step <= given.count; step += 1) {
        if (meta?.progressToken !== undefined) {
          const params = { progressToken: meta.progressToken, progress: step, total: given.count, message: `step ${step}` };
          send({ method: 'notifications/progress', params });
        }
        await new Promise((wake) => setTimeout(wake, given.pause ?? 10));
      }
      return send({ id, result: { content: [{ type: 'text', text: `${given.count} steps` }] } });
    case 'nested':
      return send({ id, result: { content: [{ type: 'text', text: JSON.stringify(given) }], structuredContent: given } });
    default:
      return send({ id, error: { code: -32602, message: `there is no tool ${name}` } });
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    const result = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'hostile', version: '1', title: `Hostile ${MARKUP}` },
    };
    send({ id, result });
  } else if (method === 'tools/list') {
    send({ id, result: { tools } });
  } else if (method === 'tools/call') {
    call(id, params);
  } else if (method === 'ping') {
    send({ id, result: {} });
  } else if (id !== undefined) {
    send({ id, error: { code: -32601, message: `method ${method} not found` } });
  }
});
