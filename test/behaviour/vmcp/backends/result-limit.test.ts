/**
 * operational.maxResultBytes: the largest result of a call to a backend, in all combinations of client and backend
 * eras.
 */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { validateResource } from '../../../../hooks/index.ts'
import { makeLog } from '../../../../runtime/observe/index.ts'
import { formatViolations } from '../../../../schemas/index.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend, textResult, writeWithoutEnd } from '../../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const maxResultBytes = 2_048
const message = 'backend big: the result is larger than operational.maxResultBytes allows (2048 bytes)'
/** A tool error is part of its result. */
const refused = { result: { isError: true, content: [{ type: 'text', text: message }] } }
const circuitBreaker = { enabled: true, failureThreshold: 1 }
const limited = {
  aggregation: bareNames('big'),
  operational: { maxResultBytes, failureHandling: { circuitBreaker } },
}

for (const transport of ['session', 'stateless', 'sse'] as const) {
  t.test(
    `a backend of ${transport}: a result over the limit is an error that names the setting`,
    async (t) => {
      const fixture = await startFixture({ era: transport === 'stateless' ? 'stateless' : 'session' })
      const lines: string[] = []
      const big =
        transport === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
      const vmcp = await startTestVmcp({ big }, limited, {
        log: makeLog({ level: 'info', destination: { write: (line) => void lines.push(line) } }),
      })
      t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
      const session = await openSession(vmcp.url)
      const call = (length: number) => ({ name: 'echo', arguments: { text: 'x'.repeat(length) } })
      for (const ask of [
        (length: number) => session.request('tools/call', call(length)),
        (length: number) => stateless(vmcp.url, 'tools/call', call(length)),
      ]) {
        t.match((await ask(1_000)).text, 'x'.repeat(1_000))
        for (const length of [3_000, 100_000]) {
          const { response, text } = await ask(length)
          t.match(response, refused)
          t.notMatch(text, 'xxxx', 'no part of the result is forwarded')
        }
        t.match(
          (await ask(1_000)).text,
          'x'.repeat(1_000),
          'the circuit stays closed because the backend is healthy',
        )
      }
      t.match(lines.join(''), /"backend":"big".*maxResultBytes/)
      t.notMatch(lines.join(''), 'xxxx')
    },
  )
}

t.test('the limit counts the exact bytes of the result', async (t) => {
  const sized = (length: number) => textResult('x'.repeat(length - textResult('').length))
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ params }) => sized((params['arguments'] as { length: number }).length),
    },
  })
  const vmcp = await startTestVmcp({ big: backend.url }, limited)
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const call = async (length: number) =>
    (await session.request('tools/call', { name: 'echo', arguments: { length } })).response
  t.ok((await call(maxResultBytes))?.result)
  t.match(await call(maxResultBytes + 1), refused)
})

const ends: Readonly<Record<string, (res: ServerResponse, id: string) => void>> = {
  'JSON without an end': (res, id) => {
    res.writeHead(200, { 'content-type': 'application/json' })
    writeWithoutEnd(res, `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
  },
  'an event without an end': (res, id) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    writeWithoutEnd(res, `data: {"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
  },
  'a long body that is announced and never sent': (res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': '50000000' }).flushHeaders()
  },
}

for (const [name, send] of Object.entries(ends)) {
  t.test(`${name} is cut, and the connection closed`, async (t) => {
    const closed = Promise.withResolvers<number>()
    const backend = await startRawBackend({
      responses: {
        'tools/call': ({ id, res }) => {
          const { socket } = res
          res.once('close', () => closed.resolve(socket?.bytesWritten ?? 0))
          send(res, id)
          return undefined
        },
      },
    })
    const vmcp = await startTestVmcp({ big: backend.url }, limited)
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    const { response } = await session.request('tools/call', { name: 'echo' })
    t.match(response, refused)
    t.ok((await closed.promise) < 16_000_000, 'only what the kernel buffers is sent')
  })
}

t.test('lists have separate limits', async (t) => {
  const long = 'd'.repeat(4 * maxResultBytes)
  const backend = await startRawBackend({
    tools: () => [`{"name":"echo","description":"${long}","inputSchema":{"type":"object"}}`],
  })
  const vmcp = await startTestVmcp({ big: backend.url }, limited)
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  t.match((await session.request('tools/list')).text, long)
})

t.test('a resource over the limit is a protocol error', async (t) => {
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"resources":{}}',
    responses: {
      'resources/list': () => '{"resources":[{"uri":"test://r","name":"r"}]}',
      'resources/read': () => `{"contents":[{"uri":"test://r","text":"${'x'.repeat(9_000)}"}]}`,
    },
  })
  const vmcp = await startTestVmcp({ big: backend.url }, limited)
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  for (const ask of [
    () => session.request('resources/read', { uri: 'test://r' }),
    () => stateless(vmcp.url, 'resources/read', { uri: 'test://r' }),
  ]) {
    t.match((await ask()).response, { error: { code: -32603, message, data: { backend: 'big' } } })
  }
})

t.test('unset: results pass as before', async (t) => {
  const backend = await startRawBackend({ responses: { 'tools/call': () => textResult('x'.repeat(3e6)) } })
  const vmcp = await startTestVmcp({ big: backend.url }, { aggregation: bareNames('big') })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  t.ok((await session.request('tools/call', { name: 'echo' })).response?.result)
})

t.test('metrics: a rejected result is counted as a call error with its code', async (t) => {
  const backend = await startRawBackend({ responses: { 'tools/call': () => textResult('x'.repeat(9_000)) } })
  const telemetry = { enablePrometheusMetricsPath: true }
  const vmcp = await startTestVmcp({ big: backend.url }, { ...limited, telemetry })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'echo' })
  const metrics = await (await fetch(`${vmcp.origin}/metrics`)).text()
  t.match(metrics, /BACKEND_RESULT_TOO_LARGE/)
})

t.test('manifests: the bounds are checked at admission and offline, by the same rule', async (t) => {
  const refused = (value: unknown) =>
    formatViolations(
      validateResource({
        apiVersion: 'gatehouse.dev/v1beta1',
        kind: 'VirtualMCPServer',
        metadata: { name: 'door', namespace: 'team' },
        spec: {
          groupRef: { name: 'tools' },
          incomingAuth: { type: 'anonymous' },
          config: { operational: { maxResultBytes: value } },
        },
      }).violations,
    )
  for (const value of [1_024, 1_048_576, 67_108_864]) t.equal(refused(value), '')
  for (const value of [0, -1, 1_023, 67_108_865, 1.5, '1Mi', null]) {
    t.match(refused(value), /^spec\.config\.operational\.maxResultBytes: /, String(value))
  }
})

/** One page of tools with that many bytes. */
function pageOf(length: number): string {
  const page = (filler: string) =>
    `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"${filler}"}]}`
  return page('x'.repeat(length - page('').length))
}

t.test('a list page that is too large fails the list, and the log has the reason', async (t) => {
  const largest = 8 * 1024 * 1024
  for (const [length, failed] of [
    [largest, false],
    [largest + 1, true],
    [largest * 2, true],
  ] as const) {
    const backend = await startRawBackend({ responses: { 'tools/list': () => pageOf(length) } })
    const lines: string[] = []
    const vmcp = await startTestVmcp(
      { big: backend.url },
      { aggregation: bareNames('big') },
      { log: makeLog({ level: 'info', destination: { write: (line) => void lines.push(line) } }) },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const { response } = await (await openSession(vmcp.url)).request('tools/list')
    if (!failed) t.match(response?.result, { tools: [{ name: 'echo' }] })
    else {
      t.match(response?.error, { code: -32603, message: /backend big/ })
      t.match(lines.join(''), /one page of tools\/list is larger than 8388608 bytes/)
    }
  }
})
