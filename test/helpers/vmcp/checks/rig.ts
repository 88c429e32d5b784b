/** A virtual server with real backends. Its checks reject the items that are named after them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import type { Test } from 'tap'
import { type DirectResult, JsonObject } from '../../../../runtime/mcp/index.ts'
import { type Caller, makeCaller } from '../../../../runtime/net/index.ts'
import { makeQuotas, makeRateLimiter } from '../../../../runtime/policy/index.ts'
import { makeRedisStore } from '../../../../runtime/store/index.ts'
import type { VmcpServer } from '../../../../runtime/vmcp/index.ts'
import type { Era } from '../../decisions/decision-rig.ts'
import { startTokenIssuer } from '../../authserver/token-issuer.ts'
import { openSession, stateless, type WireSession } from '../../mcp/wire.ts'
import { startRedis } from '../../redis.ts'
import { startTestVmcp, vmcpConfig } from '../vmcp.ts'
import { allow, deny, startWebhook, type TestWebhook, type WebhookReply } from '../webhook.ts'
import { type ChecksBackend, startChecksBackend } from './backends.ts'
import {
  type CheckedItems,
  checksConfig,
  limitedTools,
  namespace,
  type Settings,
  serverName,
  spentTools,
  stepWorkflowName,
} from './config.ts'
import { AuditReader, auditText, type AuditLine, countersIn, growth, spendingIn } from './ledger.ts'
import { backendOf, has, type Reason } from './reasons.ts'

/** Response and effects of one operation. */
export interface Observed {
  readonly answer: string
  readonly audit: readonly string[]
  /** Counters that grew. */
  readonly counters: readonly string[]
  /** Taken tokens of rate limits, and counted quotas. */
  readonly spent: readonly string[]
  /** Requests that arrived at backends. */
  readonly backend: readonly string[]
}

export interface Work {
  /** Resolves with the formatted response. */
  perform(): Promise<string>
  /** True for the last audit line of the operation. */
  isLast(line: AuditLine): boolean
}

export interface ChecksRig {
  readonly vmcp: VmcpServer
  readonly session: WireSession
  readonly headers: Readonly<Record<string, string>>
  readonly caller: Caller
  observe(work: Work): Promise<Observed>
}

/**
 * Starts all parts. `more` replaces whole members of the configuration. The backend `down` closes after its lists have
 * been read. It is configured only if it has items, because the server would read the lists of an empty backend again
 * and again.
 */
export async function startChecksRig(t: Test, items: CheckedItems, more: Settings = {}): Promise<ChecksRig> {
  const folder = mkdtempSync(join(tmpdir(), 'checks-'))
  const logFile = join(folder, 'audit.log')
  const [redis, issuer, gate, lenient, live, down] = await Promise.all([
    startRedis(),
    startTokenIssuer(),
    startWebhook(replyOf({ 'webhook-denies': deny('not now'), 'webhook-fails': unavailable })),
    startWebhook(replyOf({ 'webhook-ignored': unavailable })),
    startChecksBackend('live', items),
    startChecksBackend('down', items),
  ])
  const settings = { ...checksConfig({ issuer, gate, lenient, redis: redis.addr, logFile, items }), ...more }
  const hasDown = items.tools.some((name) => backendOf(name) === 'down')
  const backends = { live: live.url, ...(hasDown ? { down: down.url } : {}) }
  await useUp(redis.addr, settings, items, makeCaller({ issuer: issuer.issuer, subject: 'ada', claims: {} }))
  const vmcp = await startTestVmcp(backends, settings, {
    env: { VMCP_NAMESPACE: namespace },
    excluded: [{ name: 'out', problems: ['outgoingAuth: invalid'] }],
  })
  const reader = new AuditReader(logFile)
  const client = createClient({ url: `redis://${redis.addr}` })
  await client.connect()
  t.teardown(async () => {
    await vmcp.close()
    reader.close()
    client.destroy()
    await Promise.all([live.close(), issuer.close(), gate.close(), lenient.close(), redis.stop()])
    rmSync(folder, { recursive: true })
  })
  const token = await issuer.token('ada')
  const headers = { authorization: `Bearer ${token}` }
  const session = await openSession(vmcp.url, { headers })
  const caller = makeCaller({ issuer: issuer.issuer, subject: 'ada', claims: {}, token })
  for (const era of ['session', 'stateless'] as const)
    await consoleCall({ vmcp, caller }, { era, tool: 'none', args: {} }).catch(() => {})
  const isLastList = ({ target }: AuditLine): boolean => target['method'] === lists.at(-1)
  for (const method of lists) await stateless(vmcp.url, method, {}, { headers })
  await reader.until(isLastList)
  for (const method of lists) await session.request(method)
  await reader.until(isLastList)
  await down.close()
  const look = async () => ({
    counters: countersIn(await (await fetch(`${vmcp.origin}/metrics`)).text()),
    spent: await spendingIn(client),
    reached: reachedAt([live, down]).length,
  })
  let before = await look()
  async function observeOnce({ perform, isLast }: Work): Promise<Observed> {
    reader.skip()
    const answer = await perform()
    const audit = await reader.until(isLast)
    const after = await look()
    const observed = {
      answer,
      audit: audit.map(auditText),
      counters: growth(before.counters, after.counters),
      spent: growth(before.spent, after.spent),
      backend: reachedAt([live, down]).slice(before.reached),
    }
    before = after
    return observed
  }
  async function observe(work: Work): Promise<Observed> {
    let observed = await observeOnce(work)
    // On a busy machine, a response of Redis can arrive too late to be counted. The server reports differences from the
    // approved definitions 50 ms after it has read the lists, and name conflicts when it reads them again after 30 s.
    for (let more = 2; more > 0 && wasDisturbed(observed); more--) observed = await observeOnce(work)
    return observed
  }
  return { vmcp, session, headers, caller, observe }
}

const unrelatedCounters = ['_fail_open_total', 'tools_drifted', 'name_conflict']

function wasDisturbed({ counters }: Observed): boolean {
  return counters.some((line) => unrelatedCounters.some((name) => line.includes(name)))
}

const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

export interface ConsoleCall {
  readonly era: Era
  readonly tool: string
  readonly args: Settings
}

/** Calls a tool as the console does. */
export function consoleCall(
  { vmcp, caller }: Pick<ChecksRig, 'vmcp' | 'caller'>,
  { era, tool, args }: ConsoleCall,
): Promise<DirectResult> {
  return vmcp.view.call({
    ...{ caller, tool, era, signal: new AbortController().signal },
    toolArguments: Buffer.from(JSON.stringify(args)),
    ask: () => Promise.reject(new Error('unexpected question')),
    progress() {},
    log() {},
    decided() {},
    routed() {},
  })
}

const unavailable: WebhookReply = (res) => void res.writeHead(503).end()

/** Selects a reply by the reason in the name of the item. */
function replyOf(replies: Readonly<Partial<Record<Reason, WebhookReply>>>): TestWebhook['reply'] {
  return ({ mcp_request: { params } }) => {
    const name = JSON.stringify(params['name'] ?? params['uri'] ?? params['ref'])
    // The step is rejected, not its workflow.
    if (name.startsWith(`"${stepWorkflowName('')}`)) return allow
    const found = Object.entries(replies).find(([reason]) => has(name, reason as Reason))
    return found ? found[1] : allow
  }
}

function reachedAt(backends: readonly ChecksBackend[]): string[] {
  return backends.flatMap((backend) => backend.reached())
}

/** Takes the only token of each limited tool, and uses the only call of each quota for one tool. */
async function useUp(addr: string, settings: Settings, items: CheckedItems, caller: Caller): Promise<void> {
  const { rateLimiting, quotas } = vmcpConfig({}, settings)
  const store = makeRedisStore({ addr, db: 0, keyPrefix: 'checks:' })
  const common = { store, namespace, server: serverName }
  try {
    if (rateLimiting) {
      const limiter = makeRateLimiter({ ...common, config: { tools: rateLimiting.tools ?? [] } })
      for (const name of limitedTools(items))
        await limiter.take(caller, 'tools/call', new JsonObject(Buffer.from(JSON.stringify({ name }))))
    }
    const ofTools = (quotas ?? []).filter(({ match }) => match !== undefined)
    const counted = makeQuotas({ ...common, quotas: ofTools, now: Date.now, observe() {} })
    for (const tool of spentTools(items)) await counted.reserve({ caller, backend: backendOf(tool), tool })
  } finally {
    await store.close()
  }
}
