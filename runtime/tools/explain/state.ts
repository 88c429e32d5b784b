/** Reads the backends' state from a file: their tools and their health. */
import {
  type Fields,
  formatViolations,
  GatehouseError,
  isFields,
  type Violation,
} from '../../../schemas/index.ts'
import type { BackendStateInput } from '../../vmcp/index.ts'
import { standardText } from '../../toolkit/terminal/input.ts'
import { readManifests } from '../../toolkit/manifests/read.ts'

const healths = ['healthy', 'degraded', 'unhealthy', 'unauthenticated', 'unknown'] as const
const circuits = ['closed', 'open', 'half-open'] as const

/** Throws INVALID_CONFIG, which lists every mistake. */
export function readState(path: string | undefined): Readonly<Record<string, BackendStateInput>> {
  if (path === undefined) return {}
  const [document] = readManifests([path], () => standardText('--state'))
  const backends = document?.doc['backends']
  const violations: Violation[] = []
  if (!isFields(backends)) violations.push({ path: 'backends', message: 'must be an object' })
  const states = Object.entries(isFields(backends) ? backends : {}).map(
    ([name, value]) => [name, stateOf(value, `backends.${name}`, violations)] as const,
  )
  if (violations.length > 0)
    throw new GatehouseError('INVALID_CONFIG', { detail: `${path}:\n${formatViolations(violations)}` })
  return Object.fromEntries(states)
}

function stateOf(value: unknown, path: string, violations: Violation[]): BackendStateInput {
  const fields: Fields = isFields(value) ? value : {}
  if (!isFields(value)) violations.push({ path, message: 'must be an object' })
  const { tools, health, error, circuit } = fields
  for (const name of Object.keys(fields)) {
    if (!['tools', 'health', 'error', 'circuit'].includes(name))
      violations.push({
        path: `${path}.${name}`,
        message: 'unknown field; expected one of tools, health, error, circuit',
      })
  }
  if (tools !== undefined && !Array.isArray(tools))
    violations.push({ path: `${path}.tools`, message: 'must be a list of names or tools' })
  return {
    tools: Array.isArray(tools) ? tools.map(toolText) : undefined,
    health: choice(health, healths, `${path}.health`, violations),
    circuit: choice(circuit, circuits, `${path}.circuit`, violations),
    error: typeof error === 'string' ? error : undefined,
  }
}

/** Returns the JSON text of a tool. A bare name becomes a tool without other properties. */
function toolText(tool: unknown): string {
  return JSON.stringify(typeof tool === 'string' ? { name: tool, inputSchema: { type: 'object' } } : tool)
}

function choice<T extends string>(
  value: unknown,
  known: readonly T[],
  path: string,
  violations: Violation[],
): T | undefined {
  const found = known.find((candidate) => candidate === value)
  if (value !== undefined && found === undefined)
    violations.push({ path, message: `must be one of ${known.join(', ')}` })
  return found
}
