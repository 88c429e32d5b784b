/**
 * Node's own modules, taken as they are. For an `import` Node reads every property of the module once, and with that loads what
 * it keeps for later: `node:http` brings its whole copy of undici along, `node:fs` promises and readline. That is a fifth of a
 * server's start and 14 MB. Here only the names that are used are read.
 */
import { builtinModules } from 'node:module'
import type { Plugin } from 'esbuild'

const imported = 'builtin-import'
const required = 'builtin-require'
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
  const names = Object.getOwnPropertyNames(process.getBuiltinModule(path)).filter(
    (name) => identifier.test(name) && name !== 'default',
  )
  return [
    `const all = /* @__PURE__ */ ${taken(path)}`,
    'export default all',
    ...names.map(
      (name, at) => `const e${at} = /* @__PURE__ */ (() => all.${name})()\nexport { e${at} as ${name} }`,
    ),
  ].join('\n')
}
