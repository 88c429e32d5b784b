/**
 * `gatehouse lock` writes the definitions of backends, checks backends against the lock, and shows changes, including
 * hidden characters.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { approved, changed, other, startChanging } from '../helpers/vmcp/pinning.ts'
import { program } from '../helpers/gatehouse.ts'

t.setTimeout(300_000)

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function gatehouse(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => void (text.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (text.err += chunk.toString()))
  return new Promise((end) => child.on('close', (code) => end({ code, ...text })))
}

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-lock-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const big = '{"name":"big","inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993}}}}'
const hidden = changed(other, { description: 'Lists\u200b files\u{e0041}\nof a folder' })

t.test('lock: written, in sync, changed: exit codes 0, 0 and 1, with the difference by part', async (t) => {
  const path = folder(t)
  const backend = await startChanging(t, [approved, hidden, big])
  const manifest = `apiVersion: gatehouse.dev/v1beta1\nkind: MCPServerEntry\nmetadata: {name: files}\nspec: {groupRef: {name: g}, remoteUrl: '${backend.url}', transport: streamable-http, allowPrivateEndpoint: true}\n`
  writeFileSync(join(path, 'server.yaml'), manifest)
  const written = await gatehouse('lock', '-f', path, '-o', path)
  t.match(written, { code: 0, err: '' })
  t.match(written.out, /files\.lock\.yaml: 3 tools, about \d+ tokens/)
  t.strictSame(readdirSync(path).sort(), ['files.lock.yaml', 'server.yaml'])
  const text = readFileSync(join(path, 'files.lock.yaml'), 'utf8')
  t.notMatch(text, /[\u200b\u{e0041}]/u, 'hidden characters are escaped')
  const spec = parse(text).spec
  t.match(spec, { backendRef: { kind: 'MCPServerEntry', name: 'files' }, scheme: 'gatehouse.pin.v1' })
  t.strictSame(
    spec.tools.map(({ name }: { name: string }) => name),
    ['big', 'list', 'read'],
  )
  t.equal(spec.tools[0].definitionText, big, 'a number that JavaScript cannot represent')
  t.strictSame(spec.tools[1].definition, JSON.parse(hidden), 'the same text')
  t.match(await gatehouse('lock', '-f', path, '--check'), { code: 0, out: /files: in sync, 3 pinned/ })
  t.match(await gatehouse('validate', '-f', join(path, 'files.lock.yaml')), { code: 0 })
  backend.tools = [
    changed(approved, { description: 'Reads a file\u202e and more' }),
    hidden,
    big.replace('993', '992'),
    changed(other, { name: 'new' }),
  ]
  const checked = await gatehouse('lock', '-f', path, '--check')
  t.equal(checked.code, 1)
  t.match(checked.out, /files: 2 changed, 1 new, 0 removed/)
  t.match(
    checked.out,
    /tool read changed: text\n +text\n +-description: Reads a file\n +\+description: Reads a file\\u\{202e\} and more/,
  )
  t.match(checked.out, /tool big changed: input/)
  t.match(checked.out, /tool new new/)
  const json = JSON.parse((await gatehouse('lock', '-f', path, '--check', '--format', 'json')).out)
  t.match(json, {
    inSync: false,
    backends: [{ backend: 'files', locked: true, counts: { changed: 2, new: 1 } }],
  })
  t.match(json.backends[0].drift[0].digest, /^sha256:/)
})

t.test('lock: keeps settings and notes when a lock is written again', async (t) => {
  const path = folder(t)
  const backend = await startChanging(t, [approved, other])
  const flags = ['--url', `files=${backend.url}`]
  t.match(await gatehouse('lock', ...flags, '-o', path), { code: 0 })
  const file = join(path, 'files.lock.yaml')
  const noted = readFileSync(file, 'utf8').replace(
    '    - name: read',
    '    - name: read\n      note: reviewed',
  )
  writeFileSync(file, noted.replace('spec:', 'spec:\n  onChanged: block\n  accept: [icons]'))
  backend.tools = [changed(approved, { title: 'Read' }), other]
  t.match(await gatehouse('lock', ...flags, '-f', path, '-o', path), { code: 0 })
  const { spec } = parse(readFileSync(file, 'utf8'))
  t.match(spec, { onChanged: 'block', accept: ['icons'], backendRef: { kind: 'Backend' } })
  t.match(spec.tools[1], { name: 'read', note: 'reviewed', definition: { title: 'Read' } })
})

t.test("lock: finds the lock of a cluster's backend by the name in --url", async (t) => {
  const path = folder(t)
  const file = join(path, 'files.lock.yaml')
  const backend = await startChanging(t, [approved])
  const flags = ['-f', path, '--url', `files=${backend.url}`]
  const lock = (kind: string) =>
    `---\napiVersion: gatehouse.dev/v1beta1\nkind: MCPToolLock\nmetadata: {name: files}\nspec: {backendRef: {kind: ${kind}, name: files}, onChanged: block, tools: [{name: read, definition: ${approved}}]}\n`
  writeFileSync(file, lock('MCPServer'))
  t.match(await gatehouse('lock', ...flags, '--check'), { code: 0, out: /files: in sync/ })
  t.match(await gatehouse('lock', ...flags, '-o', path), { code: 0 })
  t.match(parse(readFileSync(file, 'utf8')).spec, { onChanged: 'block', backendRef: { kind: 'MCPServer' } })
  writeFileSync(file, lock('MCPServer') + lock('MCPRemoteProxy'))
  t.match(await gatehouse('lock', ...flags, '--check'), {
    code: 2,
    err: /--url files: .* kinds MCPRemoteProxy, MCPServer/,
  })
})

t.test('lock: an unreadable file or unreachable backend is exit code 2, with the next step', async (t) => {
  const path = folder(t)
  const file = join(path, 'x.yaml')
  const lock = (spec: string) =>
    `apiVersion: gatehouse.dev/v1beta1\nkind: MCPToolLock\nmetadata: {name: files}\nspec: {backendRef: {kind: Backend, name: files}, ${spec}}\n`
  const backend = await startChanging(t, [approved])
  const rows: readonly (readonly [string, RegExp])[] = [
    [lock('scheme: gatehouse.pin.v2'), /x\.yaml:1: spec\.scheme/],
    [lock('tools: [{name: read, definitionText: "{]"}]'), /definitionText: must be a JSON object/],
    ['a: [', /x\.yaml:1: not valid YAML/],
  ]
  for (const [text, message] of rows) {
    writeFileSync(file, text)
    t.match(await gatehouse('lock', '-f', path, '--url', `files=${backend.url}`, '--check'), {
      code: 2,
      err: message,
    })
  }
  t.match(await gatehouse('lock'), {
    code: 2,
    err: /add the NAME of a server, -f with manifests, or --url NAME=URL/,
  })
  t.match(await gatehouse('lock', '--url', 'files=http://127.0.0.1:1/mcp'), {
    code: 2,
    err: /files: cannot list its definitions/,
  })
  const lost = await gatehouse('lock', '--url', 'files=http://127.0.0.1:1/mcp', '--check', '--format', 'json')
  t.equal(lost.code, 2)
  t.match(JSON.parse(lost.out), {
    inSync: false,
    backends: [],
    unlisted: [{ backend: 'files', message: /could not be reached/ }],
  })
  t.match(await gatehouse('lock', '--url', `files=${backend.url}`, '--check', '-o', path), {
    code: 2,
    err: /--output: has no effect with --check; specify the folder of the locks with -f/,
  })
  t.match(await gatehouse('lock', '--url', `files=${backend.url}`, '--format', 'json'), {
    code: 2,
    err: /--format: has no effect without --check/,
  })
  t.match(await gatehouse('lock', '--url', 'files'), { code: 2, err: /must be NAME=URL/ })
  const token = join(path, 'token')
  t.match(await gatehouse('lock', '--url', `files=${backend.url}`, '--bearer-token-file', token), {
    code: 2,
    err: /--bearer-token-file: cannot read .*token/,
  })
  writeFileSync(token, 'two\nlines')
  const { code, err } = await gatehouse('lock', '--url', `files=${backend.url}`, '--bearer-token-file', token)
  t.equal(code, 2)
  t.match(err, /must contain a single token of visible ASCII characters/)
  t.notMatch(err, /two|lines/)
  writeFileSync(
    file,
    'apiVersion: gatehouse.dev/v1beta1\nkind: MCPServer\nmetadata: {name: files}\nspec: {image: x}\n',
  )
  t.match(await gatehouse('lock', '-f', path), { code: 2, err: /set --url files=URL/ })
})

t.test(
  'lock: rejects a definition that exceeds the limits of a lock, and reports omitted items',
  async (t) => {
    const path = folder(t)
    const named = (name: string, description = 'x') => changed(other, { name, description })
    const backend = await startChanging(
      t,
      Array.from({ length: 1001 }, (_, at) => named(`tool_${at}`)),
    )
    const flags = ['--url', `files=${backend.url}`]
    t.match(await gatehouse('lock', ...flags, '-o', path), {
      code: 2,
      out: '',
      err: /files: lock not written: spec\.tools: expected at most 1000 items/,
    })
    t.match(await gatehouse('lock', '--url', `../up=${backend.url}`, '-o', path), {
      code: 2,
      err: /\.\.\/up: lock not written: .*name/,
    })
    t.strictSame(readdirSync(path), [])
    backend.tools = [approved, named('big', 'x'.repeat(1_100_000))]
    t.match(await gatehouse('lock', ...flags, '-o', path), {
      code: 0,
      out: /files\.lock\.yaml: 1 tool,/,
      err: /tool without a name from backend files is left out: the item is larger than/,
    })
    const lock = readFileSync(join(path, 'files.lock.yaml'), 'utf8')
    const two = join(path, 'two.yaml')
    const second = lock.replace('name: files\n', 'name: more\n').replaceAll('read', 'write')
    writeFileSync(two, second)
    t.match(await gatehouse('lock', ...flags, '-f', path, '-o', path), {
      code: 2,
      err: /files: lock not written: it has 2 locks/,
    })
    t.equal(readFileSync(join(path, 'files.lock.yaml'), 'utf8'), lock, 'the first lock is unchanged')
  },
)

t.test('lock: escapes control characters in the names of a backend', async (t) => {
  let lists = 0
  const tool = () => changed(other, { name: 'a\u001b[31mred\u202e', description: `list ${lists++}` })
  const backend = await startChanging(t, [], { responses: { 'tools/list': () => `{"tools":[${tool()}]}` } })
  const { code, err } = await gatehouse('lock', '--url', `files=${backend.url}`)
  t.equal(code, 0)
  t.match(err, 'files: a\\u{1b}[31mred\\u{202e} differs between two lists (text)')
})
