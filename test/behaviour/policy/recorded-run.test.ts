/**
 * Runs `gatehouse policy replay`, `test` and `explain` on the audit log of thousands of calls to a real server. For
 * every line, the reported changes must match rules that are written by hand.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { explainDecision } from '../../../runtime/policy/index.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(300_000)

/** Values of `days` around the limits of the policies, 7 and 29. Their number has no factor in common with 120. */
const dayValues = [0, 1, 2, 5, 6, 7, 8, 9, 14, 20, 27, 28, 29, 30, 31, 60, 365]
/** The period of `callOf`: every combination of user, tool, backend and `days` occurs. */
const calls = 120 * dayValues.length
const atOnce = 16

interface Person {
  readonly user: string
  readonly groups: readonly string[]
  readonly team?: string
}

interface Call extends Person {
  readonly serial: number
  readonly backend: string
  readonly original: string
  readonly days?: number
}

const people: readonly Person[] = [
  { user: 'ada', groups: ['ops'], team: 'core' },
  { user: 'ben', groups: ['contractors'], team: 'core' },
  { user: 'cleo', groups: ['ops', 'contractors'] },
  { user: 'dan', groups: [], team: 'web' },
  { user: 'eve', groups: ['contractors'] },
]
const tools = ['search', 'delete', 'report', 'create']
const backends = ['prod', 'test']

/** Returns a call by its number. The members vary independently, so every combination occurs. */
const callOf = (serial: number): Call => ({
  ...(people[serial % people.length] ?? { user: '', groups: [] }),
  serial,
  original: tools[Math.floor(serial / 5) % tools.length] ?? '',
  backend: backends[Math.floor(serial / 20) % 2] ?? '',
  ...(serial % 3 === 0 ? {} : { days: dayValues[serial % dayValues.length] ?? 0 }),
})

// Recorded policies read `serial`, which identifies the call of each log line.
const before = [
  'permit(principal in ServiceGroup::"ops", action, resource);',
  'permit(principal, action, resource) when { principal has claim_team && principal.claim_team == "core" };',
  'forbid(principal, action, resource) when { resource.original == "delete" } unless { principal in ServiceGroup::"ops" };',
  'forbid(principal, action, resource) when { context has arg_days && context.arg_days > 29 };',
  'forbid(principal, action, resource) when { context has arg_serial && context.arg_serial < 0 };',
]
const after = [
  'permit(principal in ServiceGroup::"ops", action, resource);',
  'permit(principal, action == Action::"call_tool", resource) when { principal has claim_team && principal.claim_team == "core" };',
  'permit(principal == Client::"dan", action, resource) when { resource.original == "search" };',
  'forbid(principal in ServiceGroup::"contractors", action, resource in Backend::"prod");',
  'forbid(principal, action, resource in BackendTool::"prod/delete") unless { principal == Client::"ada" };',
  'forbid(principal, action, resource) when { resource.original == "report" } unless { context has arg_days && context.arg_days <= 7 };',
  'permit(principal == Client::"nobody", action, resource);',
]

const wasAllowed = ({ groups, team, original, days = 0 }: Call): boolean => {
  if (days > 29 || (original === 'delete' && !groups.includes('ops'))) return false
  return groups.includes('ops') || team === 'core'
}
const willBeAllowed = ({ user, groups, team, backend, original, days }: Call): boolean => {
  if (groups.includes('contractors') && backend === 'prod') return false
  if (original === 'delete' && backend === 'prod' && user !== 'ada') return false
  if (original === 'report' && (days === undefined || days > 7)) return false
  return groups.includes('ops') || team === 'core' || (user === 'dan' && original === 'search')
}
const word = (allowed: boolean): string => (allowed ? 'allow' : 'deny')

interface AuditLine {
  readonly subjects: { readonly user_id: string }
  readonly target: { readonly backend: string; readonly original: string }
  readonly policy?: {
    readonly decision: string
    readonly inputs: { readonly attributes: { readonly arg_serial: number } }
  }
}

/** Makes all calls, with clients of both eras. */
async function record(logFile: string): Promise<void> {
  const issuer = await startTokenIssuer()
  const backend = await startRawBackend({
    tools: () => tools.map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
    responses: { 'tools/call': () => '{"content":[]}' },
  })
  const vmcp = await startTestVmcp(Object.fromEntries(backends.map((name) => [name, backend.url])), {
    incomingAuth: { ...issuer.incomingAuth, authz: { type: 'cedar', policies: before } },
    audit: { enabled: true, logFile, policyInputs: 'read' },
  })
  const callers = await Promise.all(
    people.map(async ({ user, groups, team }) => {
      const headers = { authorization: `Bearer ${await issuer.token(user, { groups, team })}` }
      const session = await openSession(vmcp.url, { headers })
      return (serial: number, params: Record<string, unknown>) =>
        serial % 2 === 0
          ? session.request('tools/call', params)
          : stateless(vmcp.url, 'tools/call', params, { headers })
    }),
  )
  let next = 0
  const work = async (): Promise<void> => {
    while (next < calls) {
      const serial = next++
      const { backend, original, days } = callOf(serial)
      const args = { serial, ...(days === undefined ? {} : { days }) }
      await callers[serial % people.length]?.(serial, { name: `${backend}_${original}`, arguments: args })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  await Promise.all([vmcp.close(), backend.close(), issuer.close()])
}

t.test(
  'a recorded run of thousands of calls: replay, test and explain agree with rules written by hand',
  async (t) => {
    const folder = t.testdir({})
    const logFile = join(folder, 'audit.log')
    await record(logFile)
    const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n')
    const recorded = lines.map((line) => JSON.parse(line) as AuditLine)
    const decided = recorded.flatMap(({ policy, ...rest }, index) =>
      policy ? [{ ...rest, policy, line: index + 1, call: callOf(policy.inputs.attributes.arg_serial) }] : [],
    )
    t.equal(decided.length, calls, 'every call has a line with its decision')
    const told = decided.filter(
      ({ call, subjects, target, policy }) =>
        subjects.user_id === call.user &&
        target.backend === call.backend &&
        target.original === call.original &&
        policy.decision === word(wasAllowed(call)),
    )
    t.equal(told.length, calls, 'each line contains the caller, the tool and the expected decision')

    const file = join(folder, 'after.yaml')
    writeFileSync(file, JSON.stringify({ policies: after }))
    const { code, stdout, stderr } = await runGatehouse([
      'policy',
      'replay',
      ...['--audit', logFile, '--new', file, '-o', 'json'],
    ])
    t.equal(code, 1, stderr)
    const replay = JSON.parse(stdout) as {
      flips: {
        line: number
        principal: string
        target: string
        from: string
        to: string
        policies: string[]
      }[]
    }
    const expected = decided.flatMap(({ line, call }) => {
      const [from, to] = [word(wasAllowed(call)), word(willBeAllowed(call))]
      const target = `${call.backend}_${call.original}`
      return from === to ? [] : [{ line, principal: call.user, target, from, to }]
    })
    t.same(
      replay.flips.map(({ line, principal, target, from, to }) => ({ line, principal, target, from, to })),
      expected,
      `the ${expected.length} changes, line by line`,
    )
    t.ok(
      expected.length > 500 && new Set(expected.map(({ to }) => to).values()).size === 2,
      'both kinds occur',
    )
    t.match(replay, {
      decisions: calls,
      unchanged: calls - expected.length,
      inconclusive: 0,
      skipped: lines.length - calls,
      idle: ['policies[6]'],
    })
    const same = join(folder, 'before.yaml')
    writeFileSync(same, JSON.stringify({ policies: before }))
    const unchanged = await runGatehouse(['policy', 'replay', '--audit', logFile, '--new', same])
    t.match(unchanged, {
      code: 0,
      stdout: new RegExp(`^${calls} decisions: ${calls} unchanged, 0 changed, 0 inconclusive`),
    })

    await t.test('test: one test for each recorded combination', async (t) => {
      const tests = join(folder, 'tests.json')
      const distinct = new Map(
        decided.map(({ call: { serial: _, ...call } }) => [JSON.stringify(call), call] as const),
      )
      writeFileSync(
        tests,
        JSON.stringify({
          tests: [...distinct].map(([name, call]) => ({
            name,
            expect: word(willBeAllowed(asCall(call))),
            ...asked(call),
          })),
        }),
      )
      const run = await runGatehouse(['policy', 'test', '-f', tests, '-p', file])
      t.equal(run.code, 0, run.stderr)
      t.equal(run.stdout, `no test depends on: policies[6]\n${distinct.size} passed, 0 failed\n`)
      t.ok(distinct.size > 500)
    })

    await t.test('explain: names the same policies as replay for each kind of change', async (t) => {
      const kinds = new Map(replay.flips.map((flip) => [`${flip.to} ${flip.policies.join()}`, flip]))
      t.ok(kinds.size >= 5, 'there are several')
      const set = {
        serverName: 'gatehouse',
        entitiesJson: '[]',
        groupEntityType: 'ServiceGroup',
        policies: after,
      }
      for (const [kind, { line, to, policies }] of kinds) {
        const call = decided.find((one) => one.line === line)?.call
        if (!call) return t.fail(`no line ${line}`)
        const { claims, call: about } = asked(call)
        const { tool, backend, original } = about
        const question = { action: 'call_tool', id: tool, origin: { backend, original } } as const
        const explained = await explainDecision(set, { ...question, claims, arguments: about.arguments })
        t.equal(explained.decision === 'permitted', to === 'allow', kind)
        t.same(explained.determining, policies, kind)
      }
      const [, { line, to, policies } = { line: 0, to: '', policies: [] }] = [...kinds].at(-1) ?? []
      const last = decided.find((one) => one.line === line)?.call
      if (!last) return t.fail(`no line ${line}`)
      const { claims, call } = asked(last)
      const command = await runGatehouse([
        ...['policy', 'explain', '-p', file, '-o', 'json', '--claims', JSON.stringify(claims)],
        ...['--tool', call.tool, '--backend', call.backend, '--original', call.original],
        ...['--args', JSON.stringify(call.arguments)],
      ])
      t.equal(command.code, to === 'allow' ? 0 : 1)
      t.same(
        (JSON.parse(command.stdout) as { determining: string[] }).determining,
        policies,
        'the command too',
      )
    })
  },
)

function asCall(call: Omit<Call, 'serial'>): Call {
  return { ...call, serial: 0 }
}

/** Converts a call to the format of policy tests. */
function asked({ user, groups, team, backend, original, days }: Omit<Call, 'serial'>) {
  return {
    claims: { sub: user, groups, ...(team === undefined ? {} : { team }) },
    call: {
      tool: `${backend}_${original}`,
      backend,
      original,
      arguments: days === undefined ? {} : { days },
    },
  }
}
