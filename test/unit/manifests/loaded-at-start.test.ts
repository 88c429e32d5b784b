/** Modules that a built program loads at the start: no module for optional features, and no unneeded part of Node. */
import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build, type Metafile } from 'esbuild'
import t from 'tap'
import { bundleOptions, bundleParts } from '../../../manifests/bundle/options.ts'

const root = resolve(import.meta.dirname, '../../..')

/** Loaded on first use. */
const later =
  /^hooks\/|(?:^|\/)node_modules\/(?:@bufbuild|@kubernetes|@opentelemetry\/sdk|@redis|@smithy|ajv|express|ws)\/|\/undici\/lib\/(?:milo|web\/fetch\/index|dispatcher\/client-h2)/

t.test('loaded at start: a server loads no code for unused features', async (t) => {
  const { metafile } = await build({
    ...bundleOptions,
    absWorkingDir: root,
    entryPoints: { main: 'runtime/cli/main.ts', ...bundleParts },
    outdir: 'out',
    chunkNames: '[name]-[hash]',
    splitting: true,
    metafile: true,
    write: false,
  })
  for (const command of ['vmcp/vmcp.ts', 'proxy/proxy.ts']) {
    const inside = ['runtime/cli/main.ts', `runtime/cli/${command}`].flatMap((entry) =>
      loadedBy(metafile, entry),
    )
    t.ok(inside.includes(`runtime/cli/${command}`))
    t.same(
      inside.filter((path) => later.test(path)),
      [],
      command,
    )
  }
})

/** Returns the sources of all static imports of an entry. */
function loadedBy({ outputs }: Metafile, entry: string): string[] {
  const seen = new Set<string>()
  const visit = (path: string | undefined): void => {
    const output = path === undefined ? undefined : outputs[path]
    if (path === undefined || !output || seen.has(path)) return
    seen.add(path)
    for (const one of output.imports) if (one.kind === 'import-statement') visit(one.path)
  }
  visit(Object.keys(outputs).find((path) => outputs[path]?.entryPoint === entry))
  return [...seen].flatMap((path) =>
    Object.entries(outputs[path]?.inputs ?? {})
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([source]) => source),
  )
}

t.test(
  'loaded at start: importing http or fs loads no second HTTP client, readline, fs/promises or TLS',
  async (t) => {
    const outfile = join(t.testdir({ 'package.json': '{"type":"module"}' }), 'program.js')
    const contents = `
    import { createServer } from 'node:http'
    import { createServer as createTlsServer } from 'node:https'
    import { getCACertificates } from 'node:tls'
    import { readFileSync } from 'node:fs'
    createServer().listen(0, '127.0.0.1', function () { this.close() })
    console.log(JSON.stringify([typeof readFileSync, ...process.moduleLoadList]))
    const used = getCACertificates().length > 0 && createTlsServer({}).constructor.name
    console.log(used, process.moduleLoadList.includes('NativeModule https'))`
    await build({ ...bundleOptions, stdin: { contents, resolveDir: root }, outfile, logLevel: 'silent' })
    // Removes the modules that the test runner preloads in its children.
    const { stdout } = await promisify(execFile)('env', ['-i', process.execPath, outfile])
    const [line = '', used] = stdout.split('\n')
    const [kind, ...loaded]: string[] = JSON.parse(line)
    t.equal(used, 'Server true', 'the called module is loaded on use')
    t.equal(kind, 'function')
    t.ok(
      loaded.some((name) => name.endsWith(' http')),
      'Node lists its loaded modules',
    )
    t.same(
      loaded.filter((name) => /deps\/undici|readline|fs\/promises|Module (?:tls|https)$/.test(name)),
      [],
    )
  },
)
