/** Whether a local process is ready: a connection, or its readiness path. */
import { connect } from 'node:net'

/** Longest part of a response that is shown. */
const maxShown = 300

/** Undefined when the path responds with success; otherwise what it responds, in one line. */
export async function readiness(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) })
    const text = await response.text()
    if (response.ok) return undefined
    return text.replaceAll(/\s+/g, ' ').slice(0, maxShown) || `status ${response.status}`
  } catch {
    return 'it does not answer yet'
  }
}

export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
