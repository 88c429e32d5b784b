/**
 * Tests that a fault of one backend, or of one of its lists, does not affect the rest. With `best_effort`, the tools of
 * other backends and the intact lists of the same backend stay listed and callable, and missing items are reported.
 * With `fail`, the error names the backend and the list. Covers every oddity alone, and random pairs.
 *
 * `FC_RUNS` sets the number of pairs, for longer runs by hand; those runs also combine every oddity with every list and
 * era.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { VmcpServer } from '../../../runtime/vmcp/index.ts'
import { keepingLog } from '../../helpers/authserver/authserver.ts'
import { openSession, stateless, type WireAnswer } from '../../helpers/mcp/wire.ts'
import {
  type BackendOddity,
  listKinds,
  lists,
  type OddEra,
  type OddList,
  resourceOf,
  startOddServer,
  templateOf,
} from '../../helpers/vmcp/oddities/server.ts'
import { oddityFamilies, silentOddities } from '../../helpers/vmcp/oddities/families.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(3_600_000)

const given = process.env['FC_RUNS']
const pairs = Math.round(Number(given ?? 300) / 3)
const seed = given === undefined ? 20_261_126 : Math.floor(Math.random() * 2 ** 31)
/** Number of odd backends behind one virtual server. */
const groupSize = 8
/** Maximum number of requests that one virtual server sends to one backend, including all checks and retries. */
const maxRequests = 300
/** Longest wait before a failure is reported. Correct results are available much sooner. */
const settleMs = 20_000

const server = await startOddServer()
t.teardown(() => server.close())

interface Case {
  readonly era: OddEra
  readonly oddities: readonly BackendOddity[]
}

const eras: readonly OddEra[] = ['session', 'stateless']

function casesOf(oddity: BackendOddity, era: OddEra): readonly Case[] {
  return oddity.era === undefined || oddity.era === era ? [{ era, oddities: [oddity] }] : []
}

/** By default, each oddity is tested with one list and one era, in rotation. */
const singles: readonly Case[] = oddityFamilies.flatMap((family, i) =>
  given === undefined
    ? casesOf(family[i % family.length] as BackendOddity, family[0]?.era ?? eras[i % 2] ?? 'session')
    : family.flatMap((oddity) => eras.flatMap((era) => casesOf(oddity, era))),
)

const anyOddity = fc.constantFrom(...oddityFamilies).chain((family) => fc.constantFrom(...family))
const randomPairs: readonly Case[] = fc
  .sample(fc.tuple(anyOddity, anyOddity, fc.constantFrom(...eras)), { numRuns: pairs, seed })
  .map(([one, two, era]) => ({ era: one.era ?? two.era ?? era, oddities: [one, two] }))

/** Items of each list that may be missing: none, those after the first page, all. */
type Losses = Readonly<Record<OddList, 'none' | 'rest' | 'all'>>

function lossesOf({ oddities }: Case): Losses {
  const [one, two] = oddities
  const shared = one && two ? one.touches.filter((touched) => two.touches.includes(touched)) : []
  const isMixed = shared.includes('opening') || shared.includes('other')
  const of = (kind: OddList) => {
    const losing = oddities.filter(({ loses }) => loses.includes(kind))
    if (isMixed || shared.includes(kind)) return 'all'
    if (losing.length === 0) return 'none'
    return losing.every(({ keepsFirstPage }) => keepsFirstPage) ? 'rest' : 'all'
  }
  return {
    tools: of('tools'),
    prompts: of('prompts'),
    resources: of('resources'),
    templates: of('templates'),
  }
}

const nameOf = ({ era, oddities }: Case): string => `${era}: ${oddities.map(({ name }) => name).join(' + ')}`

type Send = (method: string, params?: Record<string, unknown>) => Promise<WireAnswer>

async function clientOf(vmcp: VmcpServer, era: OddEra): Promise<Send> {
  if (era === 'stateless') return (method, params = {}) => stateless(vmcp.url, method, params)
  const session = await openSession(vmcp.url)
  return (method, params) => session.request(method, params)
}

const members: Readonly<Record<OddList, string>> = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  templates: 'uriTemplate',
}

function itemName(kind: OddList, backend: string, which: string): string {
  if (kind === 'resources') return resourceOf(backend, which)
  return kind === 'templates' ? templateOf(backend, which) : `${backend}_${which}`
}

async function itemsOf(send: Send, kind: OddList): Promise<ReadonlySet<unknown> | string> {
  const { response, text } = await send(lists[kind].method)
  const items = response?.result?.[lists[kind].member]
  if (!Array.isArray(items)) return text
  return new Set(items.map((item: Record<string, unknown>) => item[members[kind]]))
}

interface Status {
  readonly problems: readonly string[]
  readonly backends: readonly { readonly name: string; readonly health: string }[]
  readonly recent_failures: readonly { readonly backend?: string }[]
}

/** Names the report (`/status` or the log) that does not mention a backend; undefined when both do. */
async function unreported(vmcp: VmcpServer, logged: string, name: string): Promise<string | undefined> {
  const status = (await (await fetch(`${vmcp.origin}/status`)).json()) as Status
  const word = new RegExp(`\\b${name}\\b`)
  const inStatus =
    status.problems.some((line) => word.test(line)) ||
    status.recent_failures.some(({ backend }) => backend === name)
  const inLog = logged
    .split('\n')
    .some((line) => /"level":"(?:warn|error)"/.test(line) && line.includes(`"backend":"${name}"`))
  return inStatus && inLog
    ? undefined
    : `missing items are not reported in ${inStatus ? 'the log' : '/status'}`
}

/** Waits for the first health check of every backend. */
async function checked(vmcp: VmcpServer): Promise<void> {
  while (vmcp.view.backends().some(({ health }) => health.lastCheckAt === undefined))
    await new Promise((resolve) => setTimeout(resolve, 10))
}

/** Returns the first problem of a call, or undefined when it succeeds. */
async function callProblem(send: Send, name: string): Promise<string | undefined> {
  const { response, text } = await send('tools/call', { name, arguments: {} })
  const content = response?.result?.['content'] as { text?: string }[] | undefined
  return content?.[0]?.text === 'called' ? undefined : `call of ${name}: ${text.slice(0, 300)}`
}

interface Started {
  readonly vmcp: VmcpServer
  readonly send: Send
  readonly logged: () => string
  readonly seen: ReadonlyMap<string, readonly string[]>
}

const operational = (partialFailureMode: string, slow: readonly string[]) => ({
  operational: {
    timeouts: { default: '20s', perWorkload: Object.fromEntries(slow.map((name) => [name, '2s'])) },
    failureHandling: {
      partialFailureMode,
      healthCheckInterval: '1h',
      healthCheckTimeout: '0s',
      unhealthyThreshold: 1,
    },
  },
})

/** Slow backends get a shorter timeout. */
type Pace = 'normal' | 'slow'

async function start(cases: readonly Case[], mode: string, clientEra: OddEra, pace: Pace): Promise<Started> {
  const names = cases.map((_, i) => `b${i}`)
  const made = [
    ['good', server.add('good', clientEra, [])] as const,
    ...cases.map(({ era, oddities }, i) => [`b${i}`, server.add(`b${i}`, era, oddities)] as const),
  ]
  const { log, text } = keepingLog()
  const urls = Object.fromEntries(made.map(([name, { url }]) => [name, url]))
  const vmcp = await startTestVmcp(urls, operational(mode, pace === 'slow' ? names : []), { log })
  await checked(vmcp)
  const seen = new Map(made.map(([name, backend]) => [name, backend.seen]))
  return { vmcp, send: await clientOf(vmcp, clientEra), logged: text, seen }
}

/** Lists the faults of a group of backends under `best_effort`, one line each. */
async function problemsOf(cases: readonly Case[], started: Started): Promise<readonly string[]> {
  const { send, vmcp, logged, seen } = started
  const problems: string[] = []
  const found = new Map<OddList, ReadonlySet<unknown>>()
  for (const kind of listKinds) {
    const items = await itemsOf(send, kind)
    if (typeof items === 'string') problems.push(`${kind}: ${items.slice(0, 300)}`)
    else found.set(kind, items)
  }
  const missing = (name: string, kind: OddList, which: string): boolean =>
    found.get(kind)?.has(itemName(kind, name, which)) !== true
  for (const kind of listKinds)
    for (const which of ['a', 'b'])
      if (missing('good', kind, which)) problems.push(`good has no ${kind} ${which}`)
  const call = await callProblem(send, 'good_a')
  if (call !== undefined) problems.push(call)
  for (const [i, one] of cases.entries()) {
    const name = `b${i}`
    const losses = lossesOf(one)
    const say = (problem: string) => problems.push(`${nameOf(one)}: ${problem}`)
    let isMissing = false
    for (const kind of listKinds) {
      const [a, b] = [missing(name, kind, 'a'), missing(name, kind, 'b')]
      isMissing ||= a || b
      if ((losses[kind] !== 'all' && a) || (losses[kind] === 'none' && b)) say(`items of ${kind} are missing`)
    }
    const isQuiet = one.oddities.some((oddity) => oddity.isQuiet)
    if (isMissing && !isQuiet) {
      const silence = await unreported(vmcp, logged(), name)
      if (silence !== undefined) say(silence)
    }
    const callsMayFail = one.oddities.some(
      ({ touches, loses }) => touches.includes('calls') || loses.length === 4,
    )
    const called = missing(name, 'tools', 'a') ? undefined : await callProblem(send, `${name}_a`)
    if (called !== undefined && !callsMayFail && losses.tools !== 'all') say(called)
    const requests = seen.get(name)?.length ?? 0
    if (requests > maxRequests) say(`${requests} requests`)
  }
  return problems
}

/** Repeats a check until it finds nothing, or its result no longer changes. */
async function settled(check: () => Promise<readonly string[]>): Promise<readonly string[]> {
  const endsAt = performance.now() + settleMs
  for (;;) {
    const problems = await check()
    if (problems.length === 0 || performance.now() > endsAt) return problems
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function checkGroup(
  t: Test,
  cases: readonly Case[],
  clientEra: OddEra,
  pace: Pace = 'normal',
): Promise<void> {
  const started = await start(cases, 'best_effort', clientEra, pace)
  const problems = await settled(() => problemsOf(cases, started))
  t.same(problems, [], `${cases.length} backends, client of the ${clientEra} era`)
  await started.vmcp.close({ graceMs: 0 })
}

/** Lists the faults of one odd backend under `fail`, one line each. */
async function problemsUnderFail(one: Case, { send }: Started): Promise<readonly string[]> {
  const losses = lossesOf(one)
  const isWhole = listKinds.every((kind) => losses[kind] === 'all')
  const problems: string[] = []
  const isNamed = (text: string, list?: string): boolean =>
    text.includes('"backends":["b0"]') && (list === undefined || isWhole || text.includes(list))
  for (const kind of listKinds) {
    const { method } = lists[kind]
    const items = await itemsOf(send, kind)
    if (typeof items === 'string') {
      if (losses[kind] !== 'all') problems.push(`${method} fails: ${items.slice(0, 300)}`)
      else if (!isNamed(items, method))
        problems.push(`${method}: the error does not name b0: ${items.slice(0, 300)}`)
      continue
    }
    const isQuiet = one.oddities.some((oddity) => oddity.isQuiet)
    const has = (name: string, which: string) => items.has(itemName(kind, name, which))
    if (!has('good', 'a') || !has('good', 'b')) problems.push(`${method}: items of good are missing`)
    const isComplete = has('b0', 'a') && (has('b0', 'b') || losses[kind] === 'rest')
    if (!isComplete && !isQuiet) problems.push(`${method}: items are missing without an error`)
  }
  const called = await callProblem(send, 'good_a')
  if (called !== undefined && !(isWhole && isNamed(called))) problems.push(called)
  return problems.map((problem) => `${nameOf(one)}: ${problem}`)
}

async function checkFail(t: Test, one: Case, clientEra: OddEra): Promise<void> {
  const started = await start([one], 'fail', clientEra, 'normal')
  t.same(await settled(() => problemsUnderFail(one, started)), [], nameOf(one))
  await started.vmcp.close({ graceMs: 0 })
}

function groupsOf(cases: readonly Case[]): readonly (readonly Case[])[] {
  return Array.from({ length: Math.ceil(cases.length / groupSize) }, (_, i) =>
    cases.slice(i * groupSize, (i + 1) * groupSize),
  )
}

/** Number of virtual servers that run at the same time: some wait for a silent backend. */
async function inTurns<T>(all: readonly T[], check: (one: T, i: number) => Promise<void>): Promise<void> {
  const rest = [...all.entries()]
  const worker = async (): Promise<void> => {
    for (let next = rest.shift(); next; next = rest.shift()) await check(next[1], next[0])
  }
  await Promise.all([worker(), worker(), worker(), worker()])
}

t.test(`best_effort: one oddity at a time (${singles.length})`, (t) =>
  inTurns(groupsOf(singles), (cases, i) => checkGroup(t, cases, eras[i % 2] ?? 'session')),
)

t.test(`best_effort: pairs (${pairs}, seed ${seed})`, (t) =>
  inTurns(groupsOf(randomPairs), (cases, i) => checkGroup(t, cases, eras[i % 2] ?? 'session')),
)

t.test('best_effort: lists that never arrive', async (t) => {
  const cases = silentOddities.flatMap((oddity, i) => casesOf(oddity, eras[i % 2] ?? 'session'))
  await inTurns(groupsOf(cases), (some, i) => checkGroup(t, some, eras[i % 2] ?? 'session', 'slow'))
})

t.test('fail: the error names the backend and the list', (t) =>
  inTurns(
    singles.filter((_, i) => given !== undefined || i % 6 === 0),
    (one, i) => checkFail(t, one, eras[i % 2] ?? 'session'),
  ),
)
