/**
 * Checks a running Gatehouse server through the paths that require no login: whether it is running and ready, and the
 * state of its backends.
 */
import { isFields, jsonFields, listOf } from '../../../../schemas/index.ts'
import { isFailure, mediaType, type ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import { type NetworkFailure, networkFailureText } from '../../../net/index.ts'
import { makePeers, type PeerOptions, type Peers } from '../../../toolkit/mcp-client/peers.ts'
import { codes } from '../report/codes.ts'
import { failed, type Finding, ok, type CheckOutcome, skipped, warning } from '../report/finding.ts'
import { makeClean } from '../report/text.ts'
import { type Check, walk } from '../report/walk.ts'
import { joinList } from '../remote/facts.ts'
import { headersFor } from '../../../toolkit/targets/running.ts'
import { capitalized, oneLine, quantity } from '../../../toolkit/terminal/plain-text.ts'

interface GatewayFacts {
  readonly target: URL
  readonly peers: Peers
  /** Token that the gateway requires from local programs. */
  readonly token: string | undefined
}

function get({ peers, target, token }: GatewayFacts, path: string): Promise<ProbeReply | NetworkFailure> {
  return peers.ask(new URL(path, target), {
    method: 'GET',
    headers: { accept: 'application/json', ...headersFor({ token }) },
  })
}

async function checkHealth(facts: GatewayFacts): Promise<CheckOutcome> {
  const reply = await get(facts, '/health')
  const proof = `curl -si ${facts.target.origin}/health`
  if (isFailure(reply)) return failed('gateway.unreachable', networkFailureText(reply), { proof })
  if (reply.status === 200) return ok('running')
  return failed('gateway.other', `status ${reply.status} from /health, ${mediaType(reply)}`, { proof })
}

async function checkReady(facts: GatewayFacts): Promise<CheckOutcome> {
  const reply = await get(facts, '/readyz')
  const proof = `curl -si ${facts.target.origin}/readyz`
  if (isFailure(reply)) return failed('gateway.unreachable', networkFailureText(reply), { proof })
  const body = jsonFields(reply.body)
  if (reply.status === 200) return ok('ready')
  if (reply.status !== 503 || body === undefined) {
    return failed('gateway.other', `status ${reply.status} from /readyz`, { proof })
  }
  const { reason } = body
  return failed('gateway.not-ready', typeof reason === 'string' ? reason : 'no reason', { proof })
}

async function checkBackends(facts: GatewayFacts): Promise<CheckOutcome> {
  const status = await statusOf(facts)
  const backends = status?.['backends']
  if (!Array.isArray(backends)) return skipped('the gateway has one target and is not a virtual server')
  const { summary } = status ?? {}
  if (typeof summary !== 'string') {
    const slow = backends.filter(isFields).filter(({ health }) => health === 'degraded')
    if (slow.length === 0) return ok(quantity(backends.length, 'backend'))
    return warning('gateway.backend', joinList(slow.map(({ name }) => `${String(name)} is degraded`)))
  }
  const groups = listOf(status?.['down']).filter(isFields)
  const fixes = groups.map(({ backends: names, text, fix }) => {
    const together = joinList(listOf(names).map(String))
    return `${together}: ${oneLine(String(text))}\n  ${capitalized(oneLine(String(fix)))}.`
  })
  return failed('gateway.backend', summary, { ...(fixes.length > 0 && { fix: fixes.join('\n') }) })
}

async function checkProblems(facts: GatewayFacts): Promise<CheckOutcome> {
  const problems = (await statusOf(facts))?.['problem_details']
  if (!Array.isArray(problems)) return skipped('the gateway has one target and is not a virtual server')
  // The backends check already reports these problems.
  const found = problems.filter(isFields).filter(({ type }) => type !== 'backend_health')
  if (found.length === 0) return ok('none')
  const fixes = found.map(({ fix }) => `${capitalized(oneLine(String(fix)))}.`)
  return warning('gateway.problem', joinList(found.map(({ message }) => String(message))), {
    fix: [...new Set(fixes)].join(' '),
  })
}

async function statusOf(facts: GatewayFacts) {
  const reply = await get(facts, '/status')
  return isFailure(reply) || reply.status !== 200 ? undefined : jsonFields(reply.body)
}

const rows = [
  ['health', [], checkHealth],
  ['ready', ['health'], checkReady],
  ['backends', ['health'], checkBackends],
  ['problems', ['health'], checkProblems],
] as const

const checks: readonly Check<GatewayFacts>[] = rows.map(([id, needs, run]) => ({
  id,
  hop: 'gateway',
  needs,
  object: ({ target }) => target.origin,
  run,
}))

export async function examineGateway(
  options: PeerOptions & { readonly token?: string | undefined },
): Promise<readonly Finding[]> {
  const peers = await makePeers(options)
  try {
    return await walk(checks, {
      facts: { target: options.target, peers, token: options.token },
      clean: makeClean([]),
    })
  } finally {
    await peers.close()
  }
}

/** Returns the finding for a program on this machine that does not respond. */
export function failedProgram(
  name: string,
  { text, fix }: { readonly text: string; readonly fix: string },
): Finding {
  const { expected } = codes['gateway.program']
  return {
    id: 'program',
    hop: 'gateway',
    object: name,
    result: 'failed',
    code: 'gateway.program',
    observed: text,
    expected,
    fix: { text: fix },
    ms: 0,
  }
}
