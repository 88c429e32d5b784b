/**
 * Data for a team's console: three backends, two of which have problems, calls of several users, and tools of every
 * kind.
 */
import type {
  BackendView,
  CallView,
  ConfigView,
  Connect,
  Health,
  Me,
  Minute,
  Overview,
  ListPage,
  LockDifferenceDetail,
  Permission,
  PinList,
  Policies,
  Role,
  ListedSession,
  ListedTask,
  Tool,
  ToolDetail,
  ToolList,
} from '../../../runtime/console/api.ts'

/** Responses by path below `api/v1/`. */
export type FixtureData = Record<string, unknown>

const start = Date.now()

function before(minutes: number): string {
  return new Date(start - minutes * 60_000).toISOString()
}

const allPermissions: readonly Permission[] = [
  'overview',
  'tools',
  'calls.own',
  'calls.all',
  'payloads',
  'sessions.all',
  'sessions.end',
  'policies',
  'explain',
  'config',
  'recheck',
  'pins',
  'try',
]

export function meOf(roles: readonly Role[], permissions: readonly Permission[] = allPermissions): Me {
  return {
    server: 'team-tools',
    version: '0.1.0',
    user: { sub: 'u-417', name: 'Ana' },
    anonymous: false,
    roles,
    permissions,
    csrf: 'csrf-of-ana',
    freshLogin: true,
    replica: '7f3a11c0',
  }
}

export function page<T>(items: readonly T[], more: Partial<ListPage<T>> = {}): ListPage<T> {
  return { items, replica: '7f3a11c0', asOf: before(0), ...more }
}

function minutesOf(
  calls: (i: number) => number,
  health: (i: number) => Health,
  failed = (_: number) => 0,
): Minute[] {
  return Array.from({ length: 60 }, (_, i) => {
    const total = calls(i)
    return {
      at: before(59 - i),
      calls: total,
      failed: Math.min(total, failed(i)),
      denied: total > 8 && i % 9 === 0 ? 1 : 0,
      ...(total > 0 ? { p95: 180 + ((i * 37) % 90) } : {}),
      health: health(i),
    }
  })
}

function backend(name: string, health: Health, more: Partial<BackendView> = {}): BackendView {
  return {
    name,
    health,
    since: before(312),
    transport: 'streamable-http',
    authType: 'token_exchange',
    era: 'session',
    revision: '2025-11-25',
    tools: 12,
    calls: 1404,
    failed: 0,
    p50: 84,
    p95: 210,
    minutes: minutesOf(
      (i) => 6 + ((i * 7) % 11),
      () => 'healthy',
    ),
    ...more,
  }
}

const backends: readonly BackendView[] = [
  backend('github', 'healthy', { tools: 41 }),
  backend('jira', 'unauthenticated', {
    since: before(31),
    calls: 96,
    failed: 22,
    tools: 12,
    lastError: {
      category: 'authentication_failed',
      message: 'Authentication failed (HTTP 401): the refresh token has expired',
      fix: 'check outgoingAuth for jira: the backend rejects the credential',
      at: before(4),
    },
    minutes: minutesOf(
      (i) => (i < 29 ? (i * 5) % 7 : i % 2),
      (i) => (i < 29 ? 'healthy' : 'unauthenticated'),
      (i) => (i < 29 ? 0 : 1),
    ),
  }),
  backend('files', 'unhealthy', {
    since: before(12),
    transport: 'stdio',
    authType: 'unauthenticated',
    calls: 310,
    failed: 12,
    tools: 8,
    p95: 1940,
    circuit: { state: 'open', since: before(11) },
    lastError: {
      category: 'timeout',
      message: 'Health check timed out: no response in time',
      fix: 'check the load on files; raise operational.timeouts if it is slow by design',
      at: before(7),
    },
    minutes: minutesOf(
      (i) => (i < 48 ? 3 + ((i * 3) % 5) : 1),
      (i) => (i < 44 ? 'healthy' : i < 48 ? 'degraded' : 'unhealthy'),
      (i) => (i < 46 ? 0 : 1),
    ),
  }),
]

export const overview: Overview = {
  summary: '2 of 3 backends are down: 1 rejecting the credential, 1 not responding',
  down: [
    {
      category: 'authentication_failed',
      label: 'rejecting the credential',
      text: 'Authentication failed (HTTP 401): the refresh token has expired',
      fix: 'check outgoingAuth for jira: the backend rejects the credential',
      backends: ['jira'],
    },
    {
      category: 'timeout',
      label: 'not responding',
      text: 'Health check timed out: no response in time',
      fix: 'check the load on files; raise operational.timeouts if it is slow by design',
      backends: ['files'],
    },
  ],
  healthy: true,
  asOf: before(0),
  totals: { calls: 4210, denied: 31, failed: 12, p50: 96, p95: 840 },
  minutes: minutesOf(
    (i) => 30 + ((i * 13) % 41) + (i > 40 ? 25 : 0),
    (i) => (i > 47 ? 'degraded' : 'healthy'),
    (i) => (i > 44 ? 3 : 0),
  ),
  sessions: 23,
  problems: [
    {
      type: 'login',
      backend: 'jira',
      since: before(31),
      message: 'The stored login of 4 users was refused.',
      fix: 'Each of them opens Accounts, then renews jira.',
    },
    {
      type: 'health',
      backend: 'files',
      since: before(12),
      message: 'The server does not respond; its circuit is open.',
      fix: 'Look at the log of the process. "Check now" tries it again at once.',
    },
  ],
  failures: [
    {
      type: 'call_denied',
      reason: 'tools/call',
      message: 'policies denied a request',
      fix: 'a policy forbids the request: gatehouse explain and the log show which policy',
      count: 31,
      first: before(58),
      last: before(2),
    },
    {
      type: 'backend_call_failed',
      backend: 'files',
      reason: 'timeout',
      message: 'a request to a backend failed',
      fix: 'check the load on files; raise operational.failureHandling.healthCheckTimeout or operational.timeouts if it is slow by design',
      count: 12,
      first: before(16),
      last: before(4),
    },
  ],
  backends,
}

export function call(id: string, more: Partial<CallView> = {}): CallView {
  return {
    id,
    at: before(1),
    method: 'tools/call',
    name: 'github_create_issue',
    original: 'create_issue',
    backend: 'github',
    caller: { sub: 'u-417', name: 'ana', client: 'claude-code 2.1' },
    session: '9f2c41aa07be',
    era: '2025-11-25',
    ms: 412,
    outcome: 'success',
    payload: 'recorded',
    ...more,
  }
}

export const calls: readonly CallView[] = [
  call('c9', { at: before(0.2), name: 'github_search_code', original: 'search_code' }),
  call('c8', {
    at: before(0.5),
    name: 'jira_search',
    original: 'search',
    caller: { sub: 'u-88', name: 'ben', client: 'cursor 2.1' },
    ms: 2,
    outcome: 'denied',
    denied: { by: 'policy', policies: ['policies[2]'] },
    error: { code: 403, message: 'not permitted' },
    payload: 'withheld',
  }),
  call('c7', { at: before(1) }),
  call('c6', {
    at: before(1.4),
    name: 'release',
    original: 'release',
    backend: '',
    ms: 1900,
    outcome: 'failure',
    error: { message: 'the step "publish" failed' },
  }),
  call('c5', { at: before(1.5), name: 'github_create_release', ms: 640 }),
  call('c4', {
    at: before(3),
    name: 'files_read',
    original: 'read',
    backend: 'files',
    outcome: 'error',
    ms: 10_003,
    error: { code: -32603, message: 'no response within 10 s' },
    payload: 'evicted',
  }),
  call('c3', {
    at: before(4),
    caller: { sub: 'u-88', name: 'ben', client: 'cursor 2.1' },
    outcome: 'denied',
    denied: { by: 'rate_limit' },
    ms: 1,
    payload: 'none',
  }),
]

function tool(name: string, more: Partial<Tool> = {}): Tool {
  return {
    name,
    backend: name.split('_')[0] ?? '',
    original: name.split('_').slice(1).join('_'),
    summary: 'Does what its name says.',
    hints: {},
    tokens: 640,
    pin: 'pinned',
    suspicious: false,
    ...more,
  }
}

export const tools: readonly Tool[] = [
  tool('github_create_issue', {
    summary: 'Creates an issue in a repository, with labels and assignees.',
    tokens: 1120,
    hints: { openWorld: true },
  }),
  tool('github_delete_branch', {
    summary: 'Deletes a branch.',
    hints: { destructive: true, idempotent: true },
    tokens: 310,
  }),
  tool('github_search_code', { summary: 'Searches code.', hints: { readOnly: true }, pin: 'new' }),
  tool('jira_search', { summary: 'Searches issues with JQL.', hints: { readOnly: true }, pin: 'changed' }),
  tool('files_read', { summary: 'Reads a file.', hints: { readOnly: true }, tokens: 210 }),
  tool('files_write', {
    summary: 'Writes a file.',
    hidden: 'the filter of files leaves it out',
    pin: 'unpinned',
  }),
]

export const toolList: ToolList = { ...page(tools), total: 61, tokens: 18_400 }

export function detailOf(from: Tool, inputSchema: unknown, more: Partial<ToolDetail> = {}): ToolDetail {
  return {
    ...from,
    description: `${from.summary}\n\nWrites to the repository in the name of the user.`,
    inputSchema: JSON.stringify(inputSchema),
    raw: JSON.stringify({ name: from.original, inputSchema }),
    page: false,
    ...more,
  }
}

const issueSchema = {
  type: 'object',
  required: ['owner', 'title', 'assignee'],
  properties: {
    owner: { type: 'string', minLength: 1, maxLength: 39, description: 'Name of the organisation' },
    title: { type: 'string', minLength: 1 },
    body: { type: 'string', description: 'Text of the issue in Markdown' },
    priority: { enum: ['low', 'normal', 'high'], default: 'normal' },
    milestone: { type: ['integer', 'null'] },
    labels: { type: 'array', items: { type: 'string' }, maxItems: 5 },
    watchers: { type: 'array', items: { enum: ['ana', 'ben', 'cleo'] }, uniqueItems: true },
    assignee: { $ref: '#/$defs/user' },
    draft: { type: 'boolean' },
    target: {
      oneOf: [
        { title: 'branch', type: 'object', required: ['branch'], properties: { branch: { type: 'string' } } },
        { title: 'number', type: 'integer', minimum: 1 },
      ],
    },
    extra: { type: 'object', additionalProperties: true },
  },
  $defs: {
    user: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string' }, id: { type: 'integer' } },
    },
  },
}

const policies: Policies = {
  enabled: true,
  items: [
    {
      id: 'policies[0]',
      shadow: false,
      effect: 'permit',
      text: 'permit(principal, action, resource) when { principal.claims.groups.contains("engineers") };',
      decided: 4179,
    },
    {
      id: 'policies[2]',
      shadow: false,
      effect: 'forbid',
      text: 'forbid(principal, action == Action::"call_tool", resource == Tool::"jira_search")\nwhen { principal.claims.groups.contains("contractors") };',
      decided: 28,
    },
  ],
  problems: [],
}

const tasks: readonly ListedTask[] = [
  {
    hash: '0f2d7c3a9be14f5688c1d2e3f4a5b6c7',
    caller: { sub: 'u-417', name: 'Ana' },
    tool: 'github_search_code',
    backend: 'github',
    state: 'input_required',
    startedAt: before(3),
    expiresAt: before(-600),
    mine: true,
  },
]

const sessions: readonly ListedSession[] = [
  {
    hash: '9f2c41aa07be',
    caller: { sub: 'u-417', name: 'Ana' },
    client: 'claude-code 2.1',
    era: '2025-11-25',
    openedAt: before(125),
    lastUsedAt: before(1),
    streams: 1,
    mine: true,
  },
  {
    hash: '02d1c0ffee11',
    caller: { sub: 'u-88', name: 'ben' },
    client: 'cursor 2.1',
    era: '2025-11-25',
    openedAt: before(41),
    lastUsedAt: before(4),
    streams: 0,
    mine: false,
  },
]

const config: ConfigView = {
  effective:
    'name: team-tools\nbackends:\n  - name: github\n    url: https://mcp.example.com/github\n    auth:\n      type: token_exchange\n      clientSecretRef: { name: github-oauth, key: secret }\n',
  problems: [
    {
      path: 'backends[2].timeout',
      code: 'range',
      message: '"90m" is longer than the longest time-out, 15m',
      fix: 'Write 15m or less.',
    },
  ],
}

const differing = {
  backend: 'jira',
  kind: 'tool',
  name: 'search',
  state: 'changed',
  parts: ['text'],
  digest: `sha256:${'1f'.repeat(32)}`,
} as const

const pins: PinList = {
  ...page([
    differing,
    { ...differing, name: 'search_code', backend: 'github', state: 'new', renamedFrom: 'find_code' },
    { ...differing, kind: 'instructions', name: '', state: 'removed', parts: [] },
  ]),
  enabled: true,
  total: 3,
  locks: [
    {
      backend: 'github',
      lock: 'ok',
      locks: ['github'],
      closed: false,
      observed: true,
      counts: { pinned: 41, new: 1, changed: 0, removed: 0 },
    },
    {
      backend: 'jira',
      lock: 'invalid',
      locks: ['jira', 'jira-more'],
      failure: 'tools["search"]: duplicate name in the locks for this backend',
      closed: false,
      observed: false,
      counts: { pinned: 0, new: 0, changed: 1, removed: 1 },
    },
  ],
}

const pinDetail: LockDifferenceDetail = {
  ...differing,
  approvedDigest: `sha256:${'2e'.repeat(32)}`,
  diff: [{ part: 'text', diff: '-description: Searches issues.\n+description: Searches issues with JQL.' }],
  approval: {
    way: 'command',
    lock: 'jira',
    command: `kubectl patch mcptoollock jira -n team --type=json --patch-file=/dev/stdin <<'PATCH'\n[]\nPATCH`,
  },
}

export const connect: Connect = {
  url: 'https://tools.example.com/mcp',
  name: 'team-tools',
  auth: true,
  isLocalOnly: false,
  accounts: 'https://tools.example.com/oauth/accounts',
  clients: [
    {
      id: 'claude-code',
      label: 'Claude Code',
      command: 'claude mcp add --transport http team-tools https://tools.example.com/mcp',
    },
    {
      id: 'cursor',
      label: 'Cursor',
      link: 'cursor://anysphere.cursor-deeplink/mcp/install?name=team-tools&config=eyJ1cmwiOiJodHRwczovL3Rvb2xzLmV4YW1wbGUuY29tL21jcCJ9',
      file: {
        path: '~/.cursor/mcp.json',
        content: '{\n  "mcpServers": {\n    "team-tools": { "url": "https://tools.example.com/mcp" }\n  }\n}',
      },
    },
  ],
}

/** Returns a new copy, because tests change it. */
export function fixtureData(me: Me = meOf(['operator', 'auditor'])): FixtureData {
  const details = tools.map((one) => [
    `tools/${one.name}`,
    detailOf(one, one.name === 'github_create_issue' ? issueSchema : { type: 'object', properties: {} }),
  ])
  return {
    me,
    overview,
    backends: page(backends),
    tools: toolList,
    ...Object.fromEntries(details),
    calls: page(calls, { oldest: before(48) }),
    ...Object.fromEntries(calls.map((one) => [`calls/${one.id}`, one])),
    'calls/c7/payload': {
      id: 'c7',
      arguments: '{"owner":"gatehouse-dev","title":"Log says nothing","number":9007199254740993}',
      result: '{"content":[{"type":"text","text":"created"}]}',
      truncated: false,
    },
    pins,
    'pins/item': pinDetail,
    sessions: page(sessions),
    tasks: page(tasks),
    policies,
    config,
    connect,
  }
}
