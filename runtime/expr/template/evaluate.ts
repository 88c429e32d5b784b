/**
 * Evaluates a workflow template to text, or a single action to its value. The evaluation is pure: it uses no clock,
 * randomness or I/O, and performs a bounded amount of work.
 *
 * The result differs from Go's in cases in which Go fails or prints unusable text: a field of null has no value, and
 * numbers compare by value. Whole numbers are printed without an exponent and are valid indexes.
 * Source: Go text/template; docs/reference/specification/virtual-server.md#compositeTools, compositeTools.
 */
import type { Command, Node, Operand, Pipe, Template } from '../../../schemas/workflow/index.ts'
import { callFunction } from './functions.ts'
import { type TemplateMeter, MeteredOutput } from './meter.ts'
import { writeAction } from './print.ts'
import {
  EvaluationError,
  fieldOf,
  integerOf,
  isList,
  isNil,
  isObject,
  sortedNames,
  truth,
  typeName,
  type TemplateValue,
} from './value.ts'

/** Returns the text of a template. Throws EvaluationError and WorkLimitError. */
export function expand(template: Template, data: TemplateValue, meter: TemplateMeter): string {
  const run = new Run(template, meter, new MeteredOutput(meter))
  run.start(template.body, data)
  return run.text
}

/** True when the template is a single action. The action's value then needs no conversion to text. */
export function isSingleAction({ body }: Template): boolean {
  const [first] = body
  return body.length === 1 && first?.kind === 'action' && first.pipe.variables.length === 0
}

/**
 * Returns the value of a single action, or undefined when the action has no value. Throws EvaluationError and
 * WorkLimitError.
 */
export function valueOf(template: Template, data: TemplateValue, meter: TemplateMeter): TemplateValue {
  const [first] = template.body
  if (!isSingleAction(template) || first?.kind !== 'action')
    throw new TypeError('the template contains more than one action')
  return new Run(template, meter, new MeteredOutput(meter)).pipe(first.pipe, data)
}

interface Variable {
  readonly name: string
  value: TemplateValue
}

/** Value piped into a command from the previous command. */
type Final = readonly [] | readonly [TemplateValue]

type Jump = 'break' | 'continue' | undefined

class Run {
  readonly #template: Template
  readonly #meter: TemplateMeter
  readonly #out: MeteredOutput
  #variables: Variable[] = []
  #calls = 0

  constructor(template: Template, meter: TemplateMeter, out: MeteredOutput) {
    this.#template = template
    this.#meter = meter
    this.#out = out
  }

  get text(): string {
    return this.#out.text
  }

  /** Evaluates a body with `dot` as its root. */
  start(body: readonly Node[], dot: TemplateValue): void {
    const outer = this.#variables
    this.#variables = [{ name: '$', value: dot }]
    this.#nodes(body, dot)
    this.#variables = outer
  }

  #nodes(nodes: readonly Node[], dot: TemplateValue): Jump {
    const depth = this.#variables.length
    let jump: Jump
    for (const node of nodes) {
      jump = this.#node(node, dot)
      if (jump) break
    }
    this.#variables.length = depth
    return jump
  }

  #node(node: Node, dot: TemplateValue): Jump {
    this.#meter.spend()
    switch (node.kind) {
      case 'text':
        this.#out.write(node.text)
        return undefined
      case 'action': {
        const value = this.pipe(node.pipe, dot)
        if (node.pipe.variables.length === 0) writeAction(value, this.#out)
        return undefined
      }
      case 'template':
        this.#call(node.name, node.pipe && this.pipe(node.pipe, dot))
        return undefined
      case 'break':
      case 'continue':
        return node.kind
      default:
        return this.#block(node, dot)
    }
  }

  #call(name: string, dot: TemplateValue): void {
    this.#meter.checkDepth(++this.#calls)
    this.start(this.#template.named.get(name) ?? [], dot)
    this.#calls -= 1
  }

  #block(
    { kind, pipe, body, otherwise }: Extract<Node, { readonly body: unknown }>,
    dot: TemplateValue,
  ): Jump {
    const depth = this.#variables.length
    const value = this.pipe(pipe, dot, kind === 'range')
    const jump =
      kind === 'range'
        ? this.#range(value, { pipe, body, otherwise }, dot)
        : truth(value)
          ? this.#nodes(body, kind === 'with' ? value : dot)
          : this.#nodes(otherwise, dot)
    this.#variables.length = depth
    return jump
  }

  /** Catches breaks in the body. Breaks in the else part belong to an outer range. */
  #range(
    value: TemplateValue,
    { pipe, body, otherwise }: { pipe: Pipe; body: readonly Node[]; otherwise: readonly Node[] },
    dot: TemplateValue,
  ): Jump {
    const names = pipe.variables
    const depth = this.#variables.length
    let isEmpty = true
    for (const [key, item] of this.#items(value)) {
      isEmpty = false
      this.#meter.spend()
      this.#bind(names, pipe.assigns, names.length > 1 ? [key, item] : [item])
      const jump = this.#nodes(body, item)
      if (!pipe.assigns) this.#variables.length = depth
      if (jump === 'break') break
    }
    return isEmpty ? this.#nodes(otherwise, dot) : undefined
  }

  *#items(value: TemplateValue): Iterable<readonly [TemplateValue, TemplateValue]> {
    if (isNil(value)) return
    const count = integerOf(value)
    if (count !== undefined) for (let at = 0n; at < count; at++) yield [at, at]
    else if (isList(value)) for (const [at, item] of value.entries()) yield [BigInt(at), item]
    else if (isObject(value)) {
      const names = sortedNames(value)
      this.#meter.spend(names.length)
      for (const name of names) yield [name, value[name]]
    } else throw new EvaluationError(`range can't iterate over a value of type ${typeName(value)}`)
  }

  #bind(names: readonly string[], assigns: boolean, values: readonly TemplateValue[]): void {
    for (const [index, name] of names.entries()) {
      const value = values[index]
      if (assigns) this.#variable(name).value = value
      else this.#variables.push({ name, value })
    }
  }

  #variable(name: string): Variable {
    this.#meter.spend(1 + (this.#variables.length >> 5))
    const found = this.#variables.findLast((variable) => variable.name === name)
    if (!found) throw new EvaluationError(`undefined variable: ${name}`)
    return found
  }

  /** Returns a pipe's value and sets its variables. A range sets its own variables. */
  pipe({ variables, assigns, commands }: Pipe, dot: TemplateValue, isRange = false): TemplateValue {
    let final: Final = []
    for (const command of commands) final = [this.#command(command, dot, final)]
    if (!isRange) this.#bind(variables, assigns, [final[0]])
    return final[0]
  }

  #command([first, ...rest]: Command, dot: TemplateValue, final: Final): TemplateValue {
    this.#meter.spend()
    if (first.kind === 'function') return this.#function(first.name, rest, dot, final)
    if (rest.length > 0 || final.length > 0) throw new EvaluationError("can't give argument to non-function")
    if (first.kind === 'nil') throw new EvaluationError('nil is not a command')
    return this.#operand(first, dot)
  }

  #operand(operand: Operand, dot: TemplateValue): TemplateValue {
    this.#meter.spend()
    switch (operand.kind) {
      case 'dot':
        return dot
      case 'nil':
        return undefined
      case 'field':
        return fieldsOf(dot, operand.names)
      case 'variable':
        return fieldsOf(this.#variable(operand.name).value, operand.names)
      case 'function':
        return this.#function(operand.name, [], dot, [])
      case 'pipe':
        return this.pipe(operand.pipe, dot)
      case 'chain':
        return fieldsOf(this.#operand(operand.of, dot), operand.names)
      default:
        return operand.value
    }
  }

  #function(
    name: Extract<Operand, { kind: 'function' }>['name'],
    operands: readonly Operand[],
    dot: TemplateValue,
    final: Final,
  ): TemplateValue {
    if (name === 'and' || name === 'or') return this.#decide(name, operands, dot, final)
    return callFunction(
      name,
      [...operands.map((operand) => this.#operand(operand, dot)), ...final],
      this.#meter,
    )
  }

  /** Returns the first value that decides the result, or the last value. Does not evaluate the remaining arguments. */
  #decide(name: 'and' | 'or', operands: readonly Operand[], dot: TemplateValue, final: Final): TemplateValue {
    if (operands.length + final.length === 0)
      throw new EvaluationError(`wrong number of args for ${name}: want at least 1 got 0`)
    let value: TemplateValue
    for (const operand of operands) {
      value = this.#operand(operand, dot)
      if (truth(value) === (name === 'or')) return value
    }
    return final.length > 0 ? final[0] : value
  }
}

function fieldsOf(value: TemplateValue, names: readonly string[]): TemplateValue {
  return names.reduce<TemplateValue>(fieldOf, value)
}
