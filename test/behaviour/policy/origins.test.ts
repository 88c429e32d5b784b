/**
 * Policies about origins: whatever name a client uses for a tool, a permit only covers its backend and original name,
 * and the reason of a denial is visible to operators only.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless, type WireAnswer } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const toolNames = ['search', 'delete', 'b_search', 'a_search']

/** Each tool returns its own name and the name of the call. */
async function startBackend(t: Test, name: string, tools = toolNames) {
  const backend = await startRawBackend({
    tools: () => tools.map((tool) => JSON.stringify({ name: tool, inputSchema: { type: 'object' } })),
    responses: { 'tools/call': ({ params }) => textResult(`${name}/${String(params['name'])}`) },
  })
  t.teardown(() => backend.close())
  return backend.url
}

const strategies: Readonly<Record<string, unknown>> = {
  prefix: {
    conflictResolution: 'prefix',
    conflictResolutionConfig: { prefixFormat: '{workload}_' },
  },
  'prefix without a separator': {
    conflictResolution: 'prefix',
    conflictResolutionConfig: { prefixFormat: '{workload}' },
  },
  priority: bareNames('a', 'b'),
  'priority of the other': bareNames('b', 'a'),
  'priority without the backends': bareNames('c'),
  manual: {
    conflictResolution: 'manual',
    tools: [
      { workload: 'a', overrides: { search: { name: 'find' }, delete: { name: 'erase' } } },
      { workload: 'b', overrides: { delete: { name: 'a_find' } } },
    ],
  },
  'manual, with the names exchanged': {
    conflictResolution: 'manual',
    tools: [
      { workload: 'a', overrides: { search: { name: 'delete2' }, delete: { name: 'search' } } },
      { workload: 'b', overrides: { search: { name: 'a_search2' }, delete: { name: 'search3' } } },
    ],
  },
  'overrides under a prefix': {
    conflictResolution: 'prefix',
    conflictResolutionConfig: { prefixFormat: '{workload}_' },
    tools: [{ workload: 'b', overrides: { delete: { name: 'search' }, search: { name: 'delete' } } }],
  },
}

const textOf = ({ response, text }: WireAnswer): string =>
  (response?.result?.['content'] as { text: string }[] | undefined)?.[0]?.text ?? text

async function startWith(t: Test, aggregation: unknown, policies: readonly string[], more = {}) {
  const [a, b] = await Promise.all([startBackend(t, 'a'), startBackend(t, 'b')])
  const vmcp = await startTestVmcp(
    { a, b },
    { aggregation, incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } }, ...more },
  )
  t.teardown(() => vmcp.close())
  return vmcp
}

const namesIn = ({ response }: WireAnswer): string[] =>
  ((response?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)

for (const [strategy, aggregation] of Object.entries(strategies)) {
  t.test(`${strategy}: a permit for one tool of one backend covers nothing else`, async (t) => {
    const all = await startWith(t, aggregation, ['permit(principal, action, resource);'])
    const everything = namesIn(await stateless(all.url, 'tools/list'))
    const reached = new Map<string, string>()
    for (const name of everything) reached.set(name, textOf(await stateless(all.url, 'tools/call', { name })))
    const forms = [
      'permit(principal, action, resource in BackendTool::"a/search");',
      'permit(principal, action, resource) when { resource has backend && resource.backend == "a" && resource.original == "search" };',
    ]
    for (const policy of forms) {
      const { url } = await startWith(t, aggregation, [policy])
      const expected = everything.filter((name) => reached.get(name) === 'a/search')
      t.same(namesIn(await stateless(url, 'tools/list')), expected, 'the list')
      const session = await openSession(url)
      t.same(namesIn(await session.request('tools/list')), expected, 'the list of a session')
      for (const name of everything) {
        const answer = textOf(await stateless(url, 'tools/call', { name }))
        if (expected.includes(name)) t.equal(answer, 'a/search')
        else t.match(answer, 'call denied by authorization policy', name)
      }
    }
    const { url } = await startWith(t, aggregation, [
      'permit(principal, action, resource);',
      'forbid(principal, action, resource in Backend::"b");',
    ])
    const ofA = everything.filter((name) => reached.get(name)?.startsWith('a/'))
    t.same(namesIn(await stateless(url, 'tools/list')), ofA, 'a forbid of a whole backend')
  })
}

t.test(
  'a denial lists policies and missing attributes in the audit log, and not in the response',
  async (t) => {
    const logFile = join(t.testdir({}), 'audit.log')
    const vmcp = await startWith(
      t,
      strategies['prefix'],
      [
        'permit(principal, action, resource in BackendTool::"a/search");',
        'forbid(principal, action, resource in BackendTool::"b/delete");',
        'permit(principal, action, resource in Backend::"b") when { principal.claim_team == "x" };',
      ],
      { audit: { enabled: true, logFile } },
    )
    const answers = []
    for (const name of ['a_search', 'b_delete', 'b_search', 'a_delete'])
      answers.push(await stateless(vmcp.url, 'tools/call', { name }))
    await vmcp.close()
    for (const { text } of answers.slice(1)) t.notMatch(text, /policies\[|claim_team/)
    const lines = readFileSync(logFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { policy?: Record<string, unknown>; target: unknown })
      .filter(({ policy }) => policy)
    t.match(
      lines,
      [
        {
          policy: { decision: 'allow', reason: ['policies[0]'], errors: [] },
          target: { backend: 'a', original: 'search' },
        },
        {
          policy: {
            decision: 'deny',
            reason: ['policies[1]'],
            errors: ['policies[2]'],
            missing: ['claim_team'],
          },
          target: { backend: 'b', original: 'delete' },
        },
        { policy: { decision: 'deny', reason: [], errors: ['policies[2]'], missing: ['claim_team'] } },
        {
          policy: { decision: 'deny', reason: [], errors: [], missing: [] },
          target: { backend: 'a', original: 'delete' },
        },
      ].map(({ policy: { missing, ...policy }, ...rest }: { policy: Record<string, unknown> }) => ({
        ...rest,
        policy: {
          ...policy,
          setDigest: /^[0-9a-f]{16}$/,
          ...(Array.isArray(missing) && missing.length > 0 ? { missing } : {}),
        },
      })),
    )
    t.equal(lines.length, 4)
  },
)
