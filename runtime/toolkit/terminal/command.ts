/**
 * The Commander class for every command. The help fits the terminal, and switches accept a value (`--debug=true`), as
 * in Go programs.
 */
import { Argument, Command, Help, type Option } from 'commander'

/** Longer terms are printed on a separate line in help. */
const maxTermWidth = 32

export class CliCommand extends Command {
  #endsAtOperand = false

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name)
  }

  override createHelp(): Help {
    return Object.assign(new CliHelp(), this.configureHelp())
  }

  override passThroughOptions(passThrough = true): this {
    this.#endsAtOperand = passThrough
    return super.passThroughOptions(passThrough)
  }

  override parseOptions(args: string[]): ReturnType<Command['parseOptions']> {
    const words = this.#withPlainSwitches(this.#withHelpAsOption(args))
    const parsed = super.parseOptions(words)
    if (this.#areLiteral(parsed, words)) (this.commands as CliCommand[]).length = 0
    return parsed
  }

  /**
   * True when this command takes operands and all given operands follow `--`. Such operands never name a subcommand,
   * although commander looks for one.
   */
  #areLiteral({ operands, unknown }: ReturnType<Command['parseOptions']>, words: readonly string[]): boolean {
    const at = words.indexOf('--')
    return (
      this.registeredArguments.length > 0 &&
      at >= 0 &&
      unknown.length === 0 &&
      operands.length === words.length - at - 1
    )
  }

  /**
   * Rewrites `help a b` to `a b --help`, because commander reads only one word after `help`. Drops `--help` after an
   * unknown command, so that commander reports the unknown command instead of printing unrelated help.
   */
  #withHelpAsOption(args: string[]): string[] {
    const names = this.createHelp()
      .visibleCommands(this)
      .map((command) => command.name())
    const at = args.findIndex((arg) => !arg.startsWith('-'))
    // A command with an action has no `help` subcommand, so the word is an operand.
    if (at < 0 || !names.includes('help')) return args
    const [word = '', ...rest] = args.slice(at)
    const path = word === 'help' ? rest.filter((arg) => !arg.startsWith('-')) : [word, ...rest]
    const [name = 'help'] = path
    if (name === 'help') return [...args.slice(0, at), 'help']
    if (word === 'help') return this.#withHelpAsOption([...args.slice(0, at), ...path, '--help'])
    const isCommand = this.commands.some((command) => command.name() === name)
    return isCommand ? args : args.filter((arg) => arg !== '--help' && arg !== '-h')
  }

  /**
   * Rewrites `--switch=true` to `--switch` and drops `--switch=false`. Keeps other values, which the parser rejects.
   */
  #withPlainSwitches(args: readonly string[]): string[] {
    const plain: string[] = []
    for (const [index, arg] of args.entries()) {
      if (arg === '--' || (this.#endsAtOperand && this.#isOperand(args, index))) {
        return [...plain, ...args.slice(index)]
      }
      const [, flag = '', value] = /^(--[^=]+)=(true|false)$/i.exec(arg) ?? []
      if (value === undefined || !this.#option(flag)?.isBoolean()) plain.push(arg)
      else if (value.toLowerCase() === 'true') plain.push(flag)
    }
    return plain
  }

  #option(flag: string): Option | undefined {
    return this.options.find(({ long, short }) => flag === long || flag === short)
  }

  #isOperand(args: readonly string[], index: number): boolean {
    const before = this.#option(args[index - 1] ?? '')
    return !args[index]?.startsWith('-') && !before?.required && !before?.optional
  }
}

/** Returns the options that precede a subcommand and have no effect on it, as in `gatehouse --debug validate`. */
export function droppedOptions(action: Command): readonly string[] {
  const writesLog = action.options.some(({ long }) => long === '--log-level')
  const dropped: string[] = []
  for (let above = action.parent; above; above = above.parent) {
    const { options } = above
    const setOptions = options.filter(
      (option) => above?.getOptionValueSource(option.attributeName()) === 'cli',
    )
    dropped.push(
      ...setOptions.flatMap(({ long }) => (long && !(long === '--debug' && writesLog) ? [long] : [])),
    )
  }
  return dropped
}

/** An argument whose suggested values are computed on demand. Values that are not suggested are also accepted. */
export class NamedArgument extends Argument {
  /** Returns the suggestions for shell completion. */
  readonly names: () => readonly string[]

  constructor(form: string, description: string, names: () => readonly string[]) {
    super(form, description)
    this.names = names
  }
}

/** True for default values that contain no information. */
function isTrivial(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value === false
  return value instanceof Map ? value.size === 0 : Object.keys(value).length === 0
}

class CliHelp extends Help {
  override padWidth(command: Command, helper: Help): number {
    return Math.min(super.padWidth(command, helper), maxTermWidth)
  }

  /** Omits trivial defaults such as `(default: [])` and `(default: false)`. */
  override optionDescription(option: Option): string {
    return isTrivial(option.defaultValue) ? option.description : super.optionDescription(option)
  }

  /** Joins the lines of long descriptions, so that they wrap at the terminal's width. */
  override commandDescription(command: Command): string {
    return super.commandDescription(command).replace(/(?<![.:])\n/g, ' ')
  }

  override formatItem(term: string, termWidth: number, description: string, helper: Help): string {
    if (helper.displayWidth(term) <= termWidth || description === '') {
      return super.formatItem(term, termWidth, description, helper)
    }
    const below = super.formatItem('', termWidth, description, helper)
    return `  ${term}\n${below.replace(/^ +/, ' '.repeat(termWidth + 4))}`
  }
}
