/** The observer around a pipeline on a real listener: when a request is reported, and with which outcome. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { Exchange, listen, pipeline, sendJson, silentLog, type Stage } from '../../../runtime/net/index.ts'
import {
  makeAudit,
  makeObserver,
  makeTelemetry,
  noTelemetry,
  type Observer,
  rateLimitRecorder,
  type RpcResponse,
} from '../../../runtime/observe/index.ts'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { startCollector } from '../../helpers/otlp.ts'

type Line = Readonly<Record<string, unknown>>

const settings = {
  enabled: true,
  detectApplicationErrors: true,
  includeRequestData: false,
  includeResponseData: false,
  maxDataSize: 1024,
  policyInputs: 'none' as const,
  maxDelegationDepth: 10,
}
const message = { kind: 'request', id: '1', method: 'tools/call' } as const
const params = new JsonObject(Buffer.from('{"name":"x"}'))
const result: RpcResponse = { kind: 'result', toolError: false }

interface Rig {
  readonly url: string
  readonly port: number
  readonly lines: Line[]
  readonly observer: Observer
  /** Resolves with the next line. */
  line(): Promise<Line>
}

/** Starts a server whose requests `dispatch` handles. A body with a tool call is observed as one. */
async function rig(
  t: Test,
  dispatch: (exchange: Exchange, observer: Observer) => void | Promise<void>,
  options: { trustProxyHeaders?: boolean; observes?: (path: string) => boolean } = {},
): Promise<Rig> {
  const lines: Line[] = []
  const waiting: ((line: Line) => void)[] = []
  const destination = {
    write(text: string) {
      const line = JSON.parse(text) as Line
      const wake = waiting.shift()
      if (wake) wake(line)
      else lines.push(line)
    },
  }
  const observer = makeObserver({
    server: 's',
    audit: makeAudit(settings, { destination }),
    telemetry: noTelemetry,
    ...options,
  })
  const handler = pipeline<Exchange>(
    {
      dispatch(exchange) {
        observer.started(exchange)
        return dispatch(exchange, observer)
      },
      audit: (exchange, error) =>
        exchange.req.method === 'POST'
          ? observer.finished(exchange, error, message, params)
          : observer.finished(exchange, error),
      recover({ res }, error) {
        if (res.headersSent) res.destroy()
        else sendJson(res, error instanceof GatehouseError ? error.status : 500, {})
      },
    },
    Exchange,
  )
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    handler: observer.wrap(handler),
    log: silentLog,
  })
  t.teardown(() => listener.close({ graceMs: 0 }))
  return {
    url: listener.url,
    port: listener.port,
    lines,
    observer,
    line: () => {
      const ready = lines.shift()
      return ready ? Promise.resolve(ready) : new Promise((resolve) => waiting.push(resolve))
    },
  }
}

const response: Stage<Exchange> = ({ res }) => sendJson(res, 200, { jsonrpc: '2.0', id: 1, result: {} })

t.test('observer: without any output, the handler is returned unchanged', async (t) => {
  const observer = makeObserver({ server: 's', audit: makeAudit(undefined), telemetry: noTelemetry })
  const handler = () => {}
  t.equal(observer.enabled, false)
  t.equal(observer.wrap(handler), handler)
  t.equal(
    await observer.operation(
      { message, params },
      async () => 7,
      () => undefined,
    ),
    7,
  )
})

t.test('observer: paths that are not observed leave no record', async (t) => {
  const { url, lines, line } = await rig(t, response, { observes: (path) => path === '/mcp' })
  await fetch(`${url}/health?x`)
  await fetch(`${url}/mcp?x`, { method: 'POST' })
  t.match(await line(), { target: { endpoint: '/mcp' } })
  t.same(lines, [])
})

t.test('observer: an event stream is reported once, when it opens', async (t) => {
  let end = () => {}
  const { url, line, lines } = await rig(t, ({ res }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    return new Promise((resolve) => {
      end = () => {
        res.end()
        resolve()
      }
    })
  })
  const response = await fetch(url, { headers: { accept: 'text/event-stream' } })
  const opened = await line()
  t.match(opened, { type: 'sse_connection', outcome: 'success' })
  end()
  await response.text()
  t.same(lines, [], 'once')
})

t.test('observer: an interrupted response is an error', async (t) => {
  const { url, line } = await rig(t, ({ res }) => {
    res.writeHead(200)
    res.write('{"jsonrpc"')
    throw new Error('the backend is gone')
  })
  await fetch(url, { method: 'POST' })
    .then((response) => response.text())
    .catch(() => {})
  t.match(await line(), { type: 'mcp_tool_call', outcome: 'error' })
})

t.test('observer: a client that disconnects before the response is a failure', async (t) => {
  const { port, line } = await rig(t, ({ res }) => once(res, 'close').then(() => {}))
  const socket = connect(port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n', () => socket.destroy())
  t.match(await line(), { outcome: 'failure', metadata: { extra: { response_size_bytes: 0 } } })
})

t.test('observer: nested calls do not determine the outcome of an operation', async (t) => {
  const { url, line } = await rig(t, async ({ res }, observer) => {
    await observer.operation(
      { message, params },
      async () => {
        const inner = { ...message, method: 'prompts/get' }
        await observer.operation(
          { message: inner, params },
          async () => {},
          () => ({ kind: 'error', code: -1 }),
        )
        observer.backend('first')
        observer.backend('second')
      },
      () => result,
    )
    sendJson(res, 200, {})
  })
  await fetch(url, { method: 'POST' })
  const found = await line()
  t.match(found, {
    type: 'mcp_tool_call',
    outcome: 'success',
    target: { name: 'x', method: 'tools/call' },
    metadata: { extra: { backend: 'first' } },
  })
})

t.test('observer: an accepted message is reported when its operation has ended', async (t) => {
  let finish = () => {}
  const { url, line, lines } = await rig(t, ({ res }, observer) => {
    const work = new Promise<void>((resolve) => {
      finish = resolve
    })
    void observer.operation(
      { message, params },
      () => work,
      () => ({ kind: 'error', code: 403, message: 'no' }),
    )
    res.writeHead(202).end()
  })
  t.equal((await fetch(url, { method: 'POST' })).status, 202)
  t.same(lines, [])
  finish()
  t.match(await line(), { outcome: 'denied', metadata: { extra: { jsonrpc_error_code: 403 } } })
})

t.test('observer: a rejected operation is recorded with its code and a safe text', async (t) => {
  const { url, line } = await rig(t, async ({ res }, observer) => {
    const detail = 'tool Bearer s3cr3t-s3cr3t not found'
    const work = () => Promise.reject(new GatehouseError('INVALID_PARAMS', { detail }))
    await observer.operation({ message, params }, work, () => result).catch(() => {})
    sendJson(res, 200, {})
  })
  await fetch(url, { method: 'POST' })
  t.match(await line(), {
    outcome: 'application_error',
    metadata: {
      extra: { jsonrpc_error_code: -32602, jsonrpc_error_message: 'tool Bearer [redacted] not found' },
    },
  })
})

t.test('observer: X-Forwarded-For counts behind trusted proxies only', async (t) => {
  for (const trustProxyHeaders of [false, true]) {
    const { url, line } = await rig(t, response, { trustProxyHeaders })
    await fetch(url, { method: 'POST', headers: { 'x-forwarded-for': '6.6.6.6, 8.8.8.8, 10.0.0.1' } })
    t.match(await line(), { source: { value: trustProxyHeaders ? '8.8.8.8' : '127.0.0.1' } })
  }
})

t.test('observer: events are added to the span, even before it is open', async (t) => {
  const collector = await startCollector()
  t.teardown(() => collector.close())
  const telemetry = await makeTelemetry(
    {
      endpoint: collector.url,
      insecure: false,
      tracingEnabled: true,
      metricsEnabled: true,
      enablePrometheusMetricsPath: false,
      samplingRate: '1',
      useLegacyAttributes: false,
    },
    { serverName: 's', version: '1' },
  )
  const observer = makeObserver({ server: 's', audit: makeAudit(undefined), telemetry })
  const tell = rateLimitRecorder(telemetry.metrics, { namespace: 'n', server: 's' })
  const handler = pipeline<Exchange>(
    {
      authorize() {
        tell({ kind: 'decision', decision: 'rejected', scope: 'per_user', operationType: 'tool' })
        tell({ kind: 'checked', milliseconds: 2 })
        tell({ kind: 'store_error', errorType: 'timeout' })
        tell({ kind: 'fail_open' })
      },
      dispatch: response,
      audit: (exchange, error) => observer.finished(exchange, error, message, params),
      recover: () => {},
    },
    Exchange,
  )
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    handler: observer.wrap(handler),
    log: silentLog,
  })
  t.teardown(() => listener.close({ graceMs: 0 }))
  await fetch(listener.url, { method: 'POST' })
  await telemetry.close()
  t.match(collector.spans(), [
    {
      name: 'tools/call x',
      attributes: {
        'rate_limit.decision': 'rejected',
        'rate_limit.rejected_by': 'per_user',
        'rate_limit.fail_open': true,
      },
    },
  ])
  const labels = { namespace: 'n', server: 's' }
  const points = collector.points().filter(({ name }) => name.startsWith('gatehouse_rate_limit'))
  t.match(
    points.map(({ name, attributes, value }) => ({ name, attributes, value })),
    [
      {
        name: 'gatehouse_rate_limit_decisions',
        attributes: { ...labels, decision: 'rejected', scope: 'per_user', operation_type: 'tool' },
        value: 1,
      },
      { name: 'gatehouse_rate_limit_redis_errors', attributes: { ...labels, error_type: 'timeout' } },
      { name: 'gatehouse_rate_limit_fail_open', attributes: labels },
      { name: 'gatehouse_rate_limit_check_latency', attributes: labels },
    ],
  )
})

t.test('observer: a failing audit log does not fail the request', async (t) => {
  const errors: string[] = []
  const destination = {
    write() {
      throw new Error('no')
    },
  }
  const observer = makeObserver({
    server: 's',
    audit: makeAudit(settings, { destination }),
    telemetry: noTelemetry,
    log: { ...silentLog, error: (text) => void errors.push(text) },
  })
  const handler = pipeline<Exchange>(
    { dispatch: response, audit: (exchange, error) => observer.finished(exchange, error), recover: () => {} },
    Exchange,
  )
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    handler: observer.wrap(handler),
    log: silentLog,
  })
  t.equal((await fetch(listener.url)).status, 200)
  await listener.close()
  t.same(errors, ['a request could not be reported'])
})
