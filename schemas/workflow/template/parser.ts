/**
 * Parses a template into its syntax tree.
 *
 * Checks everything that does not depend on values: structure, functions, variables, named templates. A variable must
 * be declared before its use. Go detects some of these errors only at run time.
 * Source: Go text/template; docs/reference/specification/virtual-server.md, "Templates use double-brace expressions".
 */
import { piecesOf, type TemplateToken } from './lexer.ts'
import {
  type Command,
  type FunctionName,
  functionNames,
  type Node,
  type Operand,
  type Pipe,
  type Template,
  TemplateError,
} from './tree.ts'

/** Parses a template. Throws only TemplateError. */
export function parseTemplate(text: string): Template {
  return new Parser().parse(text)
}

/** Maximum nesting of blocks and parentheses. */
const maxDepth = 100
const maxVariables = 1000
const functions: ReadonlySet<string> = new Set(functionNames)
const constants: ReadonlySet<string> = new Set(['true', 'false', 'nil'])
const keywords: ReadonlySet<string> = new Set(
  'if with range else end break continue define template block'.split(' '),
)

type BlockWord = 'if' | 'with' | 'range' | 'define' | 'block'

interface Block {
  readonly word: BlockWord
  readonly pipe: Pipe | undefined
  /** The name in `define` and `block`. */
  readonly name: string
  readonly body: Node[]
  readonly otherwise: Node[]
  hasElse: boolean
  /** Variables in scope after the block. */
  readonly outside: readonly string[]
  /** Variables in scope at the beginning of the body, and again after `else`. */
  readonly inside: readonly string[]
  /** True for a block that `else if` opens. Such a block ends together with the enclosing block. */
  readonly joined: boolean
}

class Parser {
  readonly #root: Node[] = []
  readonly #named = new Map<string, readonly Node[]>()
  readonly #calls = new Set<string>()
  readonly #blocks: Block[] = []
  #variables: readonly string[] = ['$']
  #tokens: readonly TemplateToken[] = []
  #at = 0
  #depth = 0

  parse(text: string): Template {
    for (const piece of piecesOf(text)) {
      if ('text' in piece) this.#put({ kind: 'text', text: piece.text })
      else {
        this.#tokens = piece.action
        this.#at = 0
        this.#action()
        if (this.#at < this.#tokens.length) throw new TemplateError('an action has more words than expected')
      }
    }
    const open = this.#blocks.at(-1)
    if (open) throw new TemplateError(`${open.word} has no end`)
    for (const name of this.#calls) {
      if (!this.#named.has(name))
        throw new TemplateError(`the template ${JSON.stringify(name)} is not defined`)
    }
    return { body: this.#root, named: this.#named }
  }

  #put(node: Node): void {
    const block = this.#blocks.at(-1)
    const list = block ? (block.hasElse ? block.otherwise : block.body) : this.#root
    list.push(node)
  }

  #action(): void {
    const first = this.#tokens[0]
    if (!first) throw new TemplateError('an action is empty')
    const word = first.kind === 'word' ? first.text : ''
    if (!keywords.has(word)) return this.#put({ kind: 'action', pipe: this.#pipe('action') })
    this.#at = 1
    switch (word) {
      case 'if':
      case 'with':
      case 'range':
        return this.#open(word, { joined: false })
      case 'define':
      case 'block':
        return this.#openNamed(word)
      case 'template':
        return this.#call()
      case 'else':
        return this.#else()
      case 'end':
        return this.#end()
      default:
        return this.#jump(word === 'break' ? 'break' : 'continue')
    }
  }

  #open(word: 'if' | 'with' | 'range', { joined }: { readonly joined: boolean }): void {
    const outside = this.#variables
    const pipe = this.#pipe(word)
    this.#push({ word, pipe, name: '', outside, inside: this.#variables, joined })
  }

  #openNamed(word: 'define' | 'block'): void {
    if (word === 'define' && this.#blocks.length > 0)
      throw new TemplateError('define is not allowed inside a block')
    const name = this.#name(word)
    const outside = this.#variables
    const pipe = word === 'block' ? this.#pipe('template') : undefined
    if (pipe) this.#put({ kind: 'template', name, pipe })
    this.#variables = ['$']
    this.#push({ word, pipe, name, outside, inside: this.#variables, joined: false })
  }

  #push(block: Omit<Block, 'body' | 'otherwise' | 'hasElse'>): void {
    if (this.#blocks.length >= maxDepth) throw new TemplateError('blocks are nested too deeply')
    this.#blocks.push({ ...block, body: [], otherwise: [], hasElse: false })
  }

  #call(): void {
    const name = this.#name('template')
    this.#calls.add(name)
    const pipe = this.#at < this.#tokens.length ? this.#pipe('template') : undefined
    this.#put({ kind: 'template', name, pipe })
  }

  #name(word: string): string {
    const token = this.#tokens[this.#at]
    if (token?.kind !== 'string') throw new TemplateError(`${word} needs a name in quotes`)
    this.#at += 1
    return token.text
  }

  #else(): void {
    const block = this.#blocks.at(-1)
    if (!block || block.hasElse || block.word === 'define' || block.word === 'block')
      throw new TemplateError('else does not follow an if, with or range')
    block.hasElse = true
    this.#variables = block.inside
    const next = this.#tokens[this.#at]
    if (!next) return
    if (next.kind !== 'word' || next.text !== block.word || block.word === 'range')
      throw new TemplateError(`the else of ${block.word} has unexpected content`)
    this.#at += 1
    this.#open(block.word, { joined: true })
  }

  #end(): void {
    for (let joined = true; joined; ) {
      const block = this.#blocks.pop()
      if (!block) throw new TemplateError('end without a block')
      this.#variables = block.outside
      this.#close(block)
      joined = block.joined
    }
  }

  #close({ word, pipe, name, body, otherwise }: Block): void {
    if (word === 'define' || word === 'block') return this.#define(name, body)
    if (pipe) this.#put({ kind: word, pipe, body, otherwise })
  }

  /** A definition with content replaces an empty definition. */
  #define(name: string, body: readonly Node[]): void {
    const before = this.#named.get(name)
    const isBlank = (nodes: readonly Node[]) =>
      nodes.every((node) => node.kind === 'text' && node.text.trim() === '')
    if (before && !isBlank(before)) {
      if (isBlank(body)) return
      throw new TemplateError(`the template ${JSON.stringify(name)} is defined twice`)
    }
    this.#named.set(name, body)
  }

  #jump(word: 'break' | 'continue'): void {
    const last = (test: (block: Block) => boolean) => this.#blocks.findLastIndex(test)
    const range = last((block) => block.word === 'range' && !block.hasElse)
    if (range <= last((block) => block.word === 'define' || block.word === 'block'))
      throw new TemplateError(`${word} is not in a range`)
    this.#put({ kind: word })
  }

  /**
   * Parses `$x := …`, `$i, $x := …` (range only), `$x = …`, or commands joined by `|`. Stops at the end of the action
   * or at a parenthesis.
   */
  #pipe(word: string): Pipe {
    const { variables, assigns } = this.#declaration(word)
    const commands: Command[] = []
    for (;;) {
      const command = this.#command()
      if (commands.length > 0 && isValue(command[0]))
        throw new TemplateError('a value cannot receive piped input')
      commands.push(command)
      if (this.#peek()?.kind !== 'pipe') break
      this.#at += 1
      // Accepts a trailing bar, as Go does.
      const next = this.#peek()
      if (!next || next.kind === 'close') break
    }
    if (assigns) for (const name of variables) this.#known(name)
    else this.#declare(variables)
    return { variables, assigns, commands }
  }

  #declare(names: readonly string[]): void {
    if (names.length === 0) return
    this.#variables = [...new Set([...this.#variables, ...names])]
    if (this.#variables.length > maxVariables) throw new TemplateError('there are too many variables')
  }

  #declaration(word: string): { variables: readonly string[]; assigns: boolean } {
    const [first, second, third, fourth] = this.#tokens.slice(this.#at, this.#at + 4)
    if (first?.kind !== 'variable') return { variables: [], assigns: false }
    if (second?.kind === 'declare' || second?.kind === 'assign') {
      this.#at += 2
      return { variables: [first.text], assigns: second.kind === 'assign' }
    }
    if (second?.kind !== 'comma') return { variables: [], assigns: false }
    if (
      word !== 'range' ||
      third?.kind !== 'variable' ||
      (fourth?.kind !== 'declare' && fourth?.kind !== 'assign')
    )
      throw new TemplateError('only a range can declare two variables')
    this.#at += 4
    return { variables: [first.text, third.text], assigns: fourth.kind === 'assign' }
  }

  #command(): Command {
    const first = this.#operand()
    if (!first) throw new TemplateError('a value is missing')
    const rest: Operand[] = []
    for (let next = this.#peek(); next; next = this.#peek()) {
      if (next.kind === 'pipe' || next.kind === 'close') break
      if (!next.apart) throw new TemplateError(`a space is missing before ${JSON.stringify(next.text)}`)
      const operand = this.#operand()
      if (!operand) throw new TemplateError(`${JSON.stringify(next.text)} is not expected here`)
      rest.push(operand)
    }
    return [first, ...rest]
  }

  #peek(): TemplateToken | undefined {
    return this.#tokens[this.#at]
  }

  #operand(): Operand | undefined {
    const token = this.#peek()
    if (!token) return undefined
    const term = this.#term(token)
    if (!term) return undefined
    const names: string[] = []
    for (let next = this.#peek(); next && !next.apart && next.kind === 'field'; next = this.#peek()) {
      names.push(next.text)
      this.#at += 1
    }
    return names.length === 0 ? term : withFields(term, names)
  }

  #term(token: TemplateToken): Operand | undefined {
    this.#at += 1
    switch (token.kind) {
      case 'dot':
        return { kind: 'dot' }
      case 'field':
        return { kind: 'field', names: [token.text] }
      case 'variable':
        this.#known(token.text)
        return { kind: 'variable', name: token.text, names: [] }
      case 'word':
        return wordOperand(token.text)
      case 'string':
        return { kind: 'string', value: token.text }
      case 'int':
      case 'float':
        return typeof token.number === 'bigint'
          ? { kind: 'int', value: token.number }
          : { kind: 'float', value: token.number ?? 0 }
      case 'open':
        return this.#parenthesis()
      default:
        this.#at -= 1
        return undefined
    }
  }

  #parenthesis(): Operand {
    this.#depth += 1
    if (this.#depth > maxDepth) throw new TemplateError('parentheses are nested too deeply')
    const pipe = this.#pipe('parenthesis')
    this.#depth -= 1
    if (this.#peek()?.kind !== 'close') throw new TemplateError('unclosed parenthesis')
    this.#at += 1
    return { kind: 'pipe', pipe }
  }

  #known(name: string): void {
    if (!this.#variables.includes(name)) throw new TemplateError(`the variable ${name} is not declared`)
  }
}

function wordOperand(word: string): Operand {
  if (word === 'nil') return { kind: 'nil' }
  if (constants.has(word)) return { kind: 'bool', value: word === 'true' }
  if (!isFunction(word)) throw new TemplateError(`unknown function ${word}`)
  return { kind: 'function', name: word }
}

function isFunction(word: string): word is FunctionName {
  return functions.has(word)
}

function withFields(term: Operand, names: readonly string[]): Operand {
  switch (term.kind) {
    case 'field':
    case 'variable':
      return { ...term, names: [...term.names, ...names] }
    case 'pipe':
    case 'function':
      return { kind: 'chain', of: term, names }
    default:
      throw new TemplateError('field access on a value that has no fields')
  }
}

function isValue({ kind }: Operand): boolean {
  return kind !== 'field' && kind !== 'variable' && kind !== 'function' && kind !== 'pipe' && kind !== 'chain'
}
