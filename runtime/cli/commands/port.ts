/** The port of a flag. */
import { InvalidArgumentError } from 'commander'

export function parsePort(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new InvalidArgumentError('1 to 65535')
  return port
}
