/**
 * Recognizes bridges: programs that connect a client without HTTP support to a remote server. Gatehouse connects to
 * that server directly.
 *
 * Supports mcp-remote, supergateway and mcp-proxy, started directly or by a package runner. A program with an unknown
 * flag is not treated as a bridge.
 */
import { own } from '../../../../schemas/index.ts'
import type { EntryTransport } from '../catalog/client-row.ts'
import type { Note, EntryProgram, EntryRemote } from './entry.ts'
import { transportOf } from './normalise.ts'
import { packageOf } from './package.ts'
import { fillValue, literalOf, parseValue, splitValue, type Value } from './value.ts'

export interface Unwrapped<T> {
  readonly target: T
  readonly notes: readonly Note[]
}

interface Bridge {
  /**
   * Maps each flag to its meaning. `value` and `switch` denote flags, with and without a value, that do not affect the
   * server.
   */
  readonly flags: Readonly<
    Record<string, 'url' | 'header' | 'bearer' | 'transport' | 'name-and-value' | 'value' | 'switch'>
  >
  /** True when the first word that is not a flag is the URL. */
  readonly positional: boolean
}

const bridges: Readonly<Record<string, Bridge>> = {
  'mcp-remote': {
    flags: {
      '--header': 'header',
      '--transport': 'transport',
      '--host': 'value',
      '--resource': 'value',
      '--auth-timeout': 'value',
      '--static-oauth-client-metadata': 'value',
      '--static-oauth-client-info': 'value',
      '--allow-http': 'switch',
      '--debug': 'switch',
      '--silent': 'switch',
      '--enable-proxy': 'switch',
    },
    positional: true,
  },
  supergateway: {
    flags: {
      '--sse': 'url',
      '--streamableHttp': 'url',
      '--header': 'header',
      '--oauth2Bearer': 'bearer',
      '--logLevel': 'value',
    },
    positional: false,
  },
  'mcp-proxy': {
    flags: {
      '--transport': 'transport',
      '-H': 'name-and-value',
      '--headers': 'name-and-value',
      '--debug': 'switch',
    },
    positional: true,
  },
}

/** Transport names as used in bridge flags. */
const transports: Readonly<Record<string, EntryTransport>> = {
  'http-first': 'streamable-http',
  'http-only': 'streamable-http',
  streamablehttp: 'streamable-http',
  'sse-first': 'sse',
  'sse-only': 'sse',
  sse: 'sse',
}

export function unwrapBridge(program: EntryProgram): Unwrapped<EntryRemote> | undefined {
  const found = packageOf(program)
  const bridge = found && Object.hasOwn(bridges, found.name) ? bridges[found.name] : undefined
  if (!found || !bridge) return undefined
  const read = readFlags(found.args, bridge)
  const url = read?.url === undefined ? undefined : literalOf(read.url)
  if (!read?.url || url === undefined || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return undefined
  const headers = [...read.headers].map(([name, value]) => [name, fromEnvironment(value, program)] as const)
  const login = {
    field: found.name,
    text: 'the login is not converted: log in again through Gatehouse if the server requires a login',
    loses: false,
  }
  return {
    target: {
      kind: 'remote',
      url: read.url,
      transport: read.transport ?? transportOf(url),
      headers: new Map(headers),
    },
    notes: [login],
  }
}

interface Flags {
  url: Value | undefined
  transport: EntryRemote['transport'] | undefined
  readonly headers: Map<string, Value>
}

function readFlags(args: readonly Value[], bridge: Bridge): Flags | undefined {
  const flags: Flags = { url: undefined, transport: undefined, headers: new Map() }
  for (let i = 0; i < args.length; i++) {
    const word = literalOf(args[i] ?? []) ?? ''
    if (!word.startsWith('-')) {
      // mcp-remote accepts the port of its login page after the URL.
      if (bridge.positional) flags.url ??= args[i]
      continue
    }
    const meaning = own(bridge.flags, word)
    if (meaning === undefined) return undefined
    if (meaning === 'switch') continue
    const value = args[++i]
    if (!value) return undefined
    if (meaning === 'url') {
      flags.url = value
      flags.transport = word === '--sse' ? 'sse' : 'streamable-http'
    } else if (meaning === 'bearer') flags.headers.set('Authorization', ['Bearer ', ...value])
    else if (meaning === 'transport') flags.transport = own(transports, literalOf(value)?.toLowerCase() ?? '')
    else if (meaning === 'header') {
      const pair = splitValue(value, /:\s*/)
      if (!pair) return undefined
      flags.headers.set(literalOf(pair[0])?.trim() ?? '', pair[1])
    } else if (meaning === 'name-and-value') {
      const next = args[++i]
      if (!next) return undefined
      flags.headers.set(literalOf(value) ?? '', next)
    }
  }
  return flags
}

/** Resolves `${NAME}` in a header from the program's environment, as the bridges do. */
function fromEnvironment(value: Value, { env }: EntryProgram): Value {
  const read = value.flatMap((part) => (typeof part === 'string' ? parseValue(part, 'braces') : [part]))
  return fillValue(read, ({ kind, name }) => (kind === 'env' ? env.get(name) : undefined))
}
