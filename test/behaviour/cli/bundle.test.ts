/**
 * `gatehouse bundle` writes reproducible MCPB files that a client can run. `gatehouse unbundle` rejects hostile archives,
 * and then writes nothing.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ZipFile } from 'yazl'
import { writeArchive } from '../../../runtime/tools/bundle/archive.ts'
import { bundleOf } from '../../../runtime/tools/bundle/manifest.ts'
import { unpackBundle } from '../../../runtime/tools/bundle/unpack.ts'
import { program, runGatehouse } from '../../helpers/gatehouse.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'

t.setTimeout(240_000)

const npm = { name: 'gatehouse', version: '1.2.3' }
const defaults = { bundleVersion: '1.0.0', remoteAuth: false, installed: false }
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-bundle-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Validates with the schema that the publisher of the format ships in its package. */
function publishedSchema() {
  const file = createRequire(import.meta.url).resolve('@anthropic-ai/mcpb')
  const schema = JSON.parse(readFileSync(join(dirname(file), 'mcpb-manifest-v0.4.schema.json'), 'utf8'))
  const ajv = new Ajv({ strict: false })
  formats.default(ajv)
  return ajv.compile(schema)
}

t.test('bundle: the manifest is valid for every option', async (t) => {
  const validate = publishedSchema()
  for (const more of [
    {},
    { remoteAuth: true, title: 'Notes', author: 'Acme', name: 'notes' },
    { installed: true, bundleVersion: '2.0.0-beta.1' },
  ]) {
    const { files } = bundleOf({ ...defaults, url: 'https://mcp.example.com/mcp', ...more }, npm)
    t.ok(validate(JSON.parse(files[0]?.text ?? '')), JSON.stringify(validate.errors))
  }
  const { files } = bundleOf({ ...defaults, url: 'https://mcp.example.com/mcp', remoteAuth: true }, npm)
  t.match(JSON.parse(files[0]?.text ?? ''), {
    name: 'mcp-example-com',
    server: {
      entry_point: 'server/index.mjs',
      mcp_config: {
        command: 'npx',
        args: [
          ...['--yes', '--package=gatehouse@1.2.3', '--', 'gatehouse'],
          ...['proxy', 'stdio', 'https://mcp.example.com/mcp', '--remote-auth'],
        ],
      },
    },
  })
  t.notOk(validate({ ...JSON.parse(files[0]?.text ?? ''), more: 1 }), 'the schema rejects unknown members')
})

t.test('bundle: invalid options and URLs with secrets are rejected', async (t) => {
  const url = 'https://mcp.example.com/mcp'
  for (const [options, message] of [
    [{ url: 'mcp.example.com' }, /URL: expected an http or https URL/],
    [{ url: 'file:///etc/passwd' }, /URL: expected an http or https URL/],
    [{ url: 'https://u:p@mcp.example.com/' }, /user name or password; a bundle must not contain secrets/],
    [{ url: `${url}?api_key=a8f7d6e5c4b3a2f1e0d9c8b7` }, /secret in the query/],
    [{ url: `${url}#x` }, /fragment/],
    [{ url: `${url}?a=\${HOME}` }, /must not contain \$\{/],
    [{ url, name: '../evil' }, /--name: expected/],
    [{ url, bundleVersion: 'latest' }, /--bundle-version: expected/],
  ] as const)
    t.throws(() => bundleOf({ ...defaults, ...options }, npm), { code: 'INVALID_CONFIG', message })
})

t.test('bundle: the same bytes in every time zone; a file is overwritten only with --force', async (t) => {
  const path = folder(t)
  const digests: string[] = []
  for (const [name, TZ] of [
    ['a.mcpb', 'America/New_York'],
    ['b.mcpb', 'Asia/Kolkata'],
  ] as const) {
    const file = join(path, name)
    const made = await runGatehouse(['bundle', 'https://mcp.example.com/mcp', '-o', file], '', {
      ...process.env,
      TZ,
    })
    t.match(made, { code: 0, stderr: '' })
    digests.push(sha256(readFileSync(file)))
    t.match(made.stdout, `${file}: sha256 ${digests.at(-1)}`)
  }
  t.equal(digests[0], digests[1])
  const file = join(path, 'a.mcpb')
  const again = ['bundle', 'https://other.example.com/mcp', '-o', file]
  t.match(await runGatehouse(again), { code: 2, stderr: /already exists; add --force/ })
  t.equal(sha256(readFileSync(file)), digests[0])
  t.match(await runGatehouse([...again, '--force']), { code: 0 })
  t.not(sha256(readFileSync(file)), digests[0])
})

t.test('bundle, unbundle: an SDK client starts both commands of the bundle and calls a tool', async (t) => {
  const path = folder(t)
  const fixture = await startFixture({ era: 'both' })
  t.teardown(() => fixture.close())
  const file = join(path, 'fixture.mcpb')
  t.match(await runGatehouse(['bundle', fixture.url, '-o', file, '--name', 'fixture']), { code: 0 })
  const target = join(path, 'unpacked')
  const digest = sha256(readFileSync(file))
  const unpacked = await runGatehouse(['unbundle', file, '--sha256', digest.toUpperCase(), '-o', target])
  t.match(unpacked, { code: 0, stdout: /unpacked: fixture 1\.0\.0, 2 files/ })
  t.strictSame(readdirSync(path).sort(), ['fixture.mcpb', 'unpacked'])
  // Replaces npx: runs the program under test instead of downloading the package.
  const npx = join(path, 'npx')
  writeFileSync(npx, `#!/bin/sh\nshift 4\nexec '${process.execPath}' '${program}' "$@"\n`)
  chmodSync(npx, 0o755)
  const env = { PATH: `${path}:${process.env['PATH'] ?? ''}`, HOME: path }
  const { mcp_config: config, entry_point: entry } = JSON.parse(
    readFileSync(join(target, 'manifest.json'), 'utf8'),
  ).server
  for (const [command, args] of [
    [config.command, config.args],
    [process.execPath, [join(target, entry)]],
  ] as const) {
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StdioClientTransport({ command, args, env }))
    t.match(await client.callTool({ name: 'echo', arguments: { text: 'hi' } }), { content: [{ text: /hi/ }] })
    await client.close()
  }
})

type Entry = readonly [name: string, text: string | Buffer, options?: { mode?: number; compress?: boolean }]

async function zipOf(entries: readonly Entry[], change: (bytes: Buffer) => Buffer = (bytes) => bytes) {
  const zip = new ZipFile()
  for (const [name, text, options] of entries)
    zip.addBuffer(Buffer.from(text), name, { compress: false, ...options })
  zip.end()
  return change(await buffer(zip.outputStream))
}

const manifest: Entry = ['manifest.json', '{"name":"x","version":"1","server":{}}']
/** Replaces a name with one of the same length that the library refuses to write. */
const renamed = (from: string, to: string) => (bytes: Buffer) =>
  Buffer.from(bytes.toString('latin1').replaceAll(from, to), 'latin1')
/** Changes a number in the last header of the directory. */
const patched = (offset: number, value: number) => (bytes: Buffer) => {
  const at = bytes.lastIndexOf(Buffer.from([0x50, 0x4b, 1, 2]))
  bytes.writeUInt16LE(value, at + offset)
  return bytes
}

const hostile: Readonly<Record<string, readonly [() => Promise<Buffer>, RegExp]>> = {
  'a parent folder': [
    () => zipOf([manifest, ['aa/evil', 'x']], renamed('aa/evil', '../evil')),
    /invalid relative path|path inside/,
  ],
  'an absolute path': [
    () => zipOf([manifest, ['xevil', 'x']], renamed('xevil', '/evil')),
    /absolute path|path inside/,
  ],
  'a drive': [
    () => zipOf([manifest, ['xx/evil', 'x']], renamed('xx/evil', 'C:/evil')),
    /absolute path|path inside|not safe/,
  ],
  'a backslash': [
    () => zipOf([manifest, ['a/evil', 'x']], renamed('a/evil', 'a\\evil')),
    /invalid characters|path inside|not safe/,
  ],
  'a reserved name': [() => zipOf([manifest, ['server/nul.txt', 'x']]), /name is not safe/],
  'a control character': [() => zipOf([manifest, ['a\u001b[2J', 'x']]), /name is not safe/],
  'a character that reverses the text': [
    () => zipOf([manifest, ['a\u202etxt.exe', 'x']]),
    /name is not safe/,
  ],
  'too many folders': [
    () =>
      zipOf([manifest, ...Array.from({ length: 100 }, (_, i): Entry => [`f${i}/${'a/'.repeat(240)}x`, ''])]),
    /more than 20000 folders/,
  ],
  // The compressed bytes are damaged, so the size must be checked before the file is read.
  'a large manifest': [
    () => zipOf([['manifest.json', Buffer.alloc(2_000_000, 'ab\r\nc'), { compress: false }]], patched(10, 8)),
    /manifest\.json is larger than 1 MiB/,
  ],
  'a symbolic link': [() => zipOf([manifest, ['link', '/etc/passwd', { mode: 0o120777 }]]), /no links/],
  'a device': [() => zipOf([manifest, ['device', '', { mode: 0o020666 }]]), /no links/],
  'two names that differ in case': [
    () => zipOf([manifest, ['Manifest.json', '{}']]),
    /the name occurs twice/,
  ],
  'a high ratio': [
    () => zipOf([manifest, ['zeros', Buffer.alloc(4_000_000), { compress: true }]]),
    /more than 200 times/,
  ],
  'a file that is larger than declared': [
    () => zipOf([manifest, ['zeros', Buffer.alloc(60_000), { compress: true }]], patched(24, 10)),
    /too many bytes/,
  ],
  'an encrypted file': [
    () => zipOf([manifest, ['a', 'x'.repeat(100), { compress: true }]], patched(8, 1)),
    /encrypted/,
  ],
  'an unknown compression method': [
    () => zipOf([manifest, ['a', 'x']], patched(10, 14)),
    /compression method is not supported/,
  ],
  'a truncated archive': [() => zipOf([manifest], (bytes) => bytes.subarray(0, 60)), /cannot be read/],
  'too many entries': [
    () => zipOf([manifest, ...Array.from({ length: 20_001 }, (_, i): Entry => [`f${i}`, ''])]),
    /more than 20000 entries/,
  ],
  'a file below a file': [() => zipOf([manifest, ['a', 'x'], ['a/b', 'x']]), /cannot be written/],
  'no manifest': [() => zipOf([['a', 'x']]), /no manifest\.json/],
  'an invalid manifest': [() => zipOf([['manifest.json', '[]']]), /is not the manifest of an MCPB file/],
  'a file that is not an archive': [async () => Buffer.from('plain text'), /cannot be read/],
}

for (const [what, [make, message]] of Object.entries(hostile)) {
  t.test(`unbundle: ${what} is rejected, and nothing is written`, async (t) => {
    const path = folder(t)
    const archive = await make()
    writeFileSync(join(path, 'x.mcpb'), archive)
    await t.rejects(unpackBundle(join(path, 'x.mcpb'), sha256(archive), join(path, 'out')), {
      code: 'INVALID_CONFIG',
      message,
    })
    t.strictSame(readdirSync(path), ['x.mcpb'])
  })
}

t.test('unbundle: another digest, an existing folder and invalid usage', async (t) => {
  const path = folder(t)
  const file = join(path, 'x.mcpb')
  const archive = await writeArchive([
    { path: 'manifest.json', text: manifest[1] as string },
    { path: 'server/index.mjs', text: '' },
  ])
  writeFileSync(file, archive)
  const out = join(path, 'out')
  await t.rejects(
    unpackBundle(file, '0'.repeat(64), out),
    /the SHA-256 digest is [0-9a-f]{64}, but --sha256 is 0{64}/,
  )
  await t.rejects(unpackBundle(file, sha256(archive), path), /already exists/)
  await t.rejects(unpackBundle(join(path, 'none'), sha256(archive), out), /cannot be read/)
  await t.rejects(unpackBundle(path, sha256(archive), out), /is not a file/)
  t.notOk(existsSync(out))
  t.match(await unpackBundle(file, sha256(archive), out), { files: 2 })
  t.equal(statSync(join(out, 'server/index.mjs')).mode & 0o777, 0o644)
  t.match(await runGatehouse(['unbundle', file, '--sha256', 'abc', '-o', out]), {
    code: 2,
    stderr: /64 hex digits/,
  })
})
