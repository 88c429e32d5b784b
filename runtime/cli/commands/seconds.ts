/** An option's value in seconds. */
import { InvalidArgumentError } from 'commander'

export function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 3600) throw new InvalidArgumentError('1 to 3600')
  return seconds
}
