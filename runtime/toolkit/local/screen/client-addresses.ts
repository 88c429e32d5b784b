/**
 * A session's virtual servers as clients see them: their address, their readiness, and each backend's health according
 * to the running server's `/status`.
 *
 * An address is ready when all of its backends respond, because a client that connects earlier would miss tools. A
 * backend that requires a sign-in does not delay readiness. A backend that never responds delays readiness by at most
 * ten seconds after the last workload starts.
 */
import { withDetail } from '../../../observe/index.ts'
import { headersFor } from '../../targets/running.ts'
import { signInAddress } from '../../targets/sign-ins.ts'
import type { LocalCluster } from '../cluster/cluster.ts'
import type { DevSession, WorkloadView } from '../session.ts'

const maxWaitMs = 10_000
const serving: ReadonlySet<string> = new Set(['healthy', 'degraded'])

/** The parts of a session that are displayed. */
export interface DisplayedSession extends Pick<DevSession, 'workloads'> {
  /** Token that the session's servers require. */
  readonly token?: string | undefined
  readonly cluster: Pick<LocalCluster, 'objects'>
  readonly signInKey?: string
}

/** A VirtualMCPServer and its address for clients. */
export interface ClientAddress {
  readonly name: string
  readonly url: string
  /** URL of the web console. Undefined without a console. */
  readonly consoleUrl: string | undefined
  readonly ready: boolean
  /** Number of backends that are down, for each cause. Undefined if no backend is down. */
  readonly summary: string | undefined
  /** Name, health, last error and next step of each backend, from the running server. */
  readonly backends: readonly ShownBackend[]
  readonly message: string
}

export interface ShownBackend {
  readonly name: string
  readonly health: string
  readonly error?: string
  readonly fix?: string
  /** The address where the user must sign in, including the key. */
  readonly signInUrl?: string
}

interface Status {
  readonly summary?: string
  readonly backends: readonly BackendReport[]
}

interface BackendReport {
  readonly name: string
  readonly health: string
  readonly last_error?: { readonly message: string; readonly detail?: string; readonly fix: string }
  readonly sign_in_url?: string
}

/**
 * `startedAt` is the time in milliseconds when the last workload finished starting. Undefined while a workload is
 * starting.
 */
export async function clientAddressesOf(
  session: DisplayedSession,
  startedAt: number | undefined,
): Promise<ClientAddress[]> {
  const parents = session.cluster.objects.filter((object) => object.kind === 'VirtualMCPServer')
  return Promise.all(
    parents.map(async (parent) => {
      const view = session.workloads.find(
        (candidate) => candidate.parent.metadata.uid === parent.metadata.uid,
      )
      const base = `http://127.0.0.1:${view?.port ?? 0}`
      const status = view?.phase === 'ready' ? await statusOf(base, session.token) : undefined
      return {
        name: parent.metadata.name,
        url: `${base}/mcp`,
        consoleUrl: view?.consoleUrl,
        ready: status !== undefined && (missingBackends(status).length === 0 || isWaitOver(startedAt)),
        summary: status?.summary,
        backends: (status?.backends ?? []).map(
          ({ name, health, last_error: error, sign_in_url: signInUrl }) => ({
            name,
            health: !serving.has(health) && isStarting(session, name) ? 'starting' : health,
            ...(error && { error: withDetail(error.message, error.detail), fix: error.fix }),
            ...(signInUrl !== undefined && { signInUrl: signInAddress(signInUrl, session.signInKey) }),
          }),
        ),
        message: status
          ? `waiting for ${missingBackends(status).join(', ')}`
          : messageOf(parent.status, view),
      }
    }),
  )
}

function isStarting({ workloads }: DisplayedSession, name: string): boolean {
  return workloads.some(({ parent, starting }) => parent.metadata.name === name && starting !== undefined)
}

function missingBackends({ backends }: Status): string[] {
  return backends
    .filter(({ health, sign_in_url: signInUrl }) => !serving.has(health) && signInUrl === undefined)
    .map(({ name }) => name)
}

function isWaitOver(startedAt: number | undefined): boolean {
  return startedAt !== undefined && Date.now() - startedAt > maxWaitMs
}

function messageOf(status: Record<string, unknown> | undefined, view: WorkloadView | undefined): string {
  if (view && view.phase !== 'ready') return view.why ?? view.phase
  const message = status?.['message']
  return typeof message === 'string' ? message : ''
}

async function statusOf(base: string, token: string | undefined): Promise<Status | undefined> {
  try {
    const response = await fetch(`${base}/status`, {
      headers: headersFor({ token }),
      signal: AbortSignal.timeout(1000),
    })
    return response.ok ? ((await response.json()) as Status) : undefined
  } catch {
    return undefined
  }
}
