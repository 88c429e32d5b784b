/**
 * Records the effects of one operation on a virtual server: audit lines, counters, tokens and quotas in Redis.
 *
 * Omits values that differ between runs: times, ids, durations, and the requests that read lists and open sessions.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import type { RedisClientType } from '@redis/client'
import { sharedTokens } from './config.ts'

/** A missing line fails only its cell, not the whole table. */
const maxWaitMs = 5_000

/** Reads the audit log. Each read continues where the previous one ended. */
export class AuditReader {
  readonly #file: number
  #offset = 0
  #rest = ''

  constructor(path: string) {
    this.#file = openSync(path, 'r')
  }

  /** Resolves with the new lines once one of them ends the operation, or after the longest wait. */
  async until(isLast: (line: AuditLine) => boolean): Promise<readonly AuditLine[]> {
    const lines: AuditLine[] = []
    const giveUpAt = performance.now() + maxWaitMs
    while (!lines.some(isLast) && performance.now() < giveUpAt) {
      await setImmediate()
      lines.push(...this.#next())
    }
    return lines
  }

  /** Skips the lines that exist now. */
  skip(): void {
    this.#next()
  }

  #next(): AuditLine[] {
    const buffer = Buffer.alloc(1_048_576)
    const size = readSync(this.#file, buffer, 0, buffer.length, this.#offset)
    this.#offset += size
    const lines = (this.#rest + buffer.toString('utf8', 0, size)).split('\n')
    this.#rest = lines.pop() ?? ''
    return lines.map((line) => JSON.parse(line) as AuditLine)
  }

  close(): void {
    closeSync(this.#file)
  }
}

type Members = Readonly<Record<string, string | number | boolean | undefined>>

export interface AuditLine {
  readonly type: string
  readonly outcome: string
  readonly target: Members
  readonly policy?: Members
  readonly webhooks?: readonly Members[]
  readonly quotas?: readonly Members[]
  readonly guardrails?: readonly Members[]
  readonly metadata: { readonly extra: Members }
}

/** True for the line of a client request, which follows the lines of all its effects. */
export function isOfRequest({ metadata }: AuditLine): boolean {
  return metadata.extra['transport'] === 'http'
}

/** Formats a line, such as `mcp_tool_call denied live_x, policy deny`. */
export function auditText(line: AuditLine): string {
  const { type, outcome, target, policy, webhooks = [], quotas = [], guardrails = [], metadata } = line
  const { extra } = metadata
  const words = (members: Members, ...names: readonly string[]) =>
    names.map((name) => String(members[name])).join(' ')
  const facts = [
    `${type} ${outcome} ${target['name'] ?? target['step_id'] ?? target['workflow_name'] ?? ''}`.trim(),
    ...(extra['backend'] === undefined ? [] : [`backend ${extra['backend']}`]),
    ...(policy ? [`policy ${policy['decision']}`] : []),
    ...webhooks.map(
      (one) => `webhook ${words(one, 'name', 'outcome')}${one['enforced'] === false ? ' not enforced' : ''}`,
    ),
    ...quotas.map((one) => `quota ${words(one, 'name')}${one['enforced'] === false ? ' not enforced' : ''}`),
    ...guardrails.map((one) => `guardrail ${words(one, 'rule', 'direction', 'outcome')}`),
    ...['denial_reason', 'jsonrpc_error_code', 'tool_error'].flatMap((name) =>
      extra[name] === undefined ? [] : [`${name} ${extra[name]}`],
    ),
  ]
  return facts.join(', ')
}

export type Figures = ReadonlyMap<string, number>

/** Methods of requests that a virtual server makes on its own. Their number depends on timing. */
const preparing =
  /mcp_method_name="(initialize|ping|logging\/[^"]*|notifications\/[^"]*|server\/discover|[^"]*\/list)"/
/** Labels that are the same in every cell, repeat another label, or differ between runs. */
const dropped =
  /^(server|namespace|transport|network_.*|server_.*|.*_protocol_(version|revision)|target_workload_id|target_transport_type|auth_authenticated|tool_name|prompt_name|action|gen_ai_operation_name)$/

/** Formats labels, such as `{method=tools/call,status=error}`. */
function labelsIn(text: string): string {
  const labels = [...text.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value]) => ({
    name,
    value,
  }))
  const kept = labels.filter(({ name }) => !dropped.test(name)).map(({ name, value }) => `${name}=${value}`)
  return kept.length === 0 ? '' : `{${kept.join(',')}}`
}

/** Reads the counters and the counts of histograms from `/metrics`. */
export function countersIn(metrics: string): Figures {
  const kinds = new Map(
    [...metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind]) => [name, kind]),
  )
  const figures = new Map<string, number>()
  for (const [, name = '', labels = '', value] of metrics.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)) {
    const isCount = kinds.get(name) === 'counter' || name.endsWith('_count')
    if (!isCount || name.startsWith('process_') || preparing.test(labels)) continue
    const key = name + labelsIn(labels)
    figures.set(key, (figures.get(key) ?? 0) + Number(value))
  }
  return figures
}

export type RedisReader = Pick<RedisClientType, 'sendCommand'>

const levels = `local all = {}
for _, key in ipairs(redis.call('keys', ARGV[1])) do
  if redis.call('type', key).ok == 'string' then table.insert(all, key .. ' ' .. redis.call('get', key)) end
end
return all`

/** Reads the taken tokens and counted quotas, by their names in Redis without users and periods. */
export async function spendingIn(redis: RedisReader): Promise<Figures> {
  const figures = new Map<string, number>()
  const lines = (await redis.sendCommand([
    'EVAL',
    levels,
    '0',
    'checks:*:{*}:*',
  ])) as unknown as readonly string[]
  for (const line of lines) {
    const [, kind, rest = ''] = /^checks:(rl|quota):\{[^}]*\}:(.*)$/.exec(line) ?? []
    const [key = '', value = ''] = rest.split(' ')
    if (kind === 'rl')
      figures.set(`rate limit ${key}`, (key === 'shared' ? sharedTokens : 1) - Math.round(Number(value)))
    if (kind === 'quota') figures.set(`quota ${key.split(':')[0]}`, Number(value))
  }
  return figures
}

/** Lists the figures that changed, such as `name +1`. */
export function growth(before: Figures, after: Figures): readonly string[] {
  return [...after]
    .map(([key, value]) => [key, value - (before.get(key) ?? 0)] as const)
    .filter(([, more]) => more !== 0)
    .map(([key, more]) => `${key} ${more > 0 ? '+' : ''}${more}`)
    .toSorted()
}
