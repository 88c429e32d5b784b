/**
 * Checks the syntax of a workflow's template and finds out which outputs of which steps it reads.
 *
 * The language is that of Go text/template with json, fromJson and quote. Only what can be known without values is
 * checked: structure, functions, variables. Source: spec document 3, "Templates use double-brace expressions".
 */
import { actionsOf, type Word } from './lexer.ts'

export interface StepRead {
  readonly step: string
  /** First field of the step's output; undefined when the output is read as a whole, or something else of the step. */
  readonly field: string | undefined
}

/** What the template reads of other steps; a string says what is wrong with it. */
export function readTemplate(template: string): readonly StepRead[] | string {
  const actions = actionsOf(template)
  if (typeof actions === 'string') return actions
  return new Reader().read(actions)
}

const functions: ReadonlySet<string> = new Set(
  'and or not eq ne lt le gt ge len index slice print printf println html js urlquery call json fromJson quote'.split(
    ' ',
  ),
)
const constants: ReadonlySet<string> = new Set(['true', 'false', 'nil'])
/** Blocks in which the dot is something else than the root. */
const movesDot: ReadonlySet<string> = new Set(['range', 'with', 'define', 'block'])

/** Nesting of parentheses that is followed. */
const maxDepth = 100

interface Block {
  readonly keyword: string
  readonly variables: number
  hasElse: boolean
}

/** Fault of a template, thrown and caught inside this file only. */
class Fault extends Error {}

class Reader {
  readonly #blocks: Block[] = []
  readonly #variables: string[] = ['$']
  readonly #reads: StepRead[] = []
  #words: readonly Word[] = []
  #at = 0
  #depth = 0

  read(actions: readonly (readonly Word[])[]): readonly StepRead[] | string {
    try {
      for (const words of actions) {
        this.#words = words
        this.#at = 0
        this.#action()
      }
      const open = this.#blocks.at(-1)
      return open ? `${open.keyword} has no end` : this.#reads
    } catch (error) {
      if (error instanceof Fault) return error.message
      throw error
    }
  }

  #action(): void {
    const first = this.#words[0]
    if (!first) throw new Fault('an action is empty')
    const keyword = first.kind === 'identifier' ? first.text : ''
    if (keyword === 'if' || keyword === 'range' || keyword === 'with') return this.#open(keyword)
    if (keyword === 'define' || keyword === 'block' || keyword === 'template') return this.#named(keyword)
    if (keyword === 'else') return this.#else()
    if (keyword === 'end') return this.#end()
    if (keyword === 'break' || keyword === 'continue') return this.#jump(keyword)
    this.#pipeline()
    return this.#nothingMore()
  }

  #open(keyword: string): void {
    this.#at = 1
    this.#blocks.push({ keyword, variables: this.#variables.length, hasElse: false })
    this.#pipeline(keyword)
    this.#nothingMore()
  }

  #named(keyword: string): void {
    const name = this.#words[1]
    if (name?.kind !== 'literal') throw new Fault(`${keyword} needs a name in quotes`)
    this.#at = 2
    if (keyword !== 'define' && this.#at < this.#words.length) this.#pipeline()
    this.#nothingMore()
    if (keyword !== 'template') {
      this.#blocks.push({ keyword, variables: this.#variables.length, hasElse: false })
    }
  }

  #else(): void {
    const block = this.#blocks.at(-1)
    if (!block || block.hasElse || block.keyword === 'define' || block.keyword === 'block') {
      throw new Fault('else has no if, with or range')
    }
    const next = this.#words[1]
    this.#at = 1
    if (next) {
      const again = next.kind === 'identifier' ? next.text : ''
      if (again !== block.keyword || again === 'range')
        throw new Fault('else is followed by what is not expected')
      this.#at = 2
      this.#pipeline(again)
    } else block.hasElse = true
    this.#nothingMore()
  }

  #end(): void {
    const block = this.#blocks.pop()
    if (!block) throw new Fault('end has nothing to end')
    this.#variables.length = block.variables
    this.#at = 1
    this.#nothingMore()
  }

  #jump(keyword: string): void {
    if (!this.#blocks.some((block) => block.keyword === 'range'))
      throw new Fault(`${keyword} is not in a range`)
    this.#at = 1
    this.#nothingMore()
  }

  /** `$x := …`, `$i, $x := …` (range only), `$x = …`, or commands joined by `|`. */
  #pipeline(keyword = ''): void {
    const declared = this.#declaration(keyword)
    let commands = 0
    do {
      this.#command()
      commands += 1
    } while (this.#mark('|'))
    if (commands === 0) throw new Fault('a pipeline is empty')
    this.#variables.push(...declared)
  }

  #declaration(keyword: string): readonly string[] {
    const first = this.#words[this.#at]
    const second = this.#words[this.#at + 1]
    if (first?.kind !== 'variable' || first.names.length > 0 || second?.kind !== 'mark') return []
    if (second.text === '=') {
      this.#known(first.name)
      this.#at += 2
      return []
    }
    const names = [first.name]
    let at = this.#at + 1
    if (second.text === ',') {
      const other = this.#words[this.#at + 2]
      if (keyword !== 'range' || other?.kind !== 'variable')
        throw new Fault('too many variables are declared')
      names.push(other.name)
      at = this.#at + 3
    }
    const sign = this.#words[at]
    if (sign?.kind !== 'mark' || (sign.text !== ':=' && sign.text !== '=')) return []
    this.#at = at + 1
    return names
  }

  #command(): void {
    const first = this.#words[this.#at]
    if (first?.kind === 'identifier' && !constants.has(first.text)) {
      if (!functions.has(first.text)) throw new Fault(`the function ${first.text} is not known`)
      this.#at += 1
    } else if (!this.#operand()) throw new Fault('a value is missing')
    while (this.#operand()) continue
  }

  /** One argument; false at the end of the command. */
  #operand(): boolean {
    const word = this.#words[this.#at]
    if (!word || (word.kind === 'mark' && word.text !== '(' && word.text !== '.')) return false
    this.#at += 1
    switch (word.kind) {
      case 'field':
        if (!this.#blocks.some((block) => movesDot.has(block.keyword))) this.#note(word.names)
        return true
      case 'variable':
        this.#known(word.name)
        if (word.name === '$') this.#note(word.names)
        return true
      case 'identifier':
        if (!constants.has(word.text) && !functions.has(word.text))
          throw new Fault(`the function ${word.text} is not known`)
        return true
      case 'mark':
        if (word.text === '(') this.#parenthesis()
        return true
      case 'chain':
        throw new Fault('a field stands where none is expected')
      default:
        return true
    }
  }

  #parenthesis(): void {
    this.#depth += 1
    if (this.#depth > maxDepth) throw new Fault('parentheses are nested too deep')
    this.#pipeline()
    this.#depth -= 1
    if (!this.#mark(')')) throw new Fault('a parenthesis is not closed')
    if (this.#words[this.#at]?.kind === 'chain') this.#at += 1
  }

  #mark(text: string): boolean {
    const word = this.#words[this.#at]
    if (word?.kind !== 'mark' || word.text !== text) return false
    this.#at += 1
    return true
  }

  #known(name: string): void {
    if (!this.#variables.includes(name)) throw new Fault(`the variable ${name} is not declared`)
  }

  #nothingMore(): void {
    if (this.#at < this.#words.length) throw new Fault('an action has more words than expected')
  }

  #note([root, step, part, field]: readonly string[]): void {
    if (root === 'steps' && step !== undefined) {
      this.#reads.push({ step, field: part === 'output' ? field : undefined })
    }
  }
}
