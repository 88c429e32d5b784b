/** The port of a flag. */
import { InvalidArgumentError } from 'commander'

export function parsePort(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new InvalidArgumentError('1 to 65535')
  return port
}

/** The system's error of a port that cannot be bound, in the words of the flags; every other error as it is. */
export function bindError(error: unknown, what: string): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) return error
  const { code } = error
  const at = 'address' in error ? ` on ${String(error.address)}` : ''
  const port = 'port' in error ? String(error.port) : ''
  const rule =
    code === 'EADDRINUSE'
      ? `--port: ${port}${at} is in use by another program`
      : code === 'EACCES'
        ? `--port: ${port}${at} may not be used by this user`
        : code === 'EADDRNOTAVAIL'
          ? `--host:${at.replace(' on', '')} is no address of this machine`
          : undefined
  return rule === undefined ? error : new Error(`failed to start ${what}: ${rule}`, { cause: error })
}
