/** Finds every template in a workflow, parses it, and determines what it reads. */
import { fieldsOf, isFields } from '../validation/fields.ts'
import type { CompositeTool, OutputProperty, WorkflowStep } from '../generated/types.ts'
import { below, type Violation } from '../validation/violations.ts'
import { parseTemplate } from './template/parser.ts'
import { type Path, pathsRead } from './template/reads.ts'
import { TemplateError } from './template/tree.ts'

export interface TemplateRead {
  /** The template's path in the document. */
  readonly at: string
  /** The step that contains the template; undefined for the output, which comes last. */
  readonly reader: string | undefined
  /** Path that the template reads, from the root of its data. */
  readonly path: Path
}

export interface TemplateReads {
  readonly violations: readonly Violation[]
  readonly reads: readonly TemplateRead[]
}

/** Maximum number of levels below the first level at which `nestedTemplates` allows templates in arguments. */
export const maxArgumentDepth = 20
/** Maximum depth at which nested output properties are checked. */
const maxDepth = 10

/** Root names that templates can use. `forEach` exists only in inner steps. */
const roots: ReadonlySet<string> = new Set(['params', 'steps', 'vars', 'workflow'])

export function templateReads(tool: CompositeTool, path: string): TemplateReads {
  const violations: Violation[] = []
  const reads: TemplateRead[] = []
  for (const { at, text, reader, isInner } of textsOf(tool, path)) {
    try {
      const paths = pathsRead(parseTemplate(text))
      reads.push(...paths.map((read) => ({ path: read, at, reader })))
      violations.push(...rootViolations(paths, at, isInner))
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error
      violations.push({ path: at, message: `is not a template: ${error.message}`, rule: 'template' })
    }
  }
  return { violations, reads }
}

function rootViolations(paths: readonly Path[], at: string, isInner: boolean): Violation[] {
  const unknown = new Set(paths.flatMap(([root]) => root ?? []))
  return [...unknown].flatMap((root) => {
    if (roots.has(root) || (root === 'forEach' && isInner)) return []
    const hint =
      root === 'forEach'
        ? 'which exists only in the arguments of an inner step'
        : `which does not exist; the roots are ${[...roots].map((name) => `.${name}`).join(', ')}`
    return [{ path: at, message: `reads .${root.slice(0, 80)}, ${hint}` }]
  })
}

interface Text {
  readonly at: string
  readonly text: string
  readonly reader: string | undefined
  /** True for the inner step of a `forEach`. */
  readonly isInner: boolean
}

function* textsOf({ steps, output, nestedTemplates }: CompositeTool, path: string): Iterable<Text> {
  const depth = nestedTemplates === true ? maxArgumentDepth : 0
  for (const [index, step] of steps.entries()) yield* stepTexts(step, `${path}.steps[${index}]`, depth)
  for (const [name, property] of Object.entries(output?.properties ?? {}))
    yield* outputTexts(property, below(`${path}.output.properties`, name), 1)
}

function* stepTexts(step: WorkflowStep, path: string, depth: number): Iterable<Text> {
  const own = { reader: step.id, isInner: false }
  const { condition, message, collection } = step
  for (const [name, text] of Object.entries({ condition, message, collection })) {
    if (text !== undefined) yield { at: `${path}.${name}`, text, ...own }
  }
  yield* argumentTexts(step.arguments, `${path}.arguments`, own, depth)
  const inner = { reader: step.id, isInner: true }
  if (step.step?.condition !== undefined)
    yield { at: `${path}.step.condition`, text: step.step.condition, ...inner }
  yield* argumentTexts(step.step?.arguments, `${path}.step.arguments`, inner, depth)
}

/**
 * Yields the strings at the first level, which are templates, and the strings at up to `depth` lower levels. Source:
 * docs/reference/specification/virtual-server.md#steps, steps, arguments.
 */
function* argumentTexts(
  values: unknown,
  path: string,
  owner: { readonly reader: string; readonly isInner: boolean },
  depth: number,
): Iterable<Text> {
  const members: Iterable<readonly [string | number, unknown]> = Array.isArray(values)
    ? values.entries()
    : Object.entries(fieldsOf(values))
  for (const [name, value] of members) {
    const at = below(path, name)
    if (typeof value === 'string') yield { at, text: value, ...owner }
    else if (depth > 0) yield* argumentTexts(value, at, owner, depth - 1)
  }
}

function* outputTexts(property: OutputProperty, at: string, depth: number): Iterable<Text> {
  if (typeof property.value === 'string')
    yield { at: `${at}.value`, text: property.value, reader: undefined, isInner: false }
  if (depth > maxDepth) return
  for (const [name, inner] of Object.entries(fieldsOf(property.properties))) {
    if (isFields(inner)) yield* outputTexts(propertyOf(inner), below(`${at}.properties`, name), depth + 1)
  }
}

/** Nested properties are free-form in the schema; output.ts checks their shape. */
export function propertyOf(value: object): OutputProperty {
  return value as OutputProperty
}
