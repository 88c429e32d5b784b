/**
 * The virtual servers of a session as their clients see them: address, readiness, and each backend's health as the
 * running server reports it on `/status`.
 */
import type { Door } from './screen.ts'
import type { DevSession, WorkloadView } from './session.ts'

export async function doorsOf(session: DevSession): Promise<Door[]> {
  const parents = session.cluster.objects.filter((object) => object.kind === 'VirtualMCPServer')
  return Promise.all(
    parents.map(async (parent) => {
      const view = session.workloads.find(
        (candidate) => candidate.parent.metadata.uid === parent.metadata.uid,
      )
      const base = `http://127.0.0.1:${view?.port ?? 0}`
      const status = view?.phase === 'ready' ? await statusOf(base) : undefined
      return {
        name: parent.metadata.name,
        url: `${base}/mcp`,
        ready: status !== undefined,
        backends: status?.backends ?? [],
        message: messageOf(parent.status, view),
      }
    }),
  )
}

function messageOf(status: Record<string, unknown> | undefined, view: WorkloadView | undefined): string {
  if (view && view.phase !== 'ready') return view.why ?? view.phase
  const message = status?.['message']
  return typeof message === 'string' ? message : ''
}

async function statusOf(base: string): Promise<{ backends: { name: string; health: string }[] } | undefined> {
  try {
    const response = await fetch(`${base}/status`, { signal: AbortSignal.timeout(1000) })
    return response.ok
      ? ((await response.json()) as { backends: { name: string; health: string }[] })
      : undefined
  } catch {
    return undefined
  }
}
