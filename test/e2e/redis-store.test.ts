/**
 * The Redis store as built. The bundler removes most of the client's commands (`manifests/bundle/left-out.ts`), so the
 * store tests from source do not cover the built program.
 */
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { redisWords } from '../../manifests/bundle/left-out.ts'
import { bundleOptions } from '../../manifests/bundle/options.ts'
import { missingRedisTls } from '../helpers/redis.ts'

// The fourth file tests timing, not the client.
const files = ['redis-standalone', 'redis-cluster', 'redis-sentinel']

t.setTimeout(180_000)

t.test('redis store: its tests pass with the built client', { skip: missingRedisTls }, async (t) => {
  const outdir = t.testdir({ 'package.json': '{"type":"module"}' })
  const { metafile } = await build({
    ...bundleOptions,
    entryPoints: files.map((name) => resolve(import.meta.dirname, `../unit/store/${name}.test.ts`)),
    external: [...bundleOptions.external, 'tap'],
    outdir,
    metafile: true,
    logLevel: 'warning',
  })
  const commands = Object.keys(metafile.inputs).filter((path) =>
    /@redis\/client\/.*\/commands\/GET\.js$/.test(path),
  )
  t.strictSame(commands, [], 'unused commands are removed')
  for (const name of files) {
    // Rejects with the output when the file ends with a failure.
    const { stdout } = await promisify(execFile)(process.execPath, [join(outdir, `${name}.test.js`)], {
      env: { ...process.env, TAP_TIMEOUT: '170' },
      maxBuffer: 2 ** 24,
    })
    t.match(stdout, /^1\.\.[1-9]\d*$/m, `${name} has run to its end`)
    t.notMatch(stdout, /^\s*not ok/m, name)
  }
})

/** Other words in capitals: options of commands, and error codes. */
const others: ReadonlySet<string> = new Set([
  'COUNT',
  'KEEPTTL',
  'MATCH',
  'MAXLEN',
  'NOSCRIPT',
  'NX',
  'OOM',
  'PTTL',
  'PX',
  'XX',
])

t.test('redis store: the bundler includes every command that the store sends', (t) => {
  const root = resolve(import.meta.dirname, '../..')
  const words = globSync('runtime/store/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/'([A-Z]{2,})'/g)].map(([, word = '']) => word),
  )
  t.strictSame([...new Set(words)].filter((word) => !others.has(word)).sort(), [...redisWords].sort())
  t.end()
})
