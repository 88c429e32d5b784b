/** Finds the addresses where the user signs in to the backends of a server on this machine. */
import { isFields } from '../../../schemas/index.ts'
import { headersFor, runningServerAt } from './running.ts'

const limitMs = 1_000

/** Returns the address with the key. */
export function signInAddress(url: string, key: string | undefined): string {
  return key === undefined ? url : `${url}?key=${key}`
}

export interface RequiredSignIn {
  readonly backend: string
  readonly url: string
}

/** Returns the sign-ins that a running server of this user requires. Empty for any other server. Never rejects. */
export async function requiredSignIns(server: URL): Promise<readonly RequiredSignIn[]> {
  const running = runningServerAt(server)
  if (!running) return []
  try {
    const response = await fetch(new URL('/status', running.url), {
      headers: headersFor(running),
      signal: AbortSignal.timeout(limitMs),
    })
    const status: unknown = await response.json()
    const backends: unknown = isFields(status) ? status['backends'] : undefined
    return (Array.isArray(backends) ? backends : []).flatMap((backend: unknown) => {
      if (!isFields(backend)) return []
      const { name, sign_in_url: url } = backend
      if (typeof name !== 'string' || typeof url !== 'string' || !url.startsWith(`${server.origin}/`))
        return []
      return [{ backend: name, url: signInAddress(url, running.signInKey) }]
    })
  } catch {
    return []
  }
}
