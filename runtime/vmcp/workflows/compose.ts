/**
 * Which composite tools clients see, and how: one is listed when every tool that it uses can be routed to.
 *
 * A step names its tool by the name in the routing table, or as `workload.tool` with the backend's own name for it, which
 * stays right whatever becomes of conflicts. What a tool says of itself (read-only, destructive …) sets the least that
 * the workflow must admit; a definition that claims more harmlessness is left out.
 * Source: docs/specification/virtual-server.md#compositeTools, compositeTools, steps (tool); MCP, ToolAnnotations.
 */
import { fieldsOf } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Composer, CatalogNotice, ToolEntry } from '../catalog/types.ts'
import type { Workflow } from './compile.ts'
import type { WorkflowTool, WorkflowParts } from './context.ts'
import { outputSchema } from './evaluation/index.ts'
import { runWorkflow } from './run.ts'
import { once } from '../pipeline/once.ts'

/** A workflow that cannot be offered, whatever tools there are. */
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
  return (tools) => {
    const entries: ToolEntry[] = []
    const problems: CatalogNotice[] = [...always]
    const find = finder(tools)
    for (const workflow of workflows) {
      const made = entryOf(workflow, find, parts)
      if (typeof made === 'string') problems.push(noticeOf(workflow.name, made))
      else entries.push(made)
    }
    return { entries, problems }
  }
}

function noticeOf(name: string, reason: string): CatalogNotice {
  return { kind: 'workflow', subject: name, message: `workflow ${name} is left out: ${reason}` }
}

type Find = (name: string) => ToolEntry | undefined

/** By routing name, by the backend's own name, by the name that an override gave; in this order. */
function finder(tools: ReadonlyMap<string, ToolEntry>): Find {
  const own = new Map<string, ToolEntry>()
  const overridden = new Map<string, ToolEntry>()
  for (const entry of tools.values()) {
    own.set(`${entry.backend}.${entry.original}`, entry)
    overridden.set(`${entry.backend}.${entry.base}`, entry)
  }
  return (name) => tools.get(name) ?? own.get(name) ?? overridden.get(name)
}

/** The entry of a workflow; a string says why there is none. */
function entryOf(workflow: Workflow, find: Find, parts: WorkflowParts): ToolEntry | string {
  const bound = new Map<string, WorkflowTool>()
  const missing: string[] = []
  for (const name of workflow.tools) {
    const entry = find(name)
    if (entry)
      bound.set(name, { entry, inputSchema: once(() => new JsonObject(entry.json).value('inputSchema')) })
    else missing.push(name)
  }
  if (missing.length > 0) return `there is no tool ${missing.join(', ')}`
  const annotations = annotationsOf(workflow, [...bound.values()])
  if (typeof annotations === 'string') return annotations
  const { name, mirrored } = workflow
  return {
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

/** What is known of all tools together; what a tool does not say counts as the worse. */
function annotationsOf(
  { definition }: Workflow,
  tools: readonly WorkflowTool[],
): Readonly<Record<string, unknown>> | string {
  const own = Object.fromEntries(
    Object.entries(definition.annotations ?? {}).filter(([, value]) => value !== undefined && value !== null),
  )
  if (tools.length === 0) return own
  const hints = tools.map(({ entry }) => entry.annotations)
  const floor = {
    readOnlyHint: hints.every(({ readOnlyHint }) => readOnlyHint === true),
    // A tool that only reads destroys nothing, unless it says so.
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
  if (claims.length > 0) return `its annotations claim ${claims.join(', ')}, which its tools do not bear out`
  return { ...floor, ...own }
}
