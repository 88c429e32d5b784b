/**
 * Completes a command line by returning the commands, options and values that can follow the words before the cursor.
 *
 * Shells run this completion on every keystroke, so only the command being completed is loaded. Arguments that accept a
 * file have no candidates, because the shell completes file names.
 */
import type { Command, Option } from 'commander'
import { NamedArgument } from '../../toolkit/terminal/command.ts'

/** A completion candidate: the word and a one-line description. */
export interface Completion {
  readonly word: string
  readonly about: string
}

/** Returns the candidates for the last of `words`, which may be ''. `words` starts after the program name. */
export function candidates(program: Command, words: readonly string[]): Completion[] {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  if (before.includes('--')) return []
  const { command, operands } = walk(program, before)
  const valued = optionOf(command, before.at(-1) ?? '')
  if (valued && takesValue(valued)) return starting(typed, valuesOf(valued))
  const [, flag = '', value] = /^(--[^=]+)=(.*)$/.exec(typed) ?? []
  if (value !== undefined) {
    const option = optionOf(command, flag)
    return starting(
      typed,
      (option ? valuesOf(option) : []).map((candidate) => ({
        ...candidate,
        word: `${flag}=${candidate.word}`,
      })),
    )
  }
  if (typed.startsWith('-')) return starting(typed, optionsOf(command))
  return starting(
    typed,
    operands === 0 ? [...commandsOf(command), ...argumentsOf(command)] : argumentsOf(command),
  )
}

/** Resolves the words to the innermost command and counts its operands. */
function walk(program: Command, words: readonly string[]): { command: Command; operands: number } {
  let command = program
  let operands = 0
  for (const [index, word] of words.entries()) {
    const previous = optionOf(command, words[index - 1] ?? '')
    if (word.startsWith('-') || (previous && takesValue(previous))) continue
    const next =
      operands === 0 ? command.commands.find((subcommand) => subcommand.name() === word) : undefined
    if (next) command = next
    else operands++
  }
  return { command, operands }
}

function optionOf(command: Command, flag: string): Option | undefined {
  return command.options.find(({ long, short }) => flag === long || flag === short)
}

function takesValue(option: Option): boolean {
  return option.required || option.optional
}

function valuesOf(option: Option): Completion[] {
  return (option.argChoices ?? []).map((word) => ({ word, about: '' }))
}

function commandsOf(command: Command): Completion[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((subcommand) => ({
      word: subcommand.name(),
      about: subcommand.summary() || subcommand.description(),
    }))
}

function optionsOf(command: Command): Completion[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map((option) => ({ word: option.long ?? option.short ?? '', about: option.description }))
}

function argumentsOf(command: Command): Completion[] {
  return command.registeredArguments.flatMap((argument) => {
    const words = argument instanceof NamedArgument ? argument.names() : (argument.argChoices ?? [])
    return words.map((word) => ({ word, about: '' }))
  })
}

function starting(typed: string, all: readonly Completion[]): Completion[] {
  return all.filter(({ word }) => word.startsWith(typed))
}
