#!/usr/bin/env node
// Checks the version of Node before anything else is loaded, and keeps compiled code in the user's cache folder, so that
// the next start is faster. Must parse and run on every Node that has ES modules.
import { existsSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const program = '%PROGRAM%'
const floor = Number('%NODE_FLOOR%')
const running = process.versions.node
if (Number(running.split('.')[0]) < floor) {
  // Of this very installation: npm finds the package whether it was installed globally, in a project, or for one run.
  const installed = fileURLToPath(new URL('..', import.meta.url)).slice(0, -1)
  const quoted = /^[\w./:\\-]+$/.test(installed) ? installed : JSON.stringify(installed)
  process.stderr.write(
    `Error: ${program} needs Node ${floor} or newer, and this is Node ${running}. It uses modules that older versions ` +
      `lack, such as node:sqlite.\nInstall Node ${floor} from https://nodejs.org, or let npm bring it for one run:\n` +
      `  npx --yes --package=node@${floor} --package=${quoted} ${program} ...\n`,
  )
  process.exit(1)
}

// A folder that only the user can write to: whoever can write there decides what runs. Without one, nothing is cached;
// a home folder that is missing on purpose (HOME=/nonexistent) is never created.
const { HOME: home, LOCALAPPDATA: local, XDG_CACHE_HOME: xdg } = process.env
const cache = xdg || (process.platform === 'win32' ? local : home && existsSync(home) && join(home, '.cache'))
if (cache) nodeModule.enableCompileCache(join(cache, 'gatehouse', 'compile-cache'))

await import('%MAIN%')
