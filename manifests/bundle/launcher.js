#!/usr/bin/env node
// Checks the version of Node before anything else is loaded, and takes compiled code from the image, or keeps it in the
// user's cache folder, so that the next start is faster. Must parse and run on every Node that has ES modules.
const program = '%PROGRAM%'
const floor = Number('%NODE_FLOOR%')
const running = process.versions.node
if (Number(running.split('.')[0]) < floor) {
  const { fileURLToPath } = await import('node:url')
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

// Taken as they are: manifests/bundle/builtins.ts says why nothing is imported.
const { existsSync, mkdtempSync, readdirSync, rmSync, rmdirSync, symlinkSync } = process.getBuiltinModule('node:fs')
const { constants, enableCompileCache } = process.getBuiltinModule('node:module')
const { availableParallelism, tmpdir } = process.getBuiltinModule('node:os')
const { join } = process.getBuiltinModule('node:path')
const { setFlagsFromString } = process.getBuiltinModule('node:v8')

// V8 shares each collection of young objects out among threads, which wait for one another. Where others want the same one or
// two cores, a tool call takes 20 % less CPU without that (270 to 215 µs); on idle cores it makes no difference.
if (availableParallelism() <= 2) setFlagsFromString('--no-parallel-scavenge')

// The HTTP parser of undici is WebAssembly. Compiled a second time, by the optimizing compiler, it takes 1 µs less for each
// response, and the compilation takes 100 ms and 14 MB that never come back. schemas/cedar/engine.ts allows it again.
const flags = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering']
// Servers start without the optimizing compilers, which schemas/process/ lets loose when there is work.
const [, , word = ''] = process.argv
const serves = program === 'gatehouse-hooks' ? word === '' || word.startsWith('-') : /^(?:proxy|relay|vmcp)$/.test(word)
if (serves) flags.push('--no-opt', '--no-maglev')
function setFlags() {
  for (const flag of flags) setFlagsFromString(flag)
}
setFlags()
// Compiled code is stored when the process ends, for the flags of that moment; it is to be good for the next start.
process.on('exit', setFlags)

// Compiled code that came with an image (manifests/bundle/compile.ts), for this version of Node and this kind of processor.
// Node looks for it in a folder whose name differs with the user and the features of the processor, although what was compiled
// does not: a link leads from there to where it is, which the user of an image cannot write to.
function takeCompiled(compiled) {
  for (const place of [tmpdir(), '/dev/shm']) {
    try {
      const own = mkdtempSync(join(place, 'gatehouse-'))
      process.on('exit', () => rmSync(own, { recursive: true, force: true }))
      const { status } = enableCompileCache(own)
      // Otherwise caching is forbidden, or has a folder already, by a variable of Node.
      if (status !== constants.compileCacheStatus.ENABLED) return
      for (const name of readdirSync(own)) {
        rmdirSync(join(own, name))
        symlinkSync(compiled, join(own, name))
      }
      return
    } catch {
      // It cannot be written to.
    }
  }
}

// A folder that only the user can write to: whoever can write there decides what runs. Without one, nothing is cached;
// a home folder that is missing on purpose (HOME=/nonexistent) is never created.
function keepCompiled() {
  const { HOME: home, LOCALAPPDATA: local, XDG_CACHE_HOME: xdg } = process.env
  const cache = xdg || (process.platform === 'win32' ? local : home && existsSync(home) && join(home, '.cache'))
  if (cache) enableCompileCache(join(cache, 'gatehouse', 'compile-cache'))
}

const compiled = join(import.meta.dirname, 'compiled', `${process.version}-${process.arch}`)
if (serves && existsSync(compiled)) takeCompiled(compiled)
else keepCompiled()

await import('%MAIN%')
