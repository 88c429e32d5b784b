/**
 * The state of each server in a local session, from its process and from the virtual server's `/status`.
 *
 * A server that requires a login is not a failure: its tools are absent until the user signs in.
 */
import { causeFix, causeText } from '../../../observe/index.ts'
import type { DevSession, WorkloadView } from '../session.ts'
import { oneLine } from '../../terminal/plain-text.ts'
import { clientAddressesOf, type ShownBackend } from './client-addresses.ts'

export type MemberPhase = 'ready' | 'sign in' | 'starting' | 'failed'

export interface MemberState {
  readonly name: string
  readonly phase: MemberPhase
  /** The reason for the phase `failed`. */
  readonly why: string | undefined
  /** The next step in the phase `failed`, if it is known. */
  readonly fix?: string | undefined
  /** True when the server's process has ended or cannot be started. */
  readonly hasEnded: boolean
  /** Set in the phase `sign in`: the address to open, with the key. */
  readonly signInUrl?: string
}

export interface SessionState {
  /** Undefined until the virtual server responds. */
  readonly url: string | undefined
  readonly consoleUrl: string | undefined
  readonly members: readonly MemberState[]
}

/** Returns the states of the named servers in a session with one virtual server. */
export async function sessionStateOf(session: DevSession, names: readonly string[]): Promise<SessionState> {
  const [address] = await clientAddressesOf(session, undefined)
  const backends = new Map(address?.backends.map((backend) => [backend.name, backend]))
  const isOpen = session.workloads.some(
    ({ parent, phase }) => parent.kind === 'VirtualMCPServer' && phase === 'ready',
  )
  return {
    url: isOpen ? address?.url : undefined,
    consoleUrl: address?.consoleUrl,
    members: names.map((name) => stateOf(name, session, backends.get(name))),
  }
}

function stateOf(name: string, { workloads }: DevSession, backend: ShownBackend | undefined): MemberState {
  const views = workloads.filter(({ parent }) => parent.metadata.name === name)
  const phase = phases[backend?.health ?? ''] ?? 'starting'
  const { signInUrl } = backend ?? {}
  if (signInUrl !== undefined) return { name, phase: 'sign in', why: undefined, hasEnded: false, signInUrl }
  if (phase === 'ready') return { name, phase, why: undefined, hasEnded: false }
  const ended = views.find((view) => view.phase === 'failed' || view.phase === 'not runnable')
  if (ended) {
    const { cause } = ended
    const fix = cause && causeFix(cause, name)
    return { name, phase: 'failed', why: oneLine(endOf(ended)), fix, hasEnded: true }
  }
  const refusal = views.find((view) => view.refusal !== undefined)?.refusal
  const why = refusal ?? backend?.error
  return {
    name,
    phase,
    why: phase === 'failed' ? oneLine(why ?? 'does not respond') : undefined,
    fix: phase === 'failed' ? backend?.fix : undefined,
    hasEnded: false,
  }
}

const phases: Readonly<Record<string, MemberPhase>> = {
  healthy: 'ready',
  degraded: 'ready',
  unauthenticated: 'failed',
  unhealthy: 'failed',
}

function endOf({ cause, why = 'failed' }: WorkloadView): string {
  return cause ? causeText(cause) : why
}
