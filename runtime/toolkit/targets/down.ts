/** Warns about backends that are down behind a virtual server on this machine, because their items are missing. */
import { isFields, listOf } from '../../../schemas/index.ts'
import { isLoopbackHost } from '../../net/index.ts'
import { headersFor, runningServerAt } from './running.ts'

const timeoutMs = 2_000

/**
 * Returns the summary from the server's `/status`, and one line per cause with its next step, without the backends in
 * `except`. Empty if no other backend is down or the server does not report a status. Sends requests only to servers on
 * this machine, because other servers may not be Gatehouse.
 */
export async function downWarning(url: URL, except: ReadonlySet<string>): Promise<readonly string[]> {
  if (!isLoopbackHost(url.hostname)) return []
  const status = await statusOf(url)
  const { summary } = status
  if (typeof summary !== 'string') return []
  const groups = listOf(status['down'])
    .filter(isFields)
    .map(({ backends, text, fix }) => ({
      text,
      fix,
      names: namesIn(backends).filter((name) => !except.has(name)),
    }))
    .filter(({ names }) => names.length > 0)
  if (groups.length === 0) return []
  return [
    `Warning: ${summary}`,
    ...groups.flatMap(({ names, text, fix }) => [
      `  ${names.join(', ')}: ${String(text)}`,
      `    Next step: ${String(fix)}`,
    ]),
  ]
}

/** Returns the names of a virtual server's backends. Undefined if the server does not report its backends. */
export async function backendNames(url: URL): Promise<readonly string[] | undefined> {
  const { backends } = await statusOf(url)
  if (!Array.isArray(backends)) return undefined
  return backends.flatMap((backend: unknown) =>
    isFields(backend) && typeof backend['name'] === 'string' ? [backend['name']] : [],
  )
}

function namesIn(backends: unknown): readonly string[] {
  return listOf(backends).map(String)
}

async function statusOf(url: URL): Promise<Readonly<Record<string, unknown>>> {
  try {
    const response = await fetch(new URL('/status', url), {
      headers: headersFor(runningServerAt(url) ?? {}),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const body: unknown = response.ok ? await response.json() : undefined
    return isFields(body) ? body : {}
  } catch {
    return {}
  }
}
