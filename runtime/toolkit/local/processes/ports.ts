/** Checks for free ports on the loopback interface. */
import { createServer } from 'node:net'
import { invalidConfig } from '../../../../schemas/index.ts'
import { printError } from '../../terminal/output.ts'

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

/** Port of the address that clients use, unless the user chooses another port. */
export const defaultPort = 4483

/** Returns the requested port, which must be free, or the default port, or any free port. */
export async function choosePort(wanted: number | undefined): Promise<number> {
  if (await isFree(wanted ?? defaultPort)) return wanted ?? defaultPort
  if (wanted !== undefined) throw invalidConfig(`--port: ${wanted} is in use by another program`)
  const other = await nextFreePort(defaultPort)
  if (other === undefined) throw invalidConfig('no free port on the loopback interface')
  printError(`Port ${defaultPort} is in use by another program; using ${other} instead.`)
  return other
}
