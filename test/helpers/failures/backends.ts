/** Failures of backends and of the connections to them. */
import { createServer } from 'node:net'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { makeCertificates, until } from '../redis.ts'
import { vmcpConfig } from '../vmcp/vmcp.ts'
import { backend, quick, rig, type Rig } from './rig.ts'
import { type Failure, noState } from './views.ts'

const nowhere = 'http://127.0.0.1:9/mcp'
const health = (status: string): string =>
  `gatehouse_vmcp_backend_health{target_workload_name="b",status="${status}"} 1`

/** Returns a drive function for a backend that handles every request with `write`. */
const answering = (write: (res: ServerResponse) => void) => async (t: Test) =>
  rig(t, {
    b: await backend(t, {
      before(_req, res) {
        write(res)
        return true
      },
    }),
  })

const unhealthy = {
  type: 'backend_health',
  lasts: true,
  backend: 'b',
  metric: health('unhealthy'),
  health: ['unhealthy', 'unavailable'],
} as const

async function silentServer(t: Test): Promise<Rig> {
  const server = createServer((socket) => t.teardown(() => socket.destroy())).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  return rig(t, { b: `http://127.0.0.1:${port}/mcp` })
}

const day = 24 * 60 * 60_000

/** Returns a drive function for a backend whose CA bundle expires in two days, with the clock moved ahead by `days`. */
const inDays = (days: number) => async (t: Test) => {
  const { caFile, remove } = makeCertificates()
  t.teardown(remove)
  const config = {
    name: 'b',
    url: nowhere.replace('http:', 'https:'),
    transport: 'streamable-http',
    type: 'entry',
    caBundlePath: caFile,
  }
  const now = Date.now() + days * day
  const after = (ms: number, work: () => void): (() => void) => {
    const timer = setTimeout(work, ms)
    timer.unref()
    return () => clearTimeout(timer)
  }
  return rig(t, { b: nowhere }, { backends: [config] }, { clock: { now: () => now, after } })
}

const expiring = {
  type: 'certificate_expiring',
  lasts: true,
  backend: 'b',
  fix: /CA bundle for b/,
  metric: 'gatehouse_certificate_expiry_timestamp_seconds{certificate="caBundle of b"}',
} as const

export const backendFailures: readonly Failure[] = [
  {
    ...unhealthy,
    name: 'a backend that is down',
    drive: (t) => rig(t, { b: nowhere }),
    message: /^backend b is unhealthy: Connection failed: connection refused \(ECONNREFUSED\)$/,
    fix: /check that b is running/,
    logged: { reason: 'connection_failed', err: Object },
    also(t, { status }) {
      t.match(status.backends[0], {
        since: /^\d{4}-/,
        last_error: { category: 'connection_failed', message: 'Connection failed' },
      })
    },
  },
  {
    ...unhealthy,
    name: 'a backend that is slow',
    drive: silentServer,
    message: /timed out$/,
    fix: /healthCheckTimeout/,
    logged: { reason: 'timeout' },
  },
  {
    ...unhealthy,
    name: 'a backend that lies',
    drive: answering((res) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"1.0","nonsense":true}'),
    ),
    message: /^backend b is unhealthy: /,
    fix: /\bb\b/,
  },
  {
    ...unhealthy,
    name: 'a backend whose responses are errors',
    drive: answering((res) => res.writeHead(503).end('overloaded')),
    message: /^backend b is unhealthy: Backend unavailable \(HTTP 503\): overloaded$/,
    fix: /check the log of b/,
    logged: { reason: 'backend_unavailable' },
  },
  {
    ...unhealthy,
    name: 'a backend that refuses the credentials',
    drive: answering((res) => res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()),
    message: /^backend b is unauthenticated: Authentication failed \(HTTP 401\)$/,
    fix: /check outgoingAuth for b/,
    logged: { reason: 'authentication_failed' },
    metric: health('unauthenticated'),
    health: ['unauthenticated', 'unauthenticated'],
  },
  {
    name: 'an open circuit',
    type: 'backend_circuit',
    lasts: true,
    backend: 'b',
    drive: (t) =>
      rig(
        t,
        { b: nowhere },
        {
          operational: {
            failureHandling: {
              ...quick.failureHandling,
              circuitBreaker: { enabled: true, failureThreshold: 2, timeout: '60s' },
            },
          },
        },
      ),
    message: /^the circuit breaker of backend b is open$/,
    fix: /check its health/,
    metric: 'gatehouse_vmcp_backend_circuit{target_workload_name="b",state="open"} 1',
    health: ['unhealthy', 'unavailable'],
    also(t, { report, overview }) {
      t.match(report.backends[0], { circuitBreakerState: 'open' })
      t.match(overview.backends[0], { circuit: { state: 'open' } })
    },
  },
  {
    name: 'a backend that deviates from the protocol',
    type: 'backend_deviates',
    lasts: true,
    backend: 'b',
    async drive(t) {
      const url = await backend(t, {
        responses: { ping: ({ res }) => void res.writeHead(200).end('pong') },
      })
      return rig(t, { b: url })
    },
    message: /^backend b deviates from the protocol: the response to ping is not a JSON-RPC response$/,
    fix: /^report this to the operator of b/,
    logged: { deviations: ['ping_unanswered'] },
    health: ['healthy', 'ready'],
  },
  {
    name: 'a backend that cannot be set up',
    type: 'backend_excluded',
    lasts: true,
    backend: 'bad',
    async drive(t) {
      const url = await backend(t)
      const bearerToken = { tokenEnv: 'NONE' }
      const backends = { bad: { type: 'bearer_token', bearerToken } }
      return rig(t, { good: url, bad: url }, { outgoingAuth: { source: 'inline', backends } })
    },
    message: /^backend bad is excluded: .*NONE/,
    fix: /correct these settings/,
    metric: 'gatehouse_vmcp_backends_excluded 1',
    health: ['unhealthy', 'unavailable'],
    also(t, { conditions }) {
      const found = conditions.find(({ type }) => type === 'BackendsValidated')
      t.match(found, { status: 'False', reason: 'BackendsExcluded', message: /bad: .*NONE/ })
    },
  },
  {
    name: 'a setting that names a backend that does not exist',
    type: 'backend_name_unknown',
    lasts: true,
    async drive(t) {
      const aggregation = { conflictResolution: 'prefix', tools: [{ workload: 'nobody', filter: ['x'] }] }
      return rig(t, { b: await backend(t) }, { aggregation })
    },
    message: /nobody/,
    fix: /correct the name/,
  },
  {
    name: 'a webhook for a backend that does not exist',
    type: 'backend_name_unknown',
    lasts: true,
    async drive(t) {
      const validating = [{ name: 'v', url: 'https://127.0.0.1:1', match: { backends: ['nobody'] } }]
      return rig(t, { b: await backend(t) }, { webhooks: { validating } })
    },
    message: /^webhooks\.validating\[0\]\.match\.backends\[0\]: unknown backend "nobody"$/,
    fix: /correct the name/,
  },
  {
    ...expiring,
    name: 'a certificate near its end',
    drive: inDays(0),
    message: /^a certificate in the caBundle for backend b expires at \d{4}-/,
    logged: { level: 'warn', ends: /^\d{4}-/ },
    also(t, _told, { vmcp }) {
      vmcp.reload(vmcpConfig({ b: nowhere }))
      t.notOk(
        vmcp.view.problems().some(({ type }) => type === 'certificate_expiring'),
        'over once the bundle is another one',
      )
    },
  },
  {
    ...expiring,
    name: 'a certificate that has ended',
    drive: inDays(3),
    message: /^a certificate in the caBundle for backend b expired at \d{4}-/,
    logged: { level: 'error', expired: true },
  },
  {
    name: 'calls that fail at a backend whose checks succeed',
    type: 'backend_call_failed',
    lasts: false,
    backend: 'b',
    async drive(t) {
      const url = await backend(t, {
        responses: { 'tools/call': ({ res }) => void res.writeHead(500).end('secret') },
      })
      const running = await rig(t, { b: url })
      await until(() => running.vmcp.view.backends()[0]?.health.status === 'healthy')
      for (let i = 0; i < 3; i++) await running.call('b_echo')
      return running
    },
    reason: 'backend_unavailable',
    message: /a request to a backend failed/,
    fix: /check the log of b/,
    logged: { level: 'warn', reason: 'backend_unavailable' },
    metric: 'gatehouse_vmcp_backend_errors_total{',
    call: { name: 'b_echo', backend: 'b', outcome: 'failure' },
    silent: noState,
    also(t, { status, lines }) {
      const last = { category: 'backend_unavailable', message: 'Backend unavailable' }
      const latency = { p50: Number, p95: Number }
      t.match(status.backends[0], {
        health: 'healthy',
        calls: 3,
        calls_failed: 3,
        last_error: last,
        latency_ms: latency,
      })
      t.match(
        status.recent_failures.find(({ type }) => type === 'backend_call_failed'),
        { count: 3 },
      )
      t.notMatch(JSON.stringify([lines, status]), 'secret')
    },
  },
]
