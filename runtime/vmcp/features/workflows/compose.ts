/**
 * Determines which composite tools clients see, and in which form. A composite tool is listed if every tool that it
 * needs is routable. A composite tool does not need the tools of steps that continue with `defaultResults`.
 *
 * A step refers to its tool by the name in the routing table, or as `workload.tool` with the backend's own tool name.
 * The second form also works if another backend has taken the tool's client-facing name. A workflow must declare at
 * least the annotations of its tools (read-only, destructive …). A definition that claims to be less harmful is left
 * out.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools, steps (tool); MCP,
 * ToolAnnotations.
 */
import { fieldsOf } from '../../../../schemas/index.ts'
import { JsonObject } from '../../../mcp/index.ts'
import type { Composer, CatalogNotice, ToolEntry } from '../../model/catalog/entries.ts'
import type { Workflow } from './compile.ts'
import type { WorkflowTool, WorkflowParts } from './context.ts'
import { runWorkflow } from './run.ts'
import { qualifiedName } from '../../catalog/tools.ts'
import { once } from './evaluation/state.ts'
import { outputSchema } from './evaluation/output.ts'

/** A workflow that can never be offered. */
export interface LeftOut {
  readonly name: string
  readonly reason: string
}

export function makeComposer(
  workflows: readonly Workflow[],
  leftOut: readonly LeftOut[],
  parts: WorkflowParts,
): Composer {
  const always = leftOut.map(({ name, reason }) => noticeOf(name, reason))
  return (tools, { unnamed, absent } = { unnamed: [], absent: [] }) => {
    const entries: ToolEntry[] = []
    const problems: CatalogNotice[] = [...always]
    const find = finder(tools, unnamed)
    const findAbsent = finder(new Map(absent.map((entry) => [entry.key, entry])), [])
    for (const workflow of workflows) {
      const made = entryOf(workflow, find, findAbsent, parts)
      if (typeof made === 'string') {
        problems.push(noticeOf(workflow.name, made))
        continue
      }
      entries.push(made.entry)
      if (made.without.length > 0) problems.push(partialNotice(workflow.name, made.without))
    }
    return { entries, problems }
  }
}

function noticeOf(name: string, reason: string): CatalogNotice {
  return { kind: 'workflow', subject: name, message: `workflow ${name} is left out: ${reason}` }
}

function partialNotice(name: string, tools: readonly string[]): CatalogNotice {
  const unknown = tools.join(', ')
  const message = `workflow ${name} runs without its unknown tools (${unknown}): their steps use defaultResults`
  return { kind: 'workflow', subject: name, message }
}

type Find = (name: string) => ToolEntry | undefined

/**
 * Finds a tool by its routing name, by the backend's own name, or by the name that an override assigns, in that order.
 * A routing name does not hide another backend's tool with the address `workload.tool`.
 */
function finder(tools: ReadonlyMap<string, ToolEntry>, unnamed: readonly ToolEntry[]): Find {
  const own = new Map<string, ToolEntry>()
  const overridden = new Map<string, ToolEntry>()
  for (const entry of [...unnamed, ...tools.values()]) {
    own.set(qualifiedName(entry), entry)
    overridden.set(`${entry.backend}.${entry.base}`, entry)
  }
  return (name) => {
    const [routed, named] = [tools.get(name), own.get(name)]
    if (routed && named && routed.backend !== named.backend) return named
    return routed ?? named ?? overridden.get(name)
  }
}

interface MadeEntry {
  readonly entry: ToolEntry
  /** Optional tools that no backend offers. */
  readonly without: readonly string[]
}

/** Returns a workflow's entry. Returns a reason as a string if the workflow cannot be offered. */
function entryOf(workflow: Workflow, find: Find, findAbsent: Find, parts: WorkflowParts): MadeEntry | string {
  const bound = new Map<string, WorkflowTool>()
  const missing: string[] = []
  const without: string[] = []
  for (const name of workflow.tools) {
    const isOptional = workflow.optionalTools.has(name)
    const entry = find(name) ?? (isOptional ? findAbsent(name) : undefined)
    if (entry)
      bound.set(name, { entry, inputSchema: once(() => new JsonObject(entry.json).value('inputSchema')) })
    else (isOptional ? without : missing).push(name)
  }
  if (missing.length > 0) return `unknown tool ${missing.join(', ')}`
  const known = [...bound.values()].map(({ entry }) => entry.annotations)
  const annotations = annotationsOf(workflow, [...known, ...without.map(() => ({}))])
  if (typeof annotations === 'string') return annotations
  const { name, mirrored } = workflow
  const entry: ToolEntry = {
    key: name,
    backend: '',
    original: name,
    base: name,
    json: Buffer.from(JSON.stringify(listed(workflow, annotations))),
    advertised: true,
    mirrored,
    annotations,
    run: (operation) => runWorkflow(workflow, bound, operation, parts),
  }
  return { entry, without }
}

function listed({ definition }: Workflow, annotations: Readonly<Record<string, unknown>>): object {
  const { name, description, parameters, output } = definition
  const hasParameters = Object.keys(fieldsOf(parameters)).length > 0
  return {
    name,
    ...(description ? { description } : {}),
    inputSchema: hasParameters ? parameters : { type: 'object' },
    ...(output ? { outputSchema: outputSchema(output) } : {}),
    ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
  }
}

/** Combines the annotations of all tools. A missing hint is treated as the less safe value. */
function annotationsOf(
  { definition }: Workflow,
  hints: readonly Readonly<Record<string, unknown>>[],
): Readonly<Record<string, unknown>> | string {
  const own = Object.fromEntries(
    Object.entries(definition.annotations ?? {}).filter(([, value]) => value !== undefined && value !== null),
  )
  if (hints.length === 0) return own
  const floor = {
    readOnlyHint: hints.every(({ readOnlyHint }) => readOnlyHint === true),
    // A read-only tool is not destructive unless its annotations claim otherwise.
    destructiveHint: hints.some(({ readOnlyHint, destructiveHint }) =>
      readOnlyHint === true ? destructiveHint === true : destructiveHint !== false,
    ),
    openWorldHint: hints.some(({ openWorldHint }) => openWorldHint !== false),
  }
  const claims = [
    ...(own['readOnlyHint'] === true && !floor.readOnlyHint ? ['readOnlyHint true'] : []),
    ...(own['destructiveHint'] === false && floor.destructiveHint ? ['destructiveHint false'] : []),
    ...(own['openWorldHint'] === false && floor.openWorldHint ? ['openWorldHint false'] : []),
  ]
  if (claims.length > 0)
    return `the workflow's annotations claim ${claims.join(', ')}, but the annotations of its tools contradict this`
  return { ...floor, ...own }
}
