/**
 * Waits until everything behind the one address answers, and tells what does not and why.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { clientAddressesOf } from '../dev/screen/client-addresses.ts'
import type { DevSession, WorkloadView } from '../dev/session.ts'

export type Start =
  | { readonly state: 'ready'; readonly url: string; readonly missing: readonly Missing[] }
  | { readonly state: 'failed'; readonly missing: readonly Missing[] }
  | { readonly state: 'stopped' }

/** A server that does not answer. */
export interface Missing {
  readonly name: string
  readonly why: string
  /** The last lines that its program printed. */
  readonly lines: readonly string[]
  /** The code that its program ended with. */
  readonly code: number | undefined
}

export interface WaitOptions {
  readonly names: readonly string[]
  /** Lines that a server's program printed last. */
  readonly linesOf: (name: string) => readonly string[]
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called once per server that is still waited for after a while. */
  readonly onSlow: (name: string) => void
}

const stepMs = 200
const slowMs = 8000
const serving: ReadonlySet<string> = new Set(['healthy', 'degraded'])

/** A program that ends at once fails the start when nothing else is left; the others may still come. */
export async function waitForServers(session: DevSession, options: WaitOptions): Promise<Start> {
  const { names, timeoutMs, signal } = options
  const since = performance.now()
  const slow = new Set<string>()
  for (;;) {
    if (signal.aborted) return { state: 'stopped' }
    const [address] = await clientAddressesOf(session, undefined)
    const health = new Map(address?.backends.map((backend) => [backend.name, backend.health]))
    const missing = names.filter((name) => !serving.has(health.get(name) ?? ''))
    const lost = missing.flatMap((name) => lostOf(name, session, health.get(name)) ?? [])
    const elapsed = performance.now() - since
    if (missing.length === 0 && address) return { state: 'ready', url: address.url, missing: [] }
    if (lost.length === missing.length || elapsed > timeoutMs) {
      const told = missing.map(
        (name) => lost.find((one) => one.name === name) ?? silent(name, options.linesOf(name)),
      )
      const url = address?.backends.length ? address.url : undefined
      const isEmpty = missing.length === names.length || url === undefined
      return isEmpty ? { state: 'failed', missing: told } : { state: 'ready', url, missing: told }
    }
    for (const name of elapsed > slowMs ? missing : []) {
      if (!slow.has(name)) options.onSlow(name)
      slow.add(name)
    }
    await sleep(stepMs, undefined, { signal }).catch(() => undefined)
  }
}

/** What is known to be lost: its program ended or cannot be started, or it wants a login. */
function lostOf(name: string, session: DevSession, health: string | undefined): Missing | undefined {
  const views = session.workloads.filter(({ parent }) => parent.metadata.name === name)
  const failed = views.find(({ phase }) => phase === 'failed' || phase === 'not runnable')
  if (failed) return ended(name, failed)
  if (health !== 'unauthenticated') return undefined
  return { name, why: 'wants a login, or refuses the credentials that it got', lines: [], code: undefined }
}

function ended(name: string, { why = 'failed', lines = [] }: WorkloadView): Missing {
  const code = /^exited with code (\d+)$/.exec(why)?.[1]
  return { name, why, lines, code: code === undefined ? undefined : Number(code) }
}

function silent(name: string, lines: readonly string[]): Missing {
  return { name, why: 'does not answer', lines, code: undefined }
}
