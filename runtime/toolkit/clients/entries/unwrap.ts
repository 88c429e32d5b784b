/**
 * Replaces wrapper programs (a Windows shell, a container, a bridge to a remote server, or Gatehouse itself) with the
 * programs that they start. Unrecognized programs stay unchanged.
 */
import { unwrapBridge } from './bridges.ts'
import { unwrapContainer } from './container.ts'
import type { ClientEntry, EntryProgram } from './entry.ts'
import { programName } from './package.ts'
import { commandWords, literalOf, type Value } from './value.ts'

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

/** Commands and characters that only the Windows shell understands. */
const shellCommand = /^(?:call|cd|echo|for|if|pushd|set|start|type)$/i
const shellSyntax = /(?:^|\s)(?:&&?|\|\|?|\d?[<>]+)(?:\s|$)|%\w+%/

/** Returns the program that `cmd /c` starts. A line that requires the shell itself is returned unchanged. */
function withoutShell(program: EntryProgram): EntryProgram {
  if (programName(program.command) !== 'cmd') return program
  const texts = program.args.map((value) => literalOf(value) ?? '')
  const at = texts.findIndex((text) => !/^\/[abd-jl-z](?::\w+)?$/i.test(text))
  if (!/^\/[ck](?:\s|$)/i.test(texts[at] ?? '')) return program
  const line = program.args[at]?.flatMap((part) =>
    typeof part === 'string' ? part.replace(/^\/[ck]\s*/i, '') : part,
  )
  const rest = [...(line && literalOf(line) !== '' ? [line] : []), ...program.args.slice(at + 1)]
  const [first = [], ...others] = rest.map(withoutCarets)
  const [command, ...args] = [...commandWords(first), ...others]
  const needsShell =
    shellCommand.test(literalOf(command ?? []) ?? '') ||
    rest.some((word) => shellSyntax.test((literalOf(word) ?? '').replaceAll(/\^./g, '')))
  return !command || needsShell ? program : withoutShell({ ...program, command, args })
}

/** Removes each caret outside quotes, where it escapes the next character. */
function withoutCarets(value: Value): Value {
  return value.map((part) => (typeof part === 'string' ? part.replaceAll(/("[^"]*")|\^(.)/g, '$1$2') : part))
}

/** True for the entry that `gatehouse client add --stdio` writes. */
function isOurselves(program: EntryProgram): boolean {
  const words = [program.command, ...program.args].map((value) => literalOf(value) ?? '')
  const at = words.indexOf('proxy')
  if (at < 1 || words[at + 1] !== 'stdio') return false
  return words
    .slice(0, at)
    .some((word) => /(^|[/\\@])gatehouse([./\\@-]|$)|runtime[/\\]cli[/\\]main\.ts$/.test(word))
}
