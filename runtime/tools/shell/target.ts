/** Parses the operands: a TARGET, or a command after `--`, which replaces TARGET. */
import { invalidConfig, own } from '../../../schemas/index.ts'
import { environment } from '../../config/index.ts'

/** Splits operands at `--`, which the parser has removed. The words after `--` form a command. */
export function splitOperands(
  operands: readonly string[],
  argv: readonly string[],
): { readonly operands: readonly string[]; readonly command: readonly string[] | undefined } {
  const at = argv.indexOf('--')
  if (at < 0) return { operands, command: undefined }
  const command = argv.slice(at + 1)
  if (command.length === 0) throw invalidConfig('after --, add a command that runs an MCP server')
  return { operands: operands.slice(0, operands.length - command.length), command }
}

/** Parses the values of `-e NAME[=VALUE]`. */
export function variablesFrom(definitions: readonly string[]): Record<string, string> {
  const env = environment()
  return Object.fromEntries(
    definitions.map((text) => {
      const at = text.indexOf('=')
      if (at === 0 || text === '') throw invalidConfig('-e: must be NAME or NAME=VALUE')
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
      const value = own(env, text)
      if (value === undefined)
        throw invalidConfig(`-e ${text}: the variable is not set; set it, or write ${text}=VALUE`)
      return [text, value]
    }),
  )
}
