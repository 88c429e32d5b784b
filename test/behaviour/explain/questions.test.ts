/**
 * Twenty questions of on-call operators, each with the same answer for a file and for a running server: why a tool is
 * not listed, why a call was denied, where a call is sent.
 */
import t, { type Test } from 'tap'
import { explainLive } from '../../../runtime/tools/explain/live.ts'
import { explain, type ExplainQuestion, type Explanation } from '../../../runtime/tools/explain/index.ts'
import { type BackendStateInput, snapshotOffline } from '../../../runtime/vmcp/index.ts'
import { startTestConsole } from '../../helpers/console/console.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const tools: Readonly<Record<string, readonly string[]>> = {
  github: ['search', 'delete', 'create_issue', 'internal'],
  jira: ['search', 'close'],
  files: ['read'],
}
const policies = [
  'permit(principal in ServiceGroup::"ops", action, resource in Backend::"github");',
  'permit(principal, action, resource in BackendTool::"jira/search") when { principal has claim_team && principal.claim_team == "web" };',
  'forbid(principal, action, resource in BackendTool::"github/delete") unless { principal == Client::"root" };',
  'permit(principal, action, resource in BackendTool::"jira/close") when { context.arg_days < 8 };',
  'permit(principal == Client::"root", action, resource);',
]
const incomingAuth = { type: 'anonymous', authz: { type: 'cedar', policies } }
const byPrefix = {
  incomingAuth,
  aggregation: {
    conflictResolution: 'prefix',
    conflictResolutionConfig: { prefixFormat: '{workload}_' },
    tools: [
      {
        workload: 'github',
        filter: ['search', 'delete', 'new_issue'],
        overrides: { create_issue: { name: 'new_issue' } },
      },
      { workload: 'files', excludeAll: true },
    ],
  },
  codeMode: { enabled: true },
}
const byPriority = {
  aggregation: {
    conflictResolution: 'priority',
    conflictResolutionConfig: { priorityOrder: ['jira', 'github'] },
  },
}
const byHand = {
  aggregation: { conflictResolution: 'manual', tools: [{ workload: 'files', excludeAll: true }] },
}
const withSearch = { ...byPriority, optimizer: {} }

const ops = { sub: 'ada', groups: ['ops'] }
const ben = { sub: 'ben', team: 'web' }
const root = { sub: 'root' }

type Row = readonly [string, Partial<ExplainQuestion>, Explanation['decision'], string, RegExp]

/** Question, subject, decision, deciding stage, and its text. */
const prefixRows: readonly Row[] = [
  [
    'may operators search?',
    { name: 'github_search', claims: ops },
    'allow',
    'policy',
    /permitted by policies\[0\]/,
  ],
  [
    'where does a renamed tool lead?',
    { name: 'github_new_issue', claims: ops },
    'allow',
    'name',
    /is create_issue of backend github/,
  ],
  [
    'why is a deletion denied?',
    { name: 'github_delete', claims: ops },
    'deny',
    'policy',
    /forbidden by policies\[2\]/,
  ],
  [
    'who may delete?',
    { name: 'github_delete', claims: root },
    'allow',
    'policy',
    /permitted by policies\[4\]/,
  ],
  [
    'why is nobody let in without a group?',
    { name: 'github_search', claims: { sub: 'cleo' } },
    'deny',
    'policy',
    /no policy permits it.*misses: principal in ServiceGroup::"ops"/s,
  ],
  [
    'what does the team of ben allow?',
    { name: 'jira_search', claims: ben },
    'allow',
    'policy',
    /permitted by policies\[1\]/,
  ],
  [
    'which claim is missing?',
    { name: 'jira_search', claims: { sub: 'cleo' } },
    'deny',
    'policy',
    /has no claim_team/,
  ],
  [
    'which claim is wrong?',
    { name: 'jira_search', claims: { sub: 'cleo', team: 'db' } },
    'deny',
    'policy',
    /policies\[1\] misses: when \{ principal.claim_team == "web" \}/,
  ],
  [
    'are these arguments allowed?',
    { name: 'jira_close', claims: ben, arguments: { days: 3 } },
    'allow',
    'policy',
    /permitted by policies\[3\]/,
  ],
  [
    'why is it callable and not listed?',
    { name: 'jira_close', claims: ben, arguments: { days: 3 } },
    'allow',
    'policy',
    /it is not listed: lists are filtered without arguments/,
  ],
  [
    'which argument is refused?',
    { name: 'jira_close', claims: ben, arguments: { days: 9 } },
    'deny',
    'policy',
    /context.arg_days < 8/,
  ],
  [
    'why is a filtered tool not listed?',
    { name: 'github_internal', claims: ops },
    'deny',
    'filter',
    /the filter for github does not include internal/,
  ],
  [
    'why is a whole backend not listed?',
    { name: 'files_read', claims: root },
    'deny',
    'filter',
    /excludeAll is set for files/,
  ],
  [
    'what was the bare name meant to be?',
    { name: 'search', claims: ops },
    'not_found',
    'name',
    /search of backend github is available as github_search/,
  ],
  [
    'what was the old name meant to be?',
    { name: 'github_create_issue', claims: ops },
    'not_found',
    'name',
    /create_issue of backend github is available as github_new_issue/,
  ],
  [
    'why does a tool of a backend that is down not exist?',
    { name: 'down_ping', claims: root },
    'not_found',
    'backend',
    /the items on backend down are unknown/,
  ],
  [
    'may the script tool be called?',
    { name: 'execute_tool_script', claims: ben },
    'allow',
    'policy',
    /the server’s own tools are allowed/,
  ],
]
const priorityRows: readonly Row[] = [
  [
    'who wins a name?',
    { name: 'search', claims: {} },
    'allow',
    'conflict',
    /github is left out: jira has priority/,
  ],
  [
    'what if there are no policies?',
    { name: 'close', claims: {} },
    'allow',
    'policy',
    /all callers are allowed/,
  ],
]
const handRows: readonly Row[] = [
  [
    'why is a shared name offered by nobody?',
    { name: 'search', claims: {} },
    'not_found',
    'conflict',
    /is not offered, because several backends use this name \(github, jira\)/,
  ],
]
const searchRows: readonly Row[] = [
  [
    'why is a tool not listed behind the search?',
    { name: 'close', claims: {} },
    'allow',
    'filter',
    /clients find it with find_tool/,
  ],
]

async function check(
  t: Test,
  rows: readonly Row[],
  ask: (question: ExplainQuestion) => Promise<Explanation>,
) {
  for (const [name, about, decision, stage, words] of rows) {
    const explained = await ask({ action: 'call_tool', name: '', claims: {}, ...about })
    t.equal(explained.decision, decision, name)
    const said = explained.steps
      .filter((step) => step.stage === stage)
      .map(({ message, details = [] }) => [message, ...details].join('\n'))
      .join('\n')
    t.match(said, words, `${name} ${JSON.stringify(explained.steps)}`)
    const stop = explained.steps.find(({ verdict }) => verdict === 'stop')
    if (decision === 'deny') t.equal(stop?.stage, stage, `${name}: the first stop`)
    if (decision === 'allow') t.equal(stop, undefined, name)
  }
}

const sets = [
  ['prefix', byPrefix, prefixRows],
  ['priority', byPriority, priorityRows],
  ['manual', byHand, handRows],
  ['tool search', withSearch, searchRows],
] as const

t.equal(new Set(sets.flatMap(([, , rows]) => rows.map(([name]) => name))).size, 21, 'the table')

for (const [name, more, rows] of sets) {
  t.test(`${name}: offline and live`, async (t) => {
    const started = await Promise.all(
      Object.entries(tools).map(async ([backend, names]) => {
        const raw = await startRawBackend({
          tools: () => names.map((tool) => JSON.stringify({ name: tool, inputSchema: { type: 'object' } })),
        })
        t.teardown(() => raw.close())
        return [backend, raw.url] as const
      }),
    )
    const urls = {
      ...Object.fromEntries(started),
      ...(name === 'prefix' ? { down: 'http://127.0.0.1:9/mcp' } : {}),
    }
    const given = Object.fromEntries(
      Object.entries(tools).map(([backend, names]): [string, BackendStateInput] => [
        backend,
        {
          health: 'healthy',
          tools: names.map((tool) => JSON.stringify({ name: tool, inputSchema: { type: 'object' } })),
        },
      ]),
    )
    const offline = snapshotOffline(vmcpConfig(urls, more), given)
    await check(t, rows, (question) => explain(offline, question))
    const console = await startTestConsole(urls, more)
    t.teardown(() => console.close())
    await check(t, rows, (question) => explainLive(console.url, console.token, question))
  })
}

t.test(
  'the state of backends: the first failed check is the reason, and later failed checks are shown',
  async (t) => {
    const config = vmcpConfig({ github: 'http://127.0.0.1:9/mcp' }, { incomingAuth })
    const tool = [JSON.stringify({ name: 'search', inputSchema: { type: 'object' } })]
    const ask = (state: BackendStateInput, claims: Readonly<Record<string, unknown>> = ops) =>
      explain(snapshotOffline(config, { github: { tools: tool, ...state } }), {
        action: 'call_tool',
        name: 'github_search',
        claims,
      })
    const stops = async (...args: Parameters<typeof ask>) =>
      (await ask(...args)).steps.filter(({ verdict }) => verdict === 'stop').map(({ stage }) => stage)
    t.same(await stops({ health: 'healthy' }), [])
    t.same(await stops({ health: 'unhealthy', error: 'timeout' }), ['backend'])
    t.same(await stops({ health: 'healthy', circuit: 'open' }), ['backend'])
    t.same(await stops({ health: 'unauthenticated' }), ['credential'])
    t.same(await stops({ health: 'unhealthy' }, ben), ['policy', 'backend'], 'the policy is the reason')

    const stopOf = async (state: BackendStateInput) =>
      (await ask(state)).steps.find(({ verdict }) => verdict === 'stop')
    t.match(await stopOf({ health: 'unhealthy', error: 'wrong_path' }), {
      message: 'backend github is unhealthy: No MCP server at the URL path',
      details: [/^next step: check the path in the url of github/],
    })
    t.match(await stopOf({ health: 'unauthenticated', error: 'authentication_failed' }), {
      message: /^backend github rejected a request without a credential: Authentication failed$/,
      details: [/^next step: check outgoingAuth for github/],
    })
    t.match(await stopOf({ health: 'unauthenticated', error: 'sign_in_required' }), {
      message: 'backend github requires a sign-in',
      details: [/^next step: sign in to github/],
    })
  },
)

t.test('live: requires the token, and works only on this machine', async (t) => {
  const console = await startTestConsole({}, { incomingAuth })
  t.teardown(() => console.close())
  const question: ExplainQuestion = { action: 'call_tool', name: 'x', claims: {} }
  await t.rejects(explainLive(console.url, 'wrong', question), {
    code: 'INVALID_CONFIG',
    message: /rejected the token/,
  })
  const open = await console.api('policies/explain', {
    method: 'POST',
    body: question,
    headers: { 'x-gatehouse-launch': '' },
  })
  t.equal(open.status, 401)
  t.equal(
    (await console.api('policies/explain', { method: 'POST', body: { ...question, action: 'x' } })).status,
    400,
  )
  t.equal(
    (await console.api('policies/explain', { method: 'POST', body: { ...question, arguments: '[' } })).status,
    400,
  )
  await t.rejects(explainLive('http://gatehouse.example/', console.token, question), {
    message: /loopback address/,
  })
})
