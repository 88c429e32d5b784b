/**
 * Removes parts of large packages that are unused but that the bundler keeps: 3 MB in each of the two programs. If a
 * program needs a removed part, the build ("No matching export") or the bundle tests fail.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { type Plugin, transform } from 'esbuild'

const undiciParts = resolve(import.meta.dirname, '../../runtime/net/outgoing/undici.ts')

/** Replacement modules, keyed by package. */
const standIns: Readonly<Record<string, string>> = {
  // Express imports its body parsers with their character set tables; hooks/server/request-body.ts reads bodies
  // instead.
  'body-parser': 'module.exports = {}',
  // The Kubernetes client imports all of undici for agents and its own requests. hooks/base/api-server.ts sends
  // requests with node:https.
  undici: `export { Agent } from ${JSON.stringify(undiciParts)}
    export const fetch = undefined
    export const ProxyAgent = undefined`,
  // Replaces a second YAML library, of which the Kubernetes client uses only one function, to read kubeconfig files.
  'js-yaml': `export { parse as load } from 'yaml'`,
}

/** No dispatcher uses HTTP/2 (`runtime/net/outgoing/dispatcher.ts`), and Node's HTTP/2 module takes 5 MB. */
const noHttp2 = `module.exports = () => { throw new Error('HTTP/2 is not in this program') }`

/**
 * Only form bodies need these parts of `fetch` (42 KB). A request with a form fails in the same way as a request with
 * any other unsupported body.
 */
const noForms = `exports.webidl = { is: { FormData: () => false } }`

/** pino's transports write from another thread; `runtime/observe/log.ts` writes from the main thread. */
const noTransport = `module.exports = () => { throw new Error('transports of pino are not in this program') }`

/**
 * Keeps only the commands, out of four hundred (0.25 MB), that the Redis client itself calls by name.
 * `runtime/store/redis-clients.ts` sends raw commands, so the client's iterators and constant tables are unused.
 */
const redisCommands = `
  exports.__esModule = true
  exports.default = exports.NON_STICKY_COMMANDS = {
    AUTH: require('./AUTH').default,
    CLIENT_SETNAME: require('./CLIENT_SETNAME').default,
    READONLY: require('./READONLY').default,
    clusterSlots: require('./CLUSTER_SLOTS').default,
  }`

/**
 * The commands that `runtime/store` sends. The client's full table, which maps commands to cluster nodes, takes 70 KB.
 */
export const redisWords: readonly string[] =
  'DEL EVAL EVALSHA EXPIRE GET GETDEL INFO PEXPIRE PING SCAN SET TIME XADD XRANGE'.split(' ')

function redisMetadata(path: string): string {
  const { COMMAND_METADATA: all } = createRequire(path)(path)
  const std = Object.fromEntries(redisWords.map((word) => [word.toLowerCase(), all.std[word.toLowerCase()]]))
  return `exports.COMMAND_METADATA = ${JSON.stringify({ std })}`
}

const namespace = 'stand-in'

/** Compresses undici's parser for the few processors without SIMD to a quarter of its 72 KB of text. */
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
    // Keeps only the WebSocket client, which `runtime/kube/attachment.ts` uses.
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
    // Each of the client's thousand types is a class with a static block, which the bundler keeps even when the class
    // is unused.
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
    // Generated validators do not need readable stack traces. The copies in the repository keep their names for
    // readable diffs.
    build.onLoad({ filter: /\/schemas\/generated\/[a-z-]+\.js$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { minify: true, legalComments: 'none' })
      return { contents: code }
    })
  },
}
