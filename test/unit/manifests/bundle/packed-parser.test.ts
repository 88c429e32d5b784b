/** A bundle contains undici's second parser, for processors without SIMD. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { bundleOptions } from '../../../../manifests/bundle/options.ts'

const root = resolve(import.meta.dirname, '../../../..')

t.test('undici: both parsers read responses in a bundle', async (t) => {
  const outdir = t.testdir({ 'package.json': '{"type":"module"}' })
  const contents = `
    import { makeDispatcher } from './runtime/net/index.ts'
    const { statusCode, body } = await makeDispatcher().request({ origin: process.argv[2], path: '/', method: 'GET' })
    console.log(statusCode, await body.text(), process.moduleLoadList.includes('NativeModule zlib'))
    process.exit()`
  await build({
    ...bundleOptions,
    stdin: { contents, resolveDir: root, sourcefile: 'program.ts', loader: 'ts' },
    outdir,
    splitting: true,
    logLevel: 'silent',
  })
  const server = createServer((_req, res) => void res.end('hello')).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const run = (...variables: readonly string[]) =>
    promisify(execFile)('env', ['-i', ...variables, process.execPath, join(outdir, 'stdin.js'), url])
  t.match((await run('UNDICI_NO_WASM_SIMD=1')).stdout, '200 hello true', 'it is decompressed')
  t.match((await run()).stdout, '200 hello false', 'the other parser needs no decompression')
})
