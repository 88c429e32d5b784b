/** Prints the output of commands. Results go to standard output; everything else goes to standard error. */

import { visibleJson } from '../../../schemas/index.ts'

/** Exit codes used by every command. */
export const exitCode = { ok: 0, failed: 1, usage: 2, authentication: 3 } as const

export function print(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

/** Prints a value as indented JSON, with control and hidden characters escaped. */
export function printJson(value: unknown): void {
  print(visibleJson(JSON.stringify(value, undefined, 2)))
}

export function printError(text: string): void {
  process.stderr.write(text.endsWith('\n') ? text : `${text}\n`)
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
const codes: Record<Style, string> = {
  bold: '1',
  dim: '2',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
}

/** Adds color to text for a terminal; returns the text unchanged when color is off (NO_COLOR, no terminal). */
export function painter({ colour }: { readonly colour: boolean }): (style: Style, text: string) => string {
  return (style, text) => (colour ? `\u001b[${codes[style]}m${text}\u001b[0m` : text)
}
