/**
 * Capabilities that a client has declared. Prompts that exceed these capabilities are rejected. Tasks are removed from
 * the declared capabilities in both eras, because the vMCP adds them only to the requests for which it accepts tasks.
 * Source: MCP 2025-11-25, lifecycle "Capability Negotiation"; MCP 2026-07-28, basic "_meta".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { emptyObject, JsonObject } from '../json/object.ts'
import type { Ask } from './questions.ts'

export interface Abilities {
  readonly elicitation: boolean
  /** True if the client supports elicitation with a URL that the user opens. */
  readonly elicitationUrl?: boolean
  readonly sampling: boolean
  /** True if the client supports sampling with tools. */
  readonly samplingTools?: boolean
  readonly roots: boolean
  /** True if a stateless client accepts tasks instead of results. */
  readonly tasks?: boolean
}

/** A stateless-era extension that allows servers to respond with a task instead of a result. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'

/** Reads declared capabilities. A member of the wrong type is treated as undeclared. Throws JsonError. */
export function abilitiesIn(declared: JsonObject): Abilities {
  const elicitation = declared.object('elicitation')
  const sampling = declared.object('sampling')
  return {
    elicitation: elicitation !== undefined,
    // An empty object declares support for forms only.
    elicitationUrl: elicitation?.raw('url')?.[0] === 0x7b,
    sampling: sampling !== undefined,
    samplingTools: sampling?.raw('tools')?.[0] === 0x7b,
    roots: declared.raw('roots')?.[0] === 0x7b,
    tasks: declared.object('extensions')?.raw(tasksExtension)?.[0] === 0x7b,
  }
}

/** Returns a client's capabilities with the tasks extension, as raw JSON. */
export function withTasks(capabilities: Buffer): Buffer {
  const declared = new JsonObject(capabilities)
  const extensions = declared.object('extensions') ?? emptyObject
  return declared.with({ extensions: extensions.with({ [tasksExtension]: '{}' }) })
}

/** Returns a client's or server's capabilities without tasks, as raw JSON. Throws JsonError. */
export function withoutTasks(declared: JsonObject): Buffer {
  const extensions = declared.object('extensions')
  const offered = extensions?.raw(tasksExtension) === undefined ? undefined : extensions
  if (!declared.raw('tasks') && !offered) return Buffer.from(declared.bytes)
  return declared.with({
    tasks: undefined,
    ...(offered ? { extensions: offered.with({ [tasksExtension]: undefined }) } : {}),
  })
}

/** Checks that the client has declared the capability that the prompt needs. Throws CAPABILITY_REQUIRED otherwise. */
export function requireAbility(abilities: Abilities, { method, params }: Ask): void {
  const missing = missingAbility(abilities, method, params)
  if (!missing) return
  const names = Object.entries(missing).flatMap(([name, part]) => [name, ...Object.keys(part)])
  throw new GatehouseError('CAPABILITY_REQUIRED', {
    detail: `the client has not declared the capability ${names.join('.')}`,
    data: { requiredCapabilities: missing },
  })
}

/** Returns the missing capability in the form that clients declare. */
function missingAbility(
  abilities: Abilities,
  method: string,
  params: Buffer | undefined,
): Readonly<Record<string, object>> | undefined {
  if (method === 'roots/list') return abilities.roots ? undefined : { roots: {} }
  const request = params?.[0] === 0x7b ? new JsonObject(params) : undefined
  if (method === 'sampling/createMessage') {
    if (!abilities.sampling) return { sampling: {} }
    const withTools = request?.raw('tools') ?? request?.raw('toolChoice')
    return withTools && !abilities.samplingTools ? { sampling: { tools: {} } } : undefined
  }
  if (!abilities.elicitation) return { elicitation: {} }
  return request?.text('mode') === 'url' && !abilities.elicitationUrl
    ? { elicitation: { url: {} } }
    : undefined
}
