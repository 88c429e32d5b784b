/** The calls whose CPU time is compared: the paths through both eras, the features of the virtual server, and a token. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { RedisProcess } from '../../helpers/redis.ts'
import type { Era } from '../vmcp/client.ts'
import type { Way } from './compare.ts'
import { folder, startFloor, startProxy, startVmcp } from './servers.ts'
import type { Tokens } from './tokens.ts'

type Fields = Readonly<Record<string, unknown>>

const calls = { era: 'session', tool: 'echo' } as const

export function floorWay(backend: string): Way {
  return { ...calls, name: 'floor', start: () => startFloor(backend) }
}

export function proxyWay(backend: string, name = 'proxy'): Way {
  return { ...calls, name, start: (build) => startProxy(build, backend) }
}

/** The proxy behind an issuer, with a token that it has already checked. */
export function tokenWay(backend: string, issuer: Tokens): Way {
  return {
    ...calls,
    name: 'proxy, one known RS256 token',
    headers: { authorization: `Bearer ${issuer.token()}` },
    start: (build) => startProxy(build, backend, { flags: issuer.flags }),
  }
}

/** The virtual server; `more` returns fields of its configuration. */
export function vmcpWay(
  backend: string,
  name = 'vMCP',
  era: Era = 'session',
  more = (): Fields => ({}),
): Way {
  return { name, era, tool: 'b0_echo', start: (build) => startVmcp(build, backend, more()) }
}

/** Features of the virtual server, one way for each. */
export function featureWays(backend: string, redis: RedisProcess | undefined): readonly Way[] {
  const policies = {
    incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: fiftyPolicies() } },
  }
  const audit = (): Fields => ({
    audit: { enabled: true, component: 'bench', logFile: join(folder, `audit-${randomUUID()}.log`) },
  })
  const sessions = (): Fields => ({
    sessionStorage: { provider: 'redis', address: redis?.addr, db: 0, keyPrefix: `${randomUUID()}:` },
  })
  const limit = { rateLimiting: { shared: { maxTokens: 100_000_000, refillPeriod: '1s' } } }
  const way = (name: string, more: () => Fields): Way => vmcpWay(backend, name, 'session', more)
  return [
    way('50 policies', () => policies),
    way('audit to a file', audit),
    ...(redis
      ? [
          way('Redis sessions', sessions),
          way('Redis sessions, shared rate limit', () => ({ ...sessions(), ...limit })),
          way('all', () => ({ ...policies, ...audit(), ...sessions(), ...limit })),
        ]
      : []),
  ]
}

/** Fifty policies, most of which do not apply to the called tool. */
function fiftyPolicies(): readonly string[] {
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
