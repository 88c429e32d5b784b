/**
 * Measures decisions per second, evaluated and cached, for a list of 300 tools; the cost of a plain call of the engine
 * with all inputs in the same run; and a replay of 10,000 lines of an audit log. One core. Read the ratios, not the
 * digits. `node test/bench/policy.ts`
 */
import { createRequire } from 'node:module'
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs'
import { makeCaller } from '../../runtime/net/index.ts'
import { makeAuthorizer, makeGate, replayDecisions } from '../../runtime/policy/index.ts'
import type { Authorizer } from '../../runtime/policy/authorizer.ts'
import { cpuUsage } from '../helpers/thread-time.ts'
import { reached } from './aims.ts'

const TOOLS = 300
const GROUPS = 100
const LINES = 10_000
const tools = Array.from({ length: TOOLS }, (_, at) => `tool_${at}`)

export interface PolicyBenchRow {
  readonly name: string
  readonly perSecond: number
  readonly microseconds: number
}

/** A chain of groups, as an operator would write it. */
const entities = Array.from({ length: GROUPS }, (_, at) => ({
  uid: { type: 'ServiceGroup', id: `group_${at}` },
  attrs: {},
  parents: at < 10 ? [{ type: 'ServiceGroup', id: `group_${at + 10}` }] : [],
}))

/** Claims of the size of real tokens; `serial` makes them another caller's. */
const claimsOf = (serial: number): Readonly<Record<string, unknown>> => ({
  iss: 'https://idp.example',
  sub: `user-${serial}`,
  aud: ['gatehouse', 'other'],
  exp: 1_900_000_000,
  iat: 1_800_000_000,
  jti: `token-${serial}`,
  email: 'someone@example.com',
  name: 'Some One',
  groups: ['group_1', 'group_2', 'group_3'],
  department: 'research',
  address: { country: 'GB', locality: 'London' },
})

function policiesOf(count: number): string[] {
  return Array.from({ length: count }, (_, at) =>
    at % 2 === 0
      ? `permit(principal in ServiceGroup::"group_${at % GROUPS}", action == Action::"call_tool", resource == Tool::"tool_${at}");`
      : `permit(principal, action == Action::"call_tool", resource) when { principal.claim_department == "d${at}" };`,
  )
}

/** Prints the table. */
export async function run(): Promise<void> {
  for (const count of [4, 50, 200]) {
    console.log(`\n${count} policies, ${GROUPS} configured entities, ${TOOLS} tools`)
    for (const { name, perSecond, microseconds } of await measure(count)) {
      console.log(
        `  ${name.padEnd(34)} ${Math.round(perSecond).toLocaleString('en').padStart(10)} /s ${microseconds.toFixed(1).padStart(9)} µs each`,
      )
    }
  }
  const seconds = await replaySeconds(50)
  reached('replay', seconds)
  console.log(`\n${LINES} lines of an audit log under 50 other policies: ${seconds.toFixed(1)} s of CPU`)
}

/** Returns the CPU seconds of a replay of lines with different requests, so that no decision is cached. */
async function replaySeconds(policyCount: number): Promise<number> {
  const set = {
    serverName: 'front',
    entitiesJson: JSON.stringify(entities),
    groupEntityType: 'ServiceGroup',
    policies: policiesOf(policyCount),
  }
  const lines = Array.from({ length: LINES }, (_, at) => lineOf(at))
  const before = cpuUsage()
  const { decisions, inconclusive } = await replayDecisions(set, lines)
  if (decisions !== LINES || inconclusive > 0) throw new Error('the replay compared not all lines')
  return (cpuUsage() - before) / 1e6
}

function lineOf(at: number): string {
  const [tool, department] = [`tool_${at % 293}`, `d${at % 47}`]
  const inputs = {
    mode: 'read',
    groups: [`group_${at % 97}`],
    attributes: { claim_department: department },
  }
  return JSON.stringify({
    type: 'mcp_tool_call',
    subjects: { user_id: `user-${at % 500}` },
    target: { method: 'tools/call', name: tool, type: 'tool', backend: 'b', original: tool },
    policy: { decision: at % 2 === 0 ? 'allow' : 'deny', reason: [], errors: [], inputs },
  })
}

/** Returns the rows for one number of policies. */
export async function measure(policyCount: number): Promise<readonly PolicyBenchRow[]> {
  const policies = policiesOf(policyCount)
  const authorizer = makeAuthorizer(
    { policies, entitiesJson: JSON.stringify(entities), groupEntityType: 'ServiceGroup' },
    { serverName: 'front' },
  )
  await decideAll(authorizer, 0)
  let serial = 1
  const again = await timed(TOOLS, () => decideAll(authorizer, serial++))
  const remembered = await timed(TOOLS, () => decideAll(authorizer, 0))
  const page = Buffer.from(
    JSON.stringify({ tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) }),
  )
  const gate = makeGate(authorizer, { unknownMethods: 'pass' })
  const filter = (of: number, list: Buffer) =>
    gate.filter(makeCaller({ issuer: 'i', subject: `user-${of}`, claims: claimsOf(of) }), 'tools/list', list)
  await filter(0, page)
  const lists = await timed(1, () => filter(0, page))
  const otherPages = await timed(1, () => filter(0, Buffer.from(page)))
  const plain = plainEngine(policies)
  return [
    row('engine told everything', await timed(50, plain)),
    row('decision, asked again', again),
    row('decision, remembered', remembered),
    row('list of 300, page seen before', lists),
    row('list of 300, page taken apart again', otherPages),
  ]
}

function row(name: string, microseconds: number): PolicyBenchRow {
  return { name, microseconds, perSecond: 1e6 / microseconds }
}

async function decideAll(authorizer: Authorizer, serial: number): Promise<void> {
  const caller = makeCaller({ issuer: 'i', subject: `user-${serial}`, claims: claimsOf(serial) })
  const subject = await authorizer.subject(caller)
  for (const id of tools) authorizer.decide(subject, { action: 'call_tool', id })
}

/** Uses the engine as its interface suggests: policies parsed once, all entities and all claims in each call. */
function plainEngine(policies: readonly string[]): () => void {
  const engine = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as typeof Cedar
  engine.preparsePolicySet('bench', {
    staticPolicies: Object.fromEntries(policies.map((text, at) => [String(at), text])),
  })
  const principal = { type: 'Client', id: 'user-0' }
  const claims = Object.fromEntries(
    Object.entries(claimsOf(0)).map(([name, value]) => [`claim_${name}`, value]),
  ) as Cedar.Context
  const parents = ['group_1', 'group_2', 'group_3'].map((id) => ({ type: 'ServiceGroup', id }))
  return () => {
    for (let at = 0; at < 50; at++) {
      const resource = { type: 'Tool', id: tools[at] ?? '' }
      engine.statefulIsAuthorized({
        principal,
        action: { type: 'Action', id: 'call_tool' },
        resource,
        context: claims,
        preparsedPolicySetId: 'bench',
        entities: [
          ...entities,
          { uid: principal, attrs: claims, parents },
          { uid: resource, attrs: { name: resource.id }, parents: [{ type: 'MCP', id: 'front' }] },
        ],
      })
    }
  }
}

/** Returns the microseconds for each of the `units` in one run of `work`: the median of ten runs after a warm-up. */
async function timed(units: number, work: () => Promise<unknown> | void): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < 13; i++) {
    const startedAt = performance.now()
    await work()
    times.push(((performance.now() - startedAt) * 1000) / units)
  }
  return times.slice(3).sort((a, b) => a - b)[5] ?? 0
}

if (import.meta.main) await run()
