#!/usr/bin/env node
// Checks the Node version before anything else is loaded, and caches compiled code in the user's cache folder so that
// the next start is faster. Must parse and run on every Node version that has ES modules.
const program = '%PROGRAM%'
const floor = Number('%NODE_FLOOR%')
const running = process.versions.node
if (Number(running.split('.')[0]) < floor) {
  const { fileURLToPath } = await import('node:url')
  // From this same installation: npm finds the package whether it was installed globally, in a project, or for one run.
  const installed = fileURLToPath(new URL('..', import.meta.url)).slice(0, -1)
  const quoted = /^[\w./:\\-]+$/.test(installed) ? installed : JSON.stringify(installed)
  process.stderr.write(
    `Error: ${program} needs Node ${floor} or newer, and this is Node ${running}. It uses modules that older versions ` +
      `lack, such as node:sqlite.\nInstall Node ${floor} from https://nodejs.org, or let npm bring it for one run:\n` +
      `  npx --yes --package=node@${floor} --package=${quoted} ${program} ...\n`,
  )
  process.exit(1)
}

// Read without an import, so that Node loads no unused properties (see manifests/bundle/builtins.ts).
const { existsSync } = process.getBuiltinModule('node:fs')
const { enableCompileCache } = process.getBuiltinModule('node:module')
const { join } = process.getBuiltinModule('node:path')

// The cache folder must be writable by the user alone, because its content is executed. Without a home folder there is
// no cache; a home folder that is intentionally missing (HOME=/nonexistent) is not created.
const { HOME: home, LOCALAPPDATA: local, XDG_CACHE_HOME: xdg } = process.env
const cache = xdg || (process.platform === 'win32' ? local : home && existsSync(home) && join(home, '.cache'))
if (cache) enableCompileCache(join(cache, 'gatehouse', 'compile-cache'))

await import('%MAIN%')
