/** Command-line option values: parsers, repeatable options, and rejection of options that have no effect. */
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, type Option } from 'commander'
import { exactJson, type Fields, invalidConfig, isFields } from '../../../schemas/index.ts'

/** Collects the values of a repeatable option. */
export function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value]
}

export function parsePort(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new InvalidArgumentError('1 to 65535')
  return port
}

/** Converts a system error about binding a port to a message that contains the flag. Returns other errors unchanged. */
export function bindError(error: unknown, what: string): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) return error
  const { code } = error
  const at = 'address' in error ? ` on ${String(error.address)}` : ''
  const port = 'port' in error ? String(error.port) : ''
  const rule =
    code === 'EADDRINUSE'
      ? `--port: ${port}${at} is in use by another program`
      : code === 'EACCES'
        ? `--port: this user has no permission to use ${port}${at}`
        : code === 'EADDRNOTAVAIL'
          ? `--host:${at.replace(' on', '')} is not an address of this machine`
          : undefined
  return rule === undefined ? error : new Error(`failed to start ${what}: ${rule}`, { cause: error })
}

export function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 3600) throw new InvalidArgumentError('1 to 3600')
  return seconds
}

/** Parses JSON, or the JSON in the file whose path follows `@`. */
export function jsonObject(text: string): Fields {
  let value: unknown
  try {
    value = exactJson(text.startsWith('@') ? readFileSync(text.slice(1), 'utf8') : text)
  } catch {
    throw new InvalidArgumentError(
      'Must be a JSON object, or @ followed by the path of a file that contains one.',
    )
  }
  if (!isFields(value))
    throw new InvalidArgumentError(
      'Must be a JSON object, or @ followed by the path of a file that contains one.',
    )
  return value
}

/** Returns the options that are set on the command line, without defaults. */
export function givenOptions(command: Command): readonly Option[] {
  return command.options.filter((option) => isGiven(command, option.attributeName()))
}

function isGiven(command: Command, attribute: string): boolean {
  return command.getOptionValueSource(attribute) === 'cli'
}

/** An option, whether it has an effect in combination with the other options, and the message to use if it does not. */
export type IdleRow = readonly [attribute: string, isUsed: boolean, what: string]

/** Throws INVALID_CONFIG, which lists every option that is set but has no effect. */
export function refuseIdle(command: Command, rows: readonly IdleRow[]): void {
  const idle = rows.flatMap(([attribute, isUsed, what]) => {
    if (isUsed || !isGiven(command, attribute)) return []
    const option = command.options.find((candidate) => candidate.attributeName() === attribute)
    return [`${option?.long ?? attribute}: ${what}`]
  })
  if (idle.length > 0) throw invalidConfig(idle.join('\n'))
}
