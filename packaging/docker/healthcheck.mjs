// The health check of the container: node healthcheck.mjs [URL].
const url = process.argv[2] ?? 'http://127.0.0.1:8040/healthz';
const healthy = await fetch(url).then((response) => response.ok, () => false);
process.exit(healthy ? 0 : 1);
