/**
 * Hostile bodies for the hooks server in a separate process: no turn of its event loop may be long, so that probes and
 * other callers get a response. Measured as in event-loop.test.ts.
 */
import t from 'tap'
import { startHooksProcess } from '../../helpers/hooks/process.ts'

t.setTimeout(240_000)

/** Longest turn, and the cost of turn-watch.ts's yardstick on the reference machine, in microseconds. */
const LONGEST_US = 50_000
const YARD_US = 10_000
const MEBIBYTE = 1024 * 1024

const apiVersion = 'gatehouse.dev/v1beta1'
const metadata = { name: 'tools', namespace: 'team' }
const sync = (padding: string): string => {
  const parent = JSON.stringify({ apiVersion, kind: 'MCPGroup', metadata, spec: {} })
  return `{"parent":${parent},"children":{},"related":{},"padding":${padding}}`
}
const review = (kind: string, spec: string): string =>
  `{"kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","kind":{"kind":"${kind}"},` +
  `"object":{"apiVersion":"${apiVersion}","kind":"${kind}","metadata":${JSON.stringify(metadata)},"spec":${spec}}}}`
const lists = (count: number): string => `[${'[],'.repeat(count - 1)}[]]`
const policy = 'permit(principal, action, resource) when { context.a == 1 };'
const workflow = (name: string, steps: number) => ({
  name,
  description: 'd',
  steps: Array.from({ length: steps }, (_, i) => ({
    id: `s${i}`,
    tool: 'a.b',
    arguments: { x: `{{if eq .params.a "b"}}{{json .params}}{{end}}` },
  })),
})
const virtual = (config: object): string =>
  review(
    'VirtualMCPServer',
    JSON.stringify({ groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' }, config }),
  )
const workflows = (count: number, steps: number): string =>
  virtual({ compositeTools: Array.from({ length: count }, (_, i) => workflow(`w${i}`, steps)) })
const policies = (count: number): string =>
  review(
    'MCPAuthzConfig',
    JSON.stringify({ type: 'cedarv1', config: { policies: Array(count).fill(policy) } }),
  )

const hook = '/hooks/mcpgroups/sync'
const rows: Readonly<Record<string, readonly [path: string, body: string, statuses: readonly number[]]>> = {
  'a sync of the largest size': [
    hook,
    sync(`[${'{"9999":1},'.repeat(330_000)}"${'x'.repeat(19 * MEBIBYTE)}€"]`),
    [200],
  ],
  'a review of as many values as are read': ['/validate', review('MCPGroup', lists(49_000)), [200]],
  'a review with a long text': [
    '/validate',
    review('MCPGroup', `{"description":"${'x'.repeat(7 * MEBIBYTE)}"}`),
    [200],
  ],
  'a hundred workflows': ['/validate', workflows(100, 40), [200, 413]],
  'a review of workflows that is small': ['/validate', workflows(4, 25), [200]],
  'many policies': ['/validate', policies(500), [200]],
  'policies in a review that is small': ['/validate', policies(150), [200]],
  'no JSON': ['/validate', `{"a":"${'x'.repeat(7 * MEBIBYTE)}`, [400]],
}

t.test('hooks server: no body of one caller blocks other callers', async (t) => {
  const server = await startHooksProcess(t, undefined, ['--import', './test/helpers/turn-watch.ts'])
  const post = async (path: string, body: string): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method: 'POST', body })
    await response.text()
    return response.status
  }
  // Warms up the code that is loaded and compiled with the first call.
  for (const body of [workflows(1, 1), policies(1), review('MCPGroup', '{}')]) await post('/validate', body)
  await post(hook, sync('1'))
  for (const [what, [path, body, expected]] of Object.entries(rows)) {
    await server.tell({ watch: true })
    const status = await post(path, body)
    const { longestUs, yardUs } = await server.tell({ watch: false })
    t.ok(expected.includes(status), `${what}: ${status}`)
    const allowed = LONGEST_US * Math.max(1, yardUs / YARD_US)
    t.ok(longestUs < allowed, `${what}: ${longestUs} of ${Math.round(allowed)} us`)
  }
})
