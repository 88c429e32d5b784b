/** Standard input of a command: read once, and for one option alone. */
import { readFileSync } from 'node:fs'
import { invalidConfig } from '../../../schemas/index.ts'

let reader: string | undefined
let bytes: Buffer | undefined

/** Throws INVALID_CONFIG when another option has named standard input as well. */
export function claimStandardInput(option: string): void {
  if (reader !== undefined && reader !== option)
    throw invalidConfig(`-: standard input is for ${reader} or ${option}, not for both`)
  reader = option
}

/** The bytes of standard input, as often as the option that names it asks. */
export function standardInput(option = '-f'): Buffer {
  claimStandardInput(option)
  return (bytes ??= readFileSync(0))
}

export function standardText(option?: string): string {
  return standardInput(option).toString('utf8')
}
