/**
 * Measures the CPU time of a call in the built programs: the paths through both eras against the floor, and the cost of
 * each feature.
 *
 * The floor is a program with `node:http` and an undici pool that only forwards. Servers take turns in short slices, and
 * a figure is the median of the slices, so that ratios hold on a busy machine. BENCH_OTHER_DIST names the `dist` folder
 * of another build, whose servers then take turns with ours; `git worktree add` and `node manifests/bundle/main.ts` make
 * one.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { missingRedis, startRedis } from '../helpers/redis.ts'
import { type Parts, runParts } from './common/parts.ts'
import { type Measured, measureCalls, type Way } from './cost/compare.ts'
import { folder, startFloor, startProxy, startVmcp, stopServers } from './cost/servers.ts'
import { startTokens } from './cost/tokens.ts'
import { pinSelf, startBackends, stopAll } from './vmcp/rig.ts'
import { type Cell, table } from './vmcp/table.ts'

export const parts: Parts = { paths, features, tokens }

export function run(wanted: readonly string[] = []): Promise<boolean> {
  pinSelf()
  return runParts('cost', parts, {
    wanted,
    limitMs: 10 * 60_000,
    cleanUp: () => Promise.all([stopServers(), stopAll()]),
  })
}

/** Measures the proxy and the virtual server in both eras against the floor. */
async function paths(): Promise<string> {
  const session = await startBackends({ era: 'session' })
  const stateless = await startBackends({ era: 'stateless' })
  const vmcp = (client: 'session' | 'stateless', backend: 'session' | 'stateless'): Way => ({
    name: `vMCP, ${client} client, ${backend} backend`,
    era: client,
    tool: 'b0_echo',
    start: (build) => startVmcp(build, (backend === 'session' ? session : stateless).url),
  })
  const measured = await measureCalls([
    { name: 'floor', era: 'session', tool: 'echo', start: () => startFloor(session.url) },
    { name: 'proxy', era: 'session', tool: 'echo', start: (build) => startProxy(build, session.url) },
    vmcp('session', 'session'),
    vmcp('stateless', 'stateless'),
    vmcp('stateless', 'session'),
    vmcp('session', 'stateless'),
  ])
  return tableOf(measured, 'of the floor')
}

/** Fifty policies, most of which do not apply to the called tool. */
export function fiftyPolicies(): readonly string[] {
  return [
    'permit(principal, action == Action::"call_tool", resource == Tool::"b0_echo");',
    'permit(principal, action, resource) when { principal has claim_role && principal.claim_role == "admin" };',
    ...Array.from({ length: 48 }, (_, i) =>
      i % 2 === 1
        ? `forbid(principal, action == Action::"call_tool", resource == Tool::"b0_forbidden_${i}");`
        : `permit(principal, action == Action::"call_tool", resource == Tool::"b0_tool_${i}") when { principal has claim_groups && principal.claim_groups.contains("group_${i}") };`,
    ),
  ]
}

/** Measures what each feature adds to a call of the virtual server. */
async function features(): Promise<string> {
  const backend = await startBackends({ era: 'session' })
  const redis = missingRedis ? undefined : await startRedis()
  const policies = {
    incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: fiftyPolicies() } },
  }
  const audit = () => ({
    audit: { enabled: true, component: 'bench', logFile: join(folder, `audit-${randomUUID()}.log`) },
  })
  const sessions = () => ({
    sessionStorage: { provider: 'redis', address: redis?.addr, db: 0, keyPrefix: `${randomUUID()}:` },
  })
  const limit = { rateLimiting: { shared: { maxTokens: 100_000_000, refillPeriod: '1s' } } }
  const way = (name: string, more: () => Readonly<Record<string, unknown>>): Way => ({
    name,
    era: 'session',
    tool: 'b0_echo',
    start: (build) => startVmcp(build, backend.url, more()),
  })
  try {
    const measured = await measureCalls([
      way('vMCP', () => ({})),
      way('50 policies', () => policies),
      way('audit to a file', audit),
      ...(redis
        ? [
            way('Redis sessions', sessions),
            way('Redis sessions, shared rate limit', () => ({ ...sessions(), ...limit })),
            way('all', () => ({ ...policies, ...audit(), ...sessions(), ...limit })),
          ]
        : []),
    ])
    return `${tableOf(measured, 'of a call without features')}${redis ? '' : `\n\n${missingRedis}`}`
  } finally {
    await redis?.stop()
  }
}

/** Measures what a JSON Web Token adds to a call of the proxy. */
async function tokens(): Promise<string> {
  const backend = await startBackends({ era: 'session' })
  const issuer = await startTokens()
  const way = { era: 'session', tool: 'echo' } as const
  try {
    const measured = await measureCalls([
      { ...way, name: 'proxy', start: (build) => startProxy(build, backend.url) },
      {
        ...way,
        name: 'one known RS256 token',
        headers: { authorization: `Bearer ${issuer.token()}` },
        start: (build) => startProxy(build, backend.url, issuer.flags),
      },
    ])
    return tableOf(measured, 'of a call without a token')
  } finally {
    issuer.close()
  }
}

/** The first row is the base of the ratios. */
function tableOf(measured: readonly Measured[], base: string): string {
  const first = measured[0]
  const hasOther = first?.otherMicros !== undefined
  const rows = measured.map(({ name, micros, otherMicros }): Cell[] => [
    name,
    micros,
    micros / (first?.micros ?? Number.NaN),
    ...(otherMicros === undefined
      ? []
      : [otherMicros, otherMicros / (first?.otherMicros ?? Number.NaN), micros / otherMicros]),
  ])
  const other = hasOther ? ['other build, CPU µs', `other build, × ${base}`, '× the other build'] : []
  return table(['tools/call', 'CPU µs', `× ${base}`, ...other], rows)
}

if (import.meta.main) process.exit((await run(process.argv.slice(2))) ? 0 : 1)
