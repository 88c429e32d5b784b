/**
 * Text of a server or a manifest is printed without characters that control a terminal, also as JSON and YAML, and
 * without losing content.
 */
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { hiddenInText } from '../../../schemas/index.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { untyped } from '../../helpers/untyped.ts'

t.setTimeout(120_000)

const evil = 'a\u009b2Jb\u202ec\u009d52;c;eA==\u009cd\u2066e\u{e0041}f\u007fg'

/** A stdio server whose texts all contain control characters, as raw UTF-8 wherever JSON allows it. */
const server = `
const evil = ${JSON.stringify(evil)}
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: {}, prompts: {} }, serverInfo: { name: 's', version: '1' } },
  'tools/list': { tools: [{ name: 't', description: evil, inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: evil }], ['key ' + evil]: 1 },
  'resources/list': { resources: [{ uri: 'x://y', name: evil }] },
  'resources/read': { contents: [{ uri: 'x://y', text: evil }] },
  'prompts/get': { messages: [{ role: 'user', content: { type: 'text', text: evil } }] },
}
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const result = results[method]
  const reply = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...reply }) + '\\n')
})
`

function hides(text: string): boolean {
  return text.replaceAll('\r\n', '\n').search(hiddenInText) >= 0
}

await t.test('-o json of tools, resources and prompts contains no control characters', async (t) => {
  const script = join(t.testdir({ 'server.cjs': server }), 'server.cjs')
  for (const [words, at] of [
    [['tools', 'list'], (value: unknown) => untyped(value).tools[0].description],
    [['tools', 'call', 't'], (value: unknown) => untyped(value).content[0].text],
    [['resources', 'list'], (value: unknown) => untyped(value).resources[0].name],
    [['resources', 'read', 'x://y'], (value: unknown) => untyped(value).contents[0].text],
    [['prompts', 'get', 'p'], (value: unknown) => untyped(value).messages[0].content.text],
  ] as const) {
    const ran = await runGatehouse([...words, '-o', 'json', '--', process.execPath, script])
    t.equal(ran.code, 0, ran.stderr)
    t.notOk(hides(ran.stdout), words.join(' '))
    t.equal(at(JSON.parse(ran.stdout)), evil)
  }
})

await t.test('render and validate print no control characters as JSON, YAML, SARIF or JUnit', async (t) => {
  const manifest = JSON.stringify({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPServer',
    metadata: { name: 'one' },
    spec: { image: 'example.com/one:1', transport: 'stdio', env: [{ name: 'TEXT', value: evil }] },
  })
  const yaml = await runGatehouse(['render', '-f', '-'], manifest)
  t.equal(yaml.code, 0, yaml.stderr)
  t.notOk(hides(yaml.stdout))
  const json = await runGatehouse(['render', '-o', 'json', '-f', '-'], manifest)
  t.notOk(hides(json.stdout))
  const documents = yaml.stdout.split(/^---\n/m).slice(1)
  t.strictSame(
    documents.map((text) => parse(text) as unknown),
    untyped(JSON.parse(json.stdout)).items,
  )
  t.match(JSON.stringify(JSON.parse(json.stdout)), evil)
  const invalid = manifest.replace('"stdio"', JSON.stringify(evil))
  for (const output of ['text', 'json', 'sarif', 'junit']) {
    const { code, stdout, stderr } = await runGatehouse(['validate', '-o', output, '-f', '-'], invalid)
    t.equal(code, 1)
    t.notOk(hides(stdout + stderr), output)
  }
})

await t.test('import: the reason why a file cannot be read contains no control characters', async (t) => {
  const file = join(t.testdir({ 'c.yaml': '%YAML \u001b]0;title\u0007\n---\na: 1\n' }), 'c.yaml')
  const ran = await runGatehouse(['import', '--as', 'goose', file])
  t.match(ran.stdout, /unreadable .*Unsupported YAML version/)
  t.notOk(hides(ran.stdout))
})
