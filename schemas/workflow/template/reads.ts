/**
 * Finds the paths that a template reads, except for paths that depend on values.
 *
 * Follows `with`, variables, named templates, and `index` with literal names. Does not follow list items or the results
 * of other functions.
 */
import type { Command, Node, Operand, Pipe, Template } from './tree.ts'

/** Path as a list of names, from the root down. */
export type Path = readonly string[]

/**
 * Maximum number of visits to named templates. The search visits a named template once for each dot with which the
 * template is called.
 */
const maxVisits = 1000
/** Maximum number of recorded names per path. No check needs more names. */
const maxNames = 8

export function pathsRead(template: Template): readonly Path[] {
  const reads: Path[] = []
  const queue: { body: readonly Node[]; dot: Path | undefined }[] = [{ body: template.body, dot: [] }]
  const visited = new Set<string>()
  const call = (name: string, dot: Path | undefined) => {
    const key = JSON.stringify([name, dot])
    const body = template.named.get(name)
    if (!body || visited.has(key) || visited.size >= maxVisits) return
    visited.add(key)
    queue.push({ body, dot })
  }
  for (let next = queue.shift(); next; next = queue.shift())
    new Reading(reads, call, next.dot).nodes(next.body, next.dot)
  return reads
}

interface Variable {
  readonly name: string
  path: Path | undefined
}

class Reading {
  readonly #reads: Path[]
  readonly #call: (name: string, dot: Path | undefined) => void
  readonly #variables: Variable[]

  constructor(reads: Path[], call: (name: string, dot: Path | undefined) => void, dot: Path | undefined) {
    this.#reads = reads
    this.#call = call
    this.#variables = [{ name: '$', path: dot }]
  }

  nodes(nodes: readonly Node[], dot: Path | undefined): void {
    const depth = this.#variables.length
    for (const node of nodes) this.#node(node, dot)
    this.#variables.length = depth
  }

  #node(node: Node, dot: Path | undefined): void {
    switch (node.kind) {
      case 'action':
        this.#pipe(node.pipe, dot)
        return
      case 'template':
        this.#call(node.name, node.pipe && this.#pipe(node.pipe, dot))
        return
      case 'if':
      case 'with':
      case 'range': {
        const depth = this.#variables.length
        const path = this.#pipe(node.pipe, dot, node.kind === 'range')
        this.nodes(node.body, node.kind === 'if' ? dot : node.kind === 'with' ? path : undefined)
        this.nodes(node.otherwise, dot)
        this.#variables.length = depth
        return
      }
      default:
    }
  }

  /** Returns the path of the value, or undefined when the path is unknown. */
  #pipe({ variables, assigns, commands }: Pipe, dot: Path | undefined, isRange = false): Path | undefined {
    let path: Path | undefined
    for (const [index, command] of commands.entries()) {
      const own = this.#command(command, dot)
      path = index === 0 ? own : undefined
    }
    for (const name of variables) {
      const known = this.#variables.findLast((variable) => variable.name === name)
      if (!assigns) this.#variables.push({ name, path: isRange ? undefined : path })
      else if (known) known.path = undefined
    }
    return path
  }

  #command(command: Command, dot: Path | undefined): Path | undefined {
    const [first, ...rest] = command
    const paths = command.map((operand) => this.#operand(operand, dot))
    if (first.kind !== 'function') return paths[0]
    const names = rest.slice(1).map((operand) => (operand.kind === 'string' ? operand.value : undefined))
    return first.name === 'index' && names.every((name) => name !== undefined)
      ? this.#read(paths[1], names)
      : undefined
  }

  #operand(operand: Operand, dot: Path | undefined): Path | undefined {
    switch (operand.kind) {
      case 'dot':
        return dot
      case 'field':
        return this.#read(dot, operand.names)
      case 'variable':
        return this.#read(this.#variables.findLast(({ name }) => name === operand.name)?.path, operand.names)
      case 'pipe':
        return this.#pipe(operand.pipe, dot)
      case 'chain':
        return this.#read(this.#operand(operand.of, dot), operand.names)
      default:
        return undefined
    }
  }

  #read(from: Path | undefined, names: readonly string[]): Path | undefined {
    if (!from) return undefined
    const path = [...from, ...names].slice(0, maxNames)
    if (names.length > 0) this.#reads.push(path)
    return path
  }
}
