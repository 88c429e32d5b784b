/**
 * Reads a backend's server information from the result of `initialize` or `server/discover`. Unknown members are
 * ignored. A member of the wrong type is treated as absent, except for a capability that is `true` or an array.
 */
import { type Fields, isFields } from '../../../schemas/index.ts'
import { readServerExtensions } from '../model/extensions.ts'
import type { BackendSession } from '../model/session.ts'
import type { ListKind, ServerCapabilities, ServerInfo } from './connection.ts'

function record(value: unknown): Fields | undefined {
  return isFields(value) ? value : undefined
}

/** Reads the server information. Throws SyntaxError if `result` is not JSON. */
export function readServerInfo(result: Buffer, version?: string): ServerInfo {
  const body = record(JSON.parse(result.toString())) ?? {}
  const { protocolVersion, instructions } = body
  const capabilities = record(body['capabilities']) ?? {}
  const { extensions, problems } = readServerExtensions(capabilities['extensions'])
  return {
    protocolVersion: version ?? (typeof protocolVersion === 'string' ? protocolVersion : ''),
    capabilities: readCapabilities(capabilities),
    instructions: typeof instructions === 'string' ? instructions : undefined,
    extensions,
    ...(problems.length > 0 && { extensionProblems: problems }),
  }
}

const listKinds: readonly ListKind[] = ['tools', 'resources', 'prompts']

function readCapabilities(capabilities: Readonly<Record<string, unknown>>): ServerCapabilities {
  const has = (name: string): boolean => isDeclared(capabilities[name])
  const misdeclared = listKinds.filter((kind) => has(kind) && !record(capabilities[kind]))
  return {
    tools: has('tools'),
    resources: has('resources'),
    prompts: has('prompts'),
    completions: has('completions'),
    logging: has('logging'),
    subscribe: record(capabilities['resources'])?.['subscribe'] === true,
    ...(record(record(record(capabilities['tasks'])?.['requests'])?.['tools'])?.['call'] !== undefined && {
      tasks: true,
    }),
    listChanged: new Set(listKinds.filter((kind) => record(capabilities[kind])?.['listChanged'] === true)),
    ...(misdeclared.length > 0 && { misdeclared }),
  }
}

/** True for an object, and for `true` or an array, which some servers send instead of `{}`. */
function isDeclared(value: unknown): boolean {
  return value === true || (typeof value === 'object' && value !== null)
}

/** Returns the server information for a backend that has only tools, whose list can change. */
export function toolServer(protocolVersion: string): ServerInfo {
  return {
    protocolVersion,
    capabilities: {
      tools: true,
      resources: false,
      prompts: false,
      completions: false,
      logging: false,
      subscribe: false,
      listChanged: new Set(['tools']),
    },
    instructions: undefined,
    extensions: new Map(),
  }
}

/**
 * Returns the server information for a resumed session. The information contains only the members that are needed to
 * send requests.
 */
export function resumedServer({ protocolVersion, logging, extensions }: BackendSession): ServerInfo {
  return {
    protocolVersion,
    capabilities: {
      tools: true,
      resources: true,
      prompts: true,
      completions: true,
      logging,
      subscribe: true,
      tasks: true,
      listChanged: new Set(),
    },
    instructions: undefined,
    extensions: readServerExtensions(extensions).extensions,
  }
}
