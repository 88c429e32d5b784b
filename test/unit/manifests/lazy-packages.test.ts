/**
 * Packages that are loaded on first use work in a built program. A bundle with several files exports a CommonJS package
 * only as `default`, so code that runs from its sources may fail in a built program.
 */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import t from 'tap'
import { bundleOptions } from '../../../manifests/bundle/options.ts'

const root = resolve(import.meta.dirname, '../../..')
const from = (path: string) => JSON.stringify(join(root, path))

interface Use {
  readonly text: string
  readonly prints: RegExp
}

/** Package -> a program that uses it in the same way as Gatehouse, and its output. */
const uses: Readonly<Record<string, Use>> = {
  '@peculiar/x509': {
    text: `
      import { issueCertificate } from ${from('hooks/certificates/issue.ts')}
      const { certificate } = await issueCertificate({ names: ['hooks.example'], now: new Date(), lifetimeMs: 3600000 })
      console.log(certificate)`,
    prints: /^-----BEGIN CERTIFICATE-----/,
  },
  '@smithy/signature-v4': {
    text: `
      import { signRequest } from ${from('runtime/outgoing/aws/sigv4.ts')}
      const url = new URL('https://aws.example/mcp')
      const request = { method: 'POST', url, headers: {}, body: Buffer.from('{}') }
      const rules = { region: 'r', service: 's', accessKeyId: 'a', secretAccessKey: 'b', sessionToken: '', date: new Date() }
      await signRequest(request, rules)
      console.log(JSON.stringify(request.headers))`,
    prints: /AWS4-HMAC-SHA256 Credential=a\//,
  },
}

for (const [name, { text, prints }] of Object.entries(uses)) {
  t.test(`lazy packages: ${name} works in a bundle`, async (t) => {
    const outdir = t.testdir({ 'package.json': '{"type":"module"}' })
    await build({
      ...bundleOptions,
      stdin: { contents: text, resolveDir: root, sourcefile: 'program.ts', loader: 'ts' },
      outdir,
      splitting: true,
      logLevel: 'silent',
    })
    const { stdout, stderr } = spawnSync(process.execPath, [join(outdir, 'stdin.js')], { encoding: 'utf8' })
    t.match(stdout, prints, stderr.slice(-300))
  })
}

t.test('lazy packages: every package that is loaded on first use is listed', (t) => {
  const files = globSync('{hooks,runtime,schemas}/**/*.ts', { cwd: root })
  const loaded = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/\bimport\('(?![.#]|node:)([^']+)'\)/g)].map(
      ([, name = '']) => name,
    ),
  )
  t.strictSame([...new Set(loaded)].sort(), Object.keys(uses).sort())
  t.end()
})
