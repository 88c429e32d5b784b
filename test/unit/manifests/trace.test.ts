/** Stack traces of a built program: lines map to sources, and error classes keep their names. */
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import t from 'tap'
import { bundleOptions } from '../../../manifests/bundle/options.ts'

const root = resolve(import.meta.dirname, '../../..')
const skip = !existsSync(join(root, 'dist/maps')) && 'not built: run `make build`'

t.test('stack traces: a location in a built program maps to its source', { skip }, (t) => {
  const marker = 'the Kubernetes configuration has no cluster for its current context'
  const file = globSync('dist/runtime/*.js', { cwd: root }).find((path) =>
    readFileSync(join(root, path), 'utf8').includes(marker),
  )
  const before =
    readFileSync(join(root, file ?? ''), 'utf8')
      .split(marker)[0]
      ?.split('\n') ?? []
  const place = `${pathToFileURL(join(root, file ?? '')).href}:${before.length}:${before.at(-1)?.length}`
  const stdout = execFileSync(process.execPath, ['manifests/bundle/trace.ts'], {
    cwd: root,
    input: `Error: x\n    at e (${place})\n    at other (node:fs:1:2)\n`,
    encoding: 'utf8',
  })
  t.match(
    stdout,
    /^Error: x\n {4}at e \(hooks\/base\/api-server\.ts:\d+:\d+\b[^)]*\)\n {4}at other \(node:fs:1:2\)\n$/,
  )
  t.end()
})

t.test('stack traces: error classes keep their names in a build', async (t) => {
  const contents = `
    import { TokenRefused } from './runtime/oauth/index.ts'
    import { invalidConfig, ModuleError } from './schemas/index.ts'
    console.log([TokenRefused.name, invalidConfig('x').name, new ModuleError().name, new TokenRefused('signature', 'x').name].join())`
  const outfile = join(t.testdir({ 'package.json': '{"type":"module"}' }), 'program.js')
  await build({
    ...bundleOptions,
    stdin: { contents, resolveDir: root, loader: 'ts' },
    outfile,
    logLevel: 'silent',
  })
  const stdout = execFileSync(process.execPath, [outfile], { encoding: 'utf8' })
  t.equal(stdout, 'TokenRefused,GatehouseError,ModuleError,TokenRefused\n')
})
