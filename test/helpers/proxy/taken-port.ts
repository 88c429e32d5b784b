/** Occupies a port on one loopback address while it stays free on the other one. */
import { createServer, type Server } from 'node:net'
import type { Test } from 'tap'

function listenAt(host: string, port: number): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve(server))
  })
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const close = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))

/** Occupies a port of the address until the test ends. */
export async function takePort(t: Pick<Test, 'teardown'>, host: '127.0.0.1' | '::1'): Promise<number> {
  const server = await listenAt(host, 0)
  const port = portOf(server)
  if (!lacksIpv6 && !(await isFree(host === '::1' ? '127.0.0.1' : '::1', port))) {
    await close(server)
    return takePort(t, host)
  }
  t.teardown(() => close(server))
  return port
}

/** Returns true when a listener can bind the port of the address. */
export async function isFree(host: string, port: number): Promise<boolean> {
  try {
    await close(await listenAt(host, port))
    return true
  } catch {
    return false
  }
}

/** Reason that tests of both loopback addresses cannot run, or false. */
export const lacksIpv6 = (await isFree('::1', 0)) ? false : 'this machine has no IPv6 loopback address'
