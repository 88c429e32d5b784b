/**
 * Hidden items get the same response as unknown ones, byte for byte except the name, whatever the policies: as plain
 * calls, through tool search, in both eras. An item that pinning blocks is denied to callers that policies permit, and
 * looks unknown to all other callers.
 */
import t, { type Test } from 'tap'
import { textResult } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless, type WireAnswer } from '../../helpers/mcp/wire.ts'
import { approved, lockOf, pinning, startChanging } from '../../helpers/vmcp/pinning.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const [hidden, unknown] = ['hidden', 'nobody'] as const
const toolOf = (name: string) =>
  JSON.stringify({ name, inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } })
const promptOf = (name: string) => JSON.stringify({ name })
const templateOf = (name: string) => JSON.stringify({ name, uriTemplate: `file:///${name}/{path}` })

interface PolicyRow {
  readonly name: string
  readonly policies: readonly string[] | undefined
  /** True if the caller may use neither hidden nor unknown items. */
  readonly refuses: boolean
}

const policyRows: readonly PolicyRow[] = [
  { name: 'none', policies: undefined, refuses: false },
  { name: 'permit', policies: ['permit(principal, action, resource);'], refuses: false },
  {
    name: 'default deny',
    policies: ['permit(principal, action, resource == Tool::"read");', searchTools()],
    refuses: true,
  },
  {
    name: 'forbid',
    policies: [
      'permit(principal, action, resource);',
      `forbid(principal, action, resource) unless { ${own('resource')} };`,
    ],
    refuses: true,
  },
  {
    name: 'forbid by arguments',
    policies: [
      'permit(principal, action, resource);',
      'forbid(principal, action == Action::"call_tool", resource) when { context has arg_path };',
    ],
    refuses: false,
  },
  {
    name: 'permit by hints',
    policies: [
      searchTools(),
      'permit(principal, action == Action::"call_tool", resource) when { resource has readOnlyHint && resource.readOnlyHint };',
    ],
    refuses: true,
  },
  {
    name: 'permit by another backend',
    policies: [searchTools(), 'permit(principal, action, resource in Backend::"other");'],
    refuses: true,
  },
]

function own(resource: string): string {
  return `${resource} == Tool::"find_tool" || ${resource} == Tool::"call_tool"`
}

function searchTools(): string {
  return `permit(principal, action, resource) when { ${own('resource')} };`
}

/** The way in which an item is hidden. */
const ways: Readonly<Record<string, object>> = {
  filter: {
    aggregation: {
      ...(bareNames('files') as object),
      tools: [{ workload: 'files', filter: ['read'] }],
    },
  },
  excludeAll: {
    aggregation: { ...(bareNames('files') as object), tools: [{ workload: 'files', excludeAll: true }] },
  },
  excludeAllTools: { aggregation: { ...(bareNames('files') as object), excludeAllTools: true } },
  pin: { pinning: pinning('block'), toolLocks: [lockOf('files', [approved])] },
}

async function backendOf(t: Test) {
  return startChanging(t, [approved, toolOf(hidden)], {
    capabilities: '{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{}}',
    responses: {
      'prompts/list': () => `{"prompts":[${promptOf(hidden)}]}`,
      'resources/list': () => '{"resources":[]}',
      'resources/templates/list': () => `{"resourceTemplates":[${templateOf(hidden)}]}`,
      'prompts/get': () => '{"messages":[]}',
      'resources/read': () => '{"contents":[]}',
      'resources/subscribe': () => '{}',
      'completion/complete': () => '{"completion":{"values":["told"]}}',
      'tools/call': () => textResult('reached'),
    },
  })
}

type Request = readonly [string, (name: string) => Record<string, unknown>]

const plainCalls: readonly Request[] = [
  ['tools/call', (name) => ({ name })],
  ['tools/call', (name) => ({ name, arguments: { path: 'x' } })],
  ['tools/call', (name) => ({ name, arguments: [] })],
]
const searchCalls: readonly Request[] = [
  [
    'tools/call',
    (name) => ({ name: 'call_tool', arguments: { tool_name: name, parameters: { path: 'x' } } }),
  ],
]
/** Items that only pinning hides. */
const otherItems: readonly Request[] = [
  ['prompts/get', (name) => ({ name })],
  ['resources/read', (name) => ({ uri: `file:///${name}/x` })],
  ['completion/complete', (name) => completion({ type: 'ref/prompt', name })],
  ['completion/complete', (name) => completion({ type: 'ref/resource', uri: `file:///${name}/{path}` })],
]

function completion(ref: object): Record<string, unknown> {
  return { ref, argument: { name: 'path', value: '' } }
}

/** Returns the client's complete response, without the name and the number of the request. */
function bytes({ status, headers, text }: WireAnswer, name: string): string {
  const told = [...headers].filter(([header]) => !/^(date|x-request-id|traceparent)$/.test(header))
  const body = text.replaceAll(name, 'NAME').replace(/"id":("[^"]*"|\d+)/, '"id":0')
  return [status, ...told.map((pair) => pair.join(': ').replace(/^content-length: .*/, '')), body].join('\n')
}

async function clientsOf(url: string) {
  const session = await openSession(url)
  return [
    ['session', (method: string, params: unknown) => session.request(method, params)],
    ['stateless', (method: string, params: unknown) => stateless(url, method, params as never)],
  ] as const
}

/** In the format of the protocol, or of tool search. */
const denial = /"code":403|denied by authorization policy/
const reaching = new Set(['tools/call', 'prompts/get', 'resources/read', 'completion/complete'])

for (const [way, config] of Object.entries(ways)) {
  for (const search of [false, true]) {
    t.test(`${way}${search ? ', tool search' : ''}`, async (t) => {
      const backend = await backendOf(t)
      const configOf = (policies: readonly string[] | undefined) => ({
        aggregation: bareNames('files'),
        ...config,
        ...(search && { optimizer: {} }),
        ...(policies && { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } } }),
      })
      const isPin = way === 'pin'
      const requests = [...(search ? searchCalls : plainCalls), ...(isPin ? otherItems : [])]
      const vmcp = await startTestVmcp({ files: backend.url }, configOf(undefined))
      t.teardown(() => vmcp.close())
      const clients = await clientsOf(vmcp.url)
      for (const { name, policies, refuses } of policyRows) {
        vmcp.reload(vmcpConfig({ files: backend.url }, configOf(policies)))
        for (const [era, request] of clients) {
          for (const [method, paramsOf] of requests) {
            const label = `${name}, ${era}: ${method} ${JSON.stringify(paramsOf('NAME'))}`
            const first = await request(method, paramsOf(hidden))
            const second = await request(method, paramsOf(unknown))
            const isDecided = isWellFormed(paramsOf('x'))
            const isRefused = denial.test(second.text)
            if (isPin && !isRefused && isDecided && method !== 'completion/complete')
              t.match(first.text, denial, `${label}: denied, because it is not approved`)
            else t.equal(bytes(first, hidden), bytes(second, unknown), label)
            if (refuses && isDecided) t.ok(isRefused, `${label}: rejected`)
          }
        }
      }
      t.notOk(
        backend.requests.some(({ method, params }) => reaching.has(method) && !isPassed(method, params)),
        'no hidden item is reached',
      )
    })
  }
}

/** A single backend receives reads of URIs that no list contains, so that links in its results work. */
function isPassed(method: string, { uri }: Record<string, unknown>): boolean {
  return method === 'resources/read' && uri === `file:///${unknown}/x`
}

/** A malformed request is rejected as such, whatever it names. */
function isWellFormed({ arguments: args }: Record<string, unknown>): boolean {
  return !Array.isArray(args)
}
