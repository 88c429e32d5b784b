/**
 * Reserves the names of the server's own tools while the features that provide them are enabled. A backend's tool with
 * a reserved name would either hide the feature or be unreachable.
 */
import { serverTools } from '../names.ts'
import { fieldsOf } from './fields.ts'
import { below, type Violation } from './violations.ts'

/** The settings that enable the server's own tools, from `spec.config` or the runtime's file. */
export interface ToolFeatures {
  readonly optimizer?: unknown
  readonly codeMode?: { readonly enabled?: boolean | undefined } | undefined
}

/** Returns the names from `serverTools` that are in use. */
export function reservedTools({ optimizer, codeMode }: ToolFeatures): ReadonlySet<string> {
  return new Set([
    ...(optimizer === undefined ? [] : [serverTools.findTool, serverTools.callTool]),
    ...(codeMode?.enabled ? [serverTools.executeToolScript] : []),
  ])
}

/** Returns a tool's name with the prefix for its workload. */
export function prefixedName(format: string, workload: string, name: string): string {
  return format.replaceAll('{workload}', workload) + name
}

interface NamedTools {
  readonly conflictResolution: string
  readonly conflictResolutionConfig: { readonly prefixFormat: string }
  readonly tools?: readonly { readonly workload: string; readonly overrides?: unknown }[] | undefined
}

/**
 * Returns one violation for each override that gives a tool a reserved name. `parent` is the path of the aggregation in
 * the document.
 */
export function reservedOverrides(
  aggregation: NamedTools | undefined,
  reserved: ReadonlySet<string>,
  parent: string,
): Violation[] {
  if (!aggregation) return []
  const { conflictResolution, conflictResolutionConfig, tools = [] } = aggregation
  const shown = (workload: string, name: string): string =>
    conflictResolution === 'prefix'
      ? prefixedName(conflictResolutionConfig.prefixFormat, workload, name)
      : name
  return tools.flatMap(({ workload, overrides }, index) =>
    Object.entries(fieldsOf(overrides)).flatMap(([tool, override]) => {
      const { name } = fieldsOf(override)
      if (typeof name !== 'string' || !reserved.has(shown(workload, name))) return []
      const path = below(below(`${parent}.tools[${index}].overrides`, tool), 'name')
      return [{ path, message: `${shown(workload, name)} is reserved for one of the server's own tools` }]
    }),
  )
}
