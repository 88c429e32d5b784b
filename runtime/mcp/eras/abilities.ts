/**
 * What a client has declared that it can be asked, and the refusal of a question beyond it. Tasks are left out of declared
 * capabilities, in the form of either era: they are not relayed.
 * Source: MCP 2025-11-25, lifecycle "Capability Negotiation"; MCP 2026-07-28, basic "_meta".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../json/object.ts'
import type { Ask } from './questions.ts'

export interface Abilities {
  readonly elicitation: boolean
  /** Elicitation by sending the user to an address. */
  readonly elicitationUrl?: boolean
  readonly sampling: boolean
  /** Sampling with tools. */
  readonly samplingTools?: boolean
  readonly roots: boolean
}

/** The extension of the stateless era by which servers may respond with a task instead of a result. */
const tasksExtension = 'io.modelcontextprotocol/tasks'

/** Reads declared capabilities. A member of the wrong type counts as not declared. Throws JsonError. */
export function abilitiesIn(declared: JsonObject): Abilities {
  const elicitation = declared.object('elicitation')
  const sampling = declared.object('sampling')
  return {
    elicitation: elicitation !== undefined,
    // An empty object stands for forms alone.
    elicitationUrl: elicitation?.raw('url')?.[0] === 0x7b,
    sampling: sampling !== undefined,
    samplingTools: sampling?.raw('tools')?.[0] === 0x7b,
    roots: declared.raw('roots')?.[0] === 0x7b,
  }
}

/** Capabilities, of a client or a server, without tasks; raw JSON. Throws JsonError. */
export function withoutTasks(declared: JsonObject): Buffer {
  const extensions = declared.object('extensions')
  const offered = extensions?.raw(tasksExtension) === undefined ? undefined : extensions
  if (!declared.raw('tasks') && !offered) return Buffer.from(declared.bytes)
  return declared.with({
    tasks: undefined,
    ...(offered ? { extensions: offered.with({ [tasksExtension]: undefined }) } : {}),
  })
}

/** Throws CAPABILITY_REQUIRED when the client did not declare that it can be asked this, in this way. */
export function requireAbility(abilities: Abilities, { method, params }: Ask): void {
  const lacking = lackingAbility(abilities, method, params)
  if (!lacking) return
  const names = Object.entries(lacking).flatMap(([name, part]) => [name, ...Object.keys(part)])
  throw new GatehouseError('CAPABILITY_REQUIRED', {
    detail: `the client has not declared the capability ${names.join('.')}`,
    data: { requiredCapabilities: lacking },
  })
}

/** What is missing, in the form in which it would be declared. */
function lackingAbility(
  abilities: Abilities,
  method: string,
  params: Buffer | undefined,
): Readonly<Record<string, object>> | undefined {
  if (method === 'roots/list') return abilities.roots ? undefined : { roots: {} }
  const asked = params?.[0] === 0x7b ? new JsonObject(params) : undefined
  if (method === 'sampling/createMessage') {
    if (!abilities.sampling) return { sampling: {} }
    const withTools = asked?.raw('tools') ?? asked?.raw('toolChoice')
    return withTools && !abilities.samplingTools ? { sampling: { tools: {} } } : undefined
  }
  if (!abilities.elicitation) return { elicitation: {} }
  return asked?.text('mode') === 'url' && !abilities.elicitationUrl ? { elicitation: { url: {} } } : undefined
}
