/** Checks for free ports on the loopback interface. */
import { createServer } from 'node:net'

export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

const lastPort = 65_535
const maxTries = 100

/** Returns the first free port above `port`, or undefined when the next `maxTries` ports are in use. */
export async function nextFreePort(port: number): Promise<number | undefined> {
  for (let next = port + 1; next <= Math.min(lastPort, port + maxTries); next++) {
    if (await isFree(next)) return next
  }
  return undefined
}
