/** JSON, YAML and XML output of commands and logs contains no terminal control characters and loses no information. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { parse } from 'yaml'
import { makeLog as makeHookLog } from '../../../hooks/server/log.ts'
import { outputWriter } from '../../../runtime/toolkit/terminal/plain-text.ts'
import { xml } from '../../../runtime/toolkit/terminal/junit.ts'
import { makeAudit, makeLog } from '../../../runtime/observe/index.ts'
import { hiddenInText, visibleJson } from '../../../schemas/index.ts'
import { writeYaml } from '../../../schemas/yaml/index.ts'

const active = [
  '\u001b[2J',
  '\u007f',
  '\u0085',
  '\u009b2J',
  '\u009d52;c;eA==\u009c',
  '\u202e',
  '\u2066',
  '\u2028',
  '\ufeff',
  '\u{e0041}',
]
const text = active.join('a')
const value = {
  plain: 'ä 日本 👩‍👩‍👧 ☀️',
  text,
  list: [text, `  two\n  lines ${text}\n`],
  [`key ${text}`]: { deep: text },
}

function hides(written: string): boolean {
  return written.search(hiddenInText) >= 0
}

await t.test(
  'visibleJson: the output contains no hidden characters and parses to the same value',
  async (t) => {
    for (const indent of [undefined, 2]) {
      const json = visibleJson(JSON.stringify(value, undefined, indent))
      t.notOk(hides(json))
      t.strictSame(JSON.parse(json), value)
    }
    t.match(visibleJson(JSON.stringify('\u009b\u202e\u{e0041}')), '"\\u009b\\u202e\\udb40\\udc41"')
    t.equal(visibleJson('{"ä":"é 👩‍👧"}'), '{"ä":"é 👩‍👧"}', 'readable text stays')
    t.strictSame(JSON.parse(visibleJson('{"a":1,\r"b":\r\n2}')), { a: 1, b: 2 })
    t.notOk(hides(visibleJson('{"a":1,\r"b":2}')), 'a carriage return would overwrite the line')
  },
)

await t.test(
  'writeYaml: the output contains no hidden characters and parses to the same value',
  async (t) => {
    const yaml = writeYaml(value)
    t.notOk(hides(yaml))
    t.strictSame(parse(yaml), value)
    t.match(yaml, 'plain: ä 日本 👩‍👩‍👧 ☀️')
  },
)

await t.test('XML: hidden characters become character references', async (t) => {
  t.notOk(hides(xml(text)))
  t.match(xml('\u009b\u202e'), '&#x9b;&#x202e;')
})

await t.test('log lines as JSON contain no terminal control characters', async (t) => {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  makeLog({ name: text, destination }).warn('it happened', { evil: text, list: [text] })
  makeHookLog(destination, { now: () => new Date(0) })('warn', 'it happened', { evil: text })
  t.equal(lines.length, 2)
  for (const line of lines) {
    t.notOk(hides(line))
    t.match(JSON.parse(line), { evil: text })
  }
})

await t.test('audit lines contain no terminal control characters', async (t) => {
  const lines: string[] = []
  const audit = makeAudit(
    {
      enabled: true,
      detectApplicationErrors: false,
      includeRequestData: true,
      includeResponseData: true,
      maxDataSize: 4096,
      policyInputs: 'none',
      maxDelegationDepth: 10,
    },
    { destination: { write: (line) => void lines.push(line) } },
  )
  const response = { text: JSON.stringify({ answer: text }), whole: true }
  audit.exchange({
    type: 'mcp_tool_call',
    outcome: 'success',
    status: 200,
    errorCode: undefined,
    req: Object.assign(new IncomingMessage(new Socket()), { headers: { 'user-agent': 'x\u009b2J' } }),
    path: '/mcp',
    clientAddress: '127.0.0.1',
    requestId: 'r',
    caller: undefined,
    client: { name: text, version: '1' },
    rpc: undefined,
    backend: undefined,
    durationMs: 1,
    responseBytes: 1,
    rpcResponse: undefined,
    denial: undefined,
    body: Buffer.from(JSON.stringify({ question: text })),
    response,
  })
  const [line = ''] = lines
  t.notOk(hides(line))
  t.match(JSON.parse(line), {
    subjects: { client_name: text },
    data: { request: { question: text }, response: { answer: text } },
  })
})

await t.test(
  'output of programs: raw bytes for a pipe, complete and safe lines for a terminal',
  async (t) => {
    const bytes = Buffer.from(`one ${text} two\nthree`)
    for (const [isTTY, expected] of [
      [false, bytes.toString()],
      [true, /^one .*two\n$/],
    ] as const) {
      const stream = new PassThrough()
      const write = outputWriter(Object.assign(stream, { isTTY }) as unknown as NodeJS.WriteStream)
      for (const byte of bytes) write(Buffer.from([byte]))
      const written = String(stream.read())
      t.match(written, expected)
      t.equal(hides(written), !isTTY)
    }
  },
)
