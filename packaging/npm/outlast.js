#!/usr/bin/env node
// Starts the program from the package of this platform.
'use strict';
const { spawn } = require('node:child_process');

const name = `outlast-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/outlast`);
} catch {
  console.error(
    `outlast: the package ${name} is not installed\n` +
      '  next: install again without --omit=optional; if there is no such package, build from source',
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => {
  console.error(`outlast: ${program} does not start: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
