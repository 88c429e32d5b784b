/**
 * Programs that only start or reach something else, told by what they start: a Windows shell, a container, a bridge to a
 * remote server, and this gateway itself.
 *
 * What is not recognised stays the program it is.
 */
import { unwrapBridge } from './bridges.ts'
import { unwrapContainer } from './container.ts'
import type { ClientEntry, EntryProgram } from './entry.ts'
import { programName } from './package.ts'
import { literalOf } from './value.ts'

export function unwrapEntry(entry: ClientEntry): ClientEntry {
  if (entry.target.kind !== 'program') return entry
  const program = withoutShell(entry.target)
  if (isOurselves(program)) {
    const why = 'is Gatehouse itself'
    return { ...entry, target: { kind: 'unusable', why, harmless: true } }
  }
  const unwrapped = unwrapBridge(program) ?? unwrapContainer(program)
  if (!unwrapped) return { ...entry, target: program }
  return { ...entry, target: unwrapped.target, notes: [...entry.notes, ...unwrapped.notes] }
}

function withoutShell(program: EntryProgram): EntryProgram {
  const [first, command, ...args] = program.args
  const isShell =
    programName(program.command) === 'cmd' && first !== undefined && /^\/c$/i.test(literalOf(first) ?? '')
  return isShell && command ? withoutShell({ ...program, command, args }) : program
}

/** The entry that `gatehouse client add --stdio` writes, however it was started. */
function isOurselves(program: EntryProgram): boolean {
  const words = [program.command, ...program.args].map((value) => literalOf(value) ?? '')
  const at = words.indexOf('proxy')
  if (at < 1 || words[at + 1] !== 'stdio') return false
  return words
    .slice(0, at)
    .some((word) => /(^|[/\\@])gatehouse([./\\@-]|$)|runtime[/\\]cli[/\\]main\.ts$/.test(word))
}
