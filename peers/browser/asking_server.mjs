// An MCP server on standard input and output that asks its client: forms, pages, sampling and
// roots, inline. Its tool returns what the client answered. With the argument `empty` it has no
// tools, with `broken` it cannot list them.
import { createInterface } from 'node:readline';

const MARKUP = '<img src=x onerror="document.title=\'attacked\'"><script>document.title="attacked"</script>';
const kind = process.argv[2] ?? 'asking';

const form = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Name', minLength: 1 },
    age: { type: 'integer', minimum: 0, maximum: 150 },
    colour: { type: 'string', enum: ['red', 'green', 'blue'] },
    agrees: { type: 'boolean', default: true },
  },
  required: ['name'],
};

/** What the server sends for each argument of its tool. */
const questions = {
  form: { method: 'elicitation/create', params: { mode: 'form', message: 'Who are you?', requestedSchema: form } },
  page: {
    method: 'elicitation/create',
    params: { mode: 'url', elicitationId: 'e-1', url: 'https://example.invalid/pay?amount=5#now', message: 'Pay here.' },
  },
  trap: {
    method: 'elicitation/create',
    params: { mode: 'url', elicitationId: 'e-2', url: 'https://bank.example@evil.example/', message: MARKUP },
  },
  script: {
    method: 'elicitation/create',
    params: { mode: 'url', elicitationId: 'e-3', url: 'javascript:document.title="attacked"', message: 'Click.' },
  },
  markup: {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: MARKUP,
      requestedSchema: { type: 'object', properties: { '"><b>x': { type: 'string', title: MARKUP, description: MARKUP } } },
    },
  },
  sampling: {
    method: 'sampling/createMessage',
    params: {
      systemPrompt: MARKUP,
      messages: [{ role: 'user', content: { type: 'text', text: `Summarise. ${MARKUP}` } }],
      modelPreferences: { hints: [{ name: 'small' }], speedPriority: 0.5 },
      maxTokens: 100,
    },
  },
  roots: { method: 'roots/list', params: {} },
};

const tool = {
  name: 'ask',
  description: 'Asks its client and returns the answer',
  inputSchema: {
    type: 'object',
    properties: { what: { type: 'string', enum: [...Object.keys(questions), 'leave'] } },
    required: ['what'],
  },
};

const answers = new Map();
let next = 1;

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

function ask(question) {
  const id = `q-${next}`;
  next += 1;
  send({ id, ...question });
  return new Promise((done) => answers.set(id, done));
}

async function call(id, what) {
  if (what === 'leave') {
    send({ id: 'last', ...questions.form });
    // The client has to see the question first.
    setTimeout(() => process.exit(0), 1500);
    return;
  }
  const answer = await ask(questions[what]);
  send({ id, result: { content: [{ type: 'text', text: JSON.stringify(answer) }] } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === 'initialize') {
    const capabilities = { tools: {} };
    send({ id, result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: kind, version: '1' } } });
  } else if (method === 'tools/list' && kind === 'broken') {
    send({ id, error: { code: -32603, message: 'the list of tools is broken' } });
  } else if (method === 'tools/list') {
    send({ id, result: { tools: kind === 'empty' ? [] : [tool] } });
  } else if (method === 'tools/call') {
    call(id, params.arguments.what);
  } else if (method === 'ping') {
    send({ id, result: {} });
  } else if (method === undefined) {
    answers.get(id)?.(result ?? { error });
    answers.delete(id);
  } else if (id !== undefined) {
    send({ id, error: { code: -32601, message: `method ${method} not found` } });
  }
});
