/**
 * Reads what a backend says about itself, from `initialize` or `server/discover`. Unknown members are ignored, wrong
 * types count as absent: a backend's word is never trusted to have a shape.
 */
import type { BackendSession } from '../pipeline/operation.ts'
import type { ListKind, ServerCapabilities, ServerInfo } from './connection.ts'

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
}

/** Throws SyntaxError when `result` is not JSON. */
export function readServerInfo(result: Buffer, version?: string): ServerInfo {
  const body = record(JSON.parse(result.toString())) ?? {}
  const { protocolVersion, instructions } = body
  return {
    protocolVersion: version ?? (typeof protocolVersion === 'string' ? protocolVersion : ''),
    capabilities: readCapabilities(record(body['capabilities']) ?? {}),
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

function readCapabilities(capabilities: Readonly<Record<string, unknown>>): ServerCapabilities {
  const listChanged = new Set<ListKind>()
  for (const kind of ['tools', 'resources', 'prompts'] as const) {
    if (record(capabilities[kind])?.['listChanged'] === true) listChanged.add(kind)
  }
  return {
    tools: record(capabilities['tools']) !== undefined,
    resources: record(capabilities['resources']) !== undefined,
    prompts: record(capabilities['prompts']) !== undefined,
    completions: record(capabilities['completions']) !== undefined,
    logging: record(capabilities['logging']) !== undefined,
    subscribe: record(capabilities['resources'])?.['subscribe'] === true,
    listChanged,
  }
}

/** What is known of a server whose session is gone on with: enough to send requests. */
export function resumedServer({ protocolVersion, logging }: BackendSession): ServerInfo {
  return {
    protocolVersion,
    capabilities: {
      tools: true,
      resources: true,
      prompts: true,
      completions: true,
      logging,
      subscribe: true,
      listChanged: new Set(),
    },
    instructions: undefined,
  }
}
