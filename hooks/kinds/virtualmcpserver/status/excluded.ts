/**
 * Sets the condition that lists excluded backends: backends with a broken reference or setting, and backends that the
 * running server reports as excluded. The message limits the number of names and the length of each reason.
 */
import { type DiscoveredBackend, excludedPrefix } from '../../../../schemas/index.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { ResolvedBackend } from '../config/backends.ts'

/** True for a message that the running server reports for an excluded backend. */
export function isExcluded(message: unknown): message is string {
  return typeof message === 'string' && message.startsWith(excludedPrefix)
}

const maxNames = 20
const maxReason = 240

export function checkExcluded(
  { conditions }: SyncContext<'VirtualMCPServer'>,
  backends: readonly ResolvedBackend[],
  statuses: readonly DiscoveredBackend[],
): void {
  const reported = new Map(statuses.map(({ name, message }) => [name, message]))
  const lines = backends.flatMap(({ name, failure }) => {
    const reason = failure?.message ?? reasonIn(reported.get(name))
    return reason === undefined ? [] : [`${name}: ${clip(reason.replaceAll('\n', '; '))}`]
  })
  const more = lines.length - maxNames
  const message = [...lines.slice(0, maxNames), ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
  conditions.check(
    'BackendsValidated',
    lines.length > 0 ? { reason: 'BackendsExcluded', message } : undefined,
    'AllBackendsValid',
    'No backend is excluded',
  )
}

function reasonIn(message: string | undefined): string | undefined {
  return isExcluded(message) ? message.slice(excludedPrefix.length) : undefined
}

function clip(text: string): string {
  return text.length > maxReason ? `${text.slice(0, maxReason - 1)}…` : text
}
