/**
 * The Redis store as it is built: the bundler leaves most of the client's commands out (`manifests/bundle/left-out.ts`), so that
 * the tests of the store from its sources say nothing of the program.
 */
import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { bundleOptions } from '../../../manifests/bundle/options.ts'
import { missingRedisTls } from '../../helpers/redis.ts'

// The fourth file is about time, not about the client.
const files = ['redis-standalone', 'redis-cluster', 'redis-sentinel']

t.setTimeout(180_000)

t.test('redis store: its tests pass with the client as it is built', { skip: missingRedisTls }, async (t) => {
  const outdir = t.testdir({ 'package.json': '{"type":"module"}' })
  const { metafile } = await build({
    ...bundleOptions,
    entryPoints: files.map((name) => resolve(import.meta.dirname, `${name}.test.ts`)),
    external: [...bundleOptions.external, 'tap'],
    outdir,
    metafile: true,
    logLevel: 'warning',
  })
  const commands = Object.keys(metafile.inputs).filter((path) =>
    /@redis\/client\/.*\/commands\/GET\.js$/.test(path),
  )
  t.strictSame(commands, [], 'what nobody sends is left out')
  for (const name of files) {
    const { stdout } = await promisify(execFile)(process.execPath, [join(outdir, `${name}.test.js`)], {
      env: { ...process.env, TAP_TIMEOUT: '170' },
      maxBuffer: 2 ** 24,
    })
    t.match(stdout, /^# \{ total: \d+, pass: \d+ \}$/m, name)
  }
})
