/**
 * Node's own modules, taken as they are. For an `import` Node reads every property of the module once, and with that loads what
 * it keeps for later: `node:http` brings its whole copy of undici along, `node:fs` promises and readline. That is a fifth of a
 * server's start and 14 MB. Here only the names that are used are read, and of modules that many servers never use not even they
 * until a function is called.
 */
import { builtinModules } from 'node:module'
import type { Plugin } from 'esbuild'

const imported = 'builtin-import'
const required = 'builtin-require'
/** Loaded when something of them is first used: a server without TLS is ready 3 ms of CPU earlier. */
const later: ReadonlySet<string> = new Set(['https', 'readline', 'tls'])
const identifier = /^[A-Za-z_$][\w$]*$/

export const builtins: Plugin = {
  name: 'builtins',
  setup(build) {
    const names = builtinModules.map((name) => name.replace(/^node:/, ''))
    build.onResolve({ filter: new RegExp(`^(?:node:)?(?:${names.join('|')})$`) }, ({ path, kind }) => {
      if (kind === 'import-statement') return { path, namespace: imported, sideEffects: false }
      return kind === 'require-call' ? { path, namespace: required } : { path, external: true }
    })
    build.onLoad({ filter: /./, namespace: imported }, ({ path }) => ({ contents: exportsOf(path) }))
    build.onLoad({ filter: /./, namespace: required }, ({ path }) => ({
      contents: `module.exports = ${taken(path)}`,
    }))
  },
}

function taken(path: string): string {
  return `process.getBuiltinModule(${JSON.stringify(path)})`
}

/** Pure, so that what nobody imports is left out. */
function exportsOf(path: string): string {
  const all = process.getBuiltinModule(path) as Readonly<Record<string, unknown>>
  const names = Object.getOwnPropertyNames(all).filter((name) => identifier.test(name) && name !== 'default')
  const isLater = later.has(path.replace(/^node:/, ''))
  const whole = isLater ? `new Proxy({}, { get: (_none, name) => ${taken(path)}[name] })` : taken(path)
  const lines = names.map((name, at) => {
    const value =
      isLater && /^[a-z]/.test(name) && typeof all[name] === 'function'
        ? `(...given) => ${taken(path)}.${name}(...given)`
        : `/* @__PURE__ */ (() => ${isLater ? taken(path) : 'all'}.${name})()`
    return `const e${at} = ${value}\nexport { e${at} as ${name} }`
  })
  return [`const all = /* @__PURE__ */ ${whole}`, 'export default all', ...lines].join('\n')
}
