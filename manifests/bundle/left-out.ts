/**
 * What large packages bring along that no program of ours reaches and that the bundler cannot tell by itself: 3 MB in each
 * of the two programs. A part that is needed after all fails the build ("No matching export") or the tests of what is built.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { type Plugin, transform } from 'esbuild'

const undiciParts = resolve(import.meta.dirname, '../../runtime/net/outgoing/undici.ts')

/** Package -> what stands in for it. */
const standIns: Readonly<Record<string, string>> = {
  // Express names its body parsers, with their tables of character sets; hooks/server/request-body.ts reads bodies.
  'body-parser': 'module.exports = {}',
  // The Kubernetes client names the whole of undici, for agents and for requests of its own. hooks/base/api-server.ts makes the
  // requests with node:https.
  undici: `export { Agent } from ${JSON.stringify(undiciParts)}
    export const fetch = undefined
    export const ProxyAgent = undefined`,
  // A second library for YAML, of which the Kubernetes client takes one function, to read kubeconfig files.
  'js-yaml': `export { parse as load } from 'yaml'`,
}

/** No dispatcher speaks it (`runtime/net/outgoing/dispatcher.ts`), and Node's module takes 5 MB. */
const noHttp2 = `module.exports = () => { throw new Error('HTTP/2 is not in this program') }`

/** Forms are the one kind of body that takes the parts of `fetch` (42 KB); a request with one is refused as any other's is. */
const noForms = `exports.webidl = { is: { FormData: () => false } }`

/** pino's writing from another thread; `runtime/observe/log.ts` writes from this one. */
const noTransport = `module.exports = () => { throw new Error('transports of pino are not in this program') }`

/**
 * What the Redis client itself calls by name, of four hundred commands (0.25 MB): `runtime/store/redis-clients.ts` sends words.
 * Its iterators and its tables of constants are without use then.
 */
const redisCommands = `
  exports.__esModule = true
  exports.default = exports.NON_STICKY_COMMANDS = {
    AUTH: require('./AUTH').default,
    CLIENT_SETNAME: require('./CLIENT_SETNAME').default,
    READONLY: require('./READONLY').default,
    clusterSlots: require('./CLUSTER_SLOTS').default,
  }`

/** Of each command it has a table (70 KB) that says where a cluster carries it out; these are the ones that `runtime/store` sends. */
export const redisWords: readonly string[] =
  'DEL EVAL EVALSHA EXPIRE GET GETDEL INFO PEXPIRE PING SCAN SET TIME XADD XRANGE'.split(' ')

function redisMetadata(path: string): string {
  const { COMMAND_METADATA: all } = createRequire(path)(path)
  const std = Object.fromEntries(redisWords.map((word) => [word.toLowerCase(), all.std[word.toLowerCase()]]))
  return `exports.COMMAND_METADATA = ${JSON.stringify({ std })}`
}

const namespace = 'stand-in'

/** undici's parser for processors without SIMD, of which hardly any is left: a quarter of its 72 KB of text. */
function packedParser(path: string): string {
  const wasm = createRequire(path)(path) as Buffer
  const packed = brotliCompressSync(wasm).toString('base64')
  return `module.exports = require('node:zlib').brotliDecompressSync(Buffer.from('${packed}', 'base64'))`
}

export const leftOut: Plugin = {
  name: 'left-out',
  setup(build) {
    build.onResolve({ filter: new RegExp(`^(?:${Object.keys(standIns).join('|')})$`) }, ({ path }) => ({
      path,
      namespace,
    }))
    build.onResolve({ filter: /^\.\/client-h2\.js$/ }, ({ path }) => ({ path, namespace }))
    build.onLoad({ filter: /\/undici\/lib\/web\/(?:fetch\/(?:body|formdata)|webidl\/index)\.js$/ }, () => ({
      contents: noForms,
    }))
    // Of WebSockets there are clients alone (`runtime/kube/attachment.ts`).
    build.onLoad({ filter: /\/ws\/lib\/(?:stream|websocket-server)\.js$/ }, () => ({ contents: '' }))
    build.onLoad({ filter: /\/pino\/lib\/transport\.js$/ }, () => ({ contents: noTransport }))
    build.onLoad({ filter: /./, namespace }, ({ path }) => ({
      contents: standIns[path] ?? noHttp2,
      resolveDir: import.meta.dirname,
    }))
    build.onLoad({ filter: /\/undici\/lib\/llhttp\/llhttp-wasm\.js$/ }, ({ path }) => ({
      contents: packedParser(path),
      loader: 'js',
    }))
    // Each of the client's thousand types is a class with a static block, which the bundler keeps though nothing names it.
    build.onResolve({ filter: /^\./ }, ({ path, importer }) =>
      importer.includes('/node_modules/@kubernetes/client-node/dist/')
        ? { path: resolve(dirname(importer), path), sideEffects: false }
        : undefined,
    )
    build.onLoad({ filter: /\/@redis\/client\/dist\/lib\/commands\/index\.js$/ }, () => ({
      contents: redisCommands,
      loader: 'js',
    }))
    build.onLoad(
      { filter: /\/@redis\/client\/dist\/lib\/command-metadata\/command-metadata-data\.js$/ },
      ({ path }) => ({
        contents: redisMetadata(path),
        loader: 'js',
      }),
    )
    // Nobody reads a generated validator in a stack trace. In the repository its names stay, so that a change shows as one.
    build.onLoad({ filter: /\/schemas\/generated\/[a-z-]+\.js$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { minify: true, legalComments: 'none' })
      return { contents: code }
    })
  },
}
