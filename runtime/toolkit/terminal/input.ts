/** A command's standard input. Standard input can be read once, for a single option. */
import { readFileSync } from 'node:fs'
import { invalidConfig } from '../../../schemas/index.ts'

let reader: string | undefined
let bytes: Buffer | undefined

/** Throws INVALID_CONFIG when another option already reads standard input. */
export function claimStandardInput(option: string): void {
  if (reader !== undefined && reader !== option)
    throw invalidConfig(`-: only one of ${reader} and ${option} can read standard input`)
  reader = option
}

/** Returns the bytes of standard input. The option that claimed standard input can call this function repeatedly. */
export function standardInput(option = '-f'): Buffer {
  claimStandardInput(option)
  return (bytes ??= readFileSync(0))
}

export function standardText(option?: string): string {
  return standardInput(option).toString('utf8')
}
