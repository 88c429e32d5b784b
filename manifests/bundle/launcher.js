#!/usr/bin/env node
// Checks the Node version before anything else is loaded, and caches compiled code in the user's cache folder, which
// makes the next start faster. This script must parse and run on every Node version with ES modules.
const program = '%PROGRAM%'
const floor = Number('%NODE_FLOOR%')
const running = process.versions.node
if (Number(running.split('.')[0]) < floor) {
  const { fileURLToPath } = await import('node:url')
  // Path of this installation. npm finds the package in a global installation, in a project, and in a temporary
  // installation.
  const installed = fileURLToPath(new URL('..', import.meta.url)).slice(0, -1)
  const quoted = /^[\w./:\\-]+$/.test(installed) ? installed : JSON.stringify(installed)
  process.stderr.write(
    `Error: ${program} requires Node ${floor} or newer, but this is Node ${running}. Install Node ${floor} from ` +
      `https://nodejs.org, or download the executable that needs no Node from %RELEASES%. To run ${program} once:\n` +
      `  npx --yes --package=node@${floor} --package=${quoted} ${program} ...\n`,
  )
  process.exit(1)
}

// Reads the module without an import, so Node loads no unused properties (see manifests/bundle/builtins.ts).
const { existsSync } = process.getBuiltinModule('node:fs')
const { enableCompileCache } = process.getBuiltinModule('node:module')
const { join } = process.getBuiltinModule('node:path')

// Only the user may write to the cache folder, because its content is executed. Without a home folder, there is no
// cache. The launcher never creates a missing home folder, such as HOME=/nonexistent.
const { HOME: home, LOCALAPPDATA: local, XDG_CACHE_HOME: xdg } = process.env
const cache = xdg || (process.platform === 'win32' ? local : home && existsSync(home) && join(home, '.cache'))
if (cache) enableCompileCache(join(cache, 'gatehouse', 'compile-cache'))

await import('%MAIN%')
