/** Checks whether a local process is ready, through a TCP connection or its readiness path. */
import { connect } from 'node:net'

/** Maximum displayed length of a response. */
const maxShown = 300

/**
 * Returns undefined when the path responds with success; otherwise returns the response on one line. `token` is the
 * token that the server requires.
 */
export async function probeReadiness(url: string, token?: string): Promise<string | undefined> {
  try {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(2000) })
    const text = await response.text()
    if (response.ok) return undefined
    return text.replaceAll(/\s+/g, ' ').slice(0, maxShown) || `status ${response.status}`
  } catch {
    return 'no response yet'
  }
}

export function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
