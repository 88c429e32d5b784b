/**
 * Converts an entry from a client's server map to the common form.
 *
 * Every field is converted, listed in a note, or empty. Notes never contain values.
 */
import { own, isFields } from '../../../../schemas/index.ts'
import type { EntryForm, EntryTransport } from '../catalog/client-row.ts'
import type {
  ClientEntry,
  EntrySource,
  Note,
  EntryProgram,
  EntryRemote,
  EntryTarget,
  Unusable,
} from './entry.ts'
import { EntryMembers, printableName } from './members.ts'
import { startsPrograms } from './package.ts'
import { commandWords, fillValue, literalOf, parseValue, type ReadSyntax, type Value } from './value.ts'

export interface ReadingContext {
  readonly source: EntrySource
  readonly form: EntryForm
  readonly variables: ReadSyntax
  /** True when a list elsewhere in the file disables the entry. */
  readonly excluded: boolean
}

/** Never throws. If the entry cannot be converted, returns an unusable entry with the reason. */
export function normaliseEntry(name: string, raw: unknown, context: ReadingContext): ClientEntry {
  const notes: Note[] = []
  const entry = (target: EntryTarget, enabled = true, allow?: readonly string[]): ClientEntry => ({
    source: context.source,
    name,
    enabled: enabled && !context.excluded,
    target,
    allow,
    notes,
  })
  if (!isFields(raw)) return entry({ kind: 'unusable', why: 'is not an object' })
  const members = new EntryMembers(raw, notes)
  const enabled = members.boolean('enabled') !== false && members.boolean('disabled') !== true
  const target = targetOf(members, context)
  if (target.kind === 'unusable' && target.harmless) notes.length = 0
  else noteTheRest(members, context.form)
  const { allow = '', emptyAllowsAll = false } = context.form
  const tools = allow === '' ? undefined : members.texts(allow)
  const isEveryTool = tools === undefined || tools.includes('*') || (tools.length === 0 && emptyAllowsAll)
  members.noteUnknown()
  if (tools?.length === 0 && !isEveryTool)
    members.failure ??= {
      kind: 'unusable',
      why: `offers no tools: the list "${allow}" is empty`,
      harmless: true,
    }
  return entry(members.failure ?? target, enabled, isEveryTool ? undefined : tools)
}

const types: Readonly<Record<string, EntryTransport | 'stdio' | 'auto'>> = {
  stdio: 'stdio',
  local: 'stdio',
  remote: 'auto',
  http: 'auto',
  'streamable-http': 'streamable-http',
  streamableHttp: 'streamable-http',
  streamable_http: 'streamable-http',
  sse: 'sse',
}
const builtIn: ReadonlySet<string> = new Set([
  'builtin',
  'platform',
  'frontend',
  'inline_python',
  'extension',
])

function targetOf(members: EntryMembers, context: ReadingContext): EntryTarget {
  const { form } = context
  const type = members.text('type') ?? members.text('transport')
  const source = members.peek('source')
  if ((type !== undefined && builtIn.has(type)) || source === 'extension') {
    return { kind: 'unusable', why: 'is built into the client and is not an MCP server', harmless: true }
  }
  const hasCommand = members.has(form.command) || members.has('command')
  const urlName = Object.keys(form.urls).find((field) => members.has(field))
  const kind = type === undefined ? (hasCommand ? 'stdio' : 'auto') : own(types, type)
  if (kind === undefined) return unusable(`has the unsupported type "${printableName(type ?? '')}"`)
  if (kind === 'stdio') return hasCommand ? programOf(members, context) : unusable('has no command')
  if (urlName !== undefined) {
    const written = type === undefined || urlName === 'httpUrl' ? form.urls[urlName] : kind
    return remoteOf(members, context, urlName, written ?? 'auto')
  }
  return hasCommand ? programOf(members, context) : unusable('has neither a command nor a URL')
}

function unusable(why: string): Unusable {
  return { kind: 'unusable', why }
}

function programOf(members: EntryMembers, { form, variables }: ReadingContext): EntryProgram | Unusable {
  const name = members.has(form.command) ? form.command : 'command'
  const read = (text: string): Value => parseValue(text, variables)
  // Zed used to store the whole program in `command`.
  const inner = members.inner(name)
  const env = environmentOf(members, form, read)
  for (const [key, value] of inner ? environmentOf(inner, form, read) : []) env.set(key, value)
  const argv = inner ? [inner.text('path') ?? '', ...(inner.texts('args') ?? [])] : argvOf(members, name)
  if (inner) {
    noteTheRest(inner, form)
    inner.noteUnknown()
    members.failure ??= inner.failure
  }
  const [command, ...args] = lineWords(argv.map(read), members)
  if (!command || literalOf(command) === '') return unusable('has an empty command')
  return { kind: 'program', command, args, env }
}

/** Splits a command line in `command`, such as `"command": "npx -y package"`, into words. */
function lineWords(argv: readonly Value[], members: EntryMembers): readonly Value[] {
  const [line, ...more] = argv
  const words = line && more.length === 0 ? commandWords(line) : []
  if (words.length < 2 || !startsPrograms(words[0] ?? [])) return argv
  members.noteRepair('command', 'contains a whole command line, which was split into words')
  return words
}

/** Returns an entry's variables: literal values, or references to the client's environment. */
function environmentOf(
  members: EntryMembers,
  form: EntryForm,
  read: (text: string) => Value,
): Map<string, Value> {
  const env = new Map<string, Value>()
  for (const field of new Set([form.env, 'env', 'environment'])) {
    for (const [key, text] of members.textMap(field)) env.set(key, read(text))
  }
  for (const key of form.envNames === undefined ? [] : (members.names(form.envNames) ?? [])) {
    if (!env.has(key)) env.set(key, [{ kind: 'env', name: key }])
  }
  return env
}

/** Returns a command's words. The command is a list, or a string with separate `args`. */
function argvOf(members: EntryMembers, name: string): readonly string[] {
  if (Array.isArray(members.peek(name))) return members.texts(name) ?? []
  return [members.text(name) ?? '', ...(members.texts('args') ?? [])]
}

function remoteOf(
  members: EntryMembers,
  { form, variables }: ReadingContext,
  urlName: string,
  written: EntryTransport | 'auto',
): EntryRemote | Unusable {
  const text = members.text(urlName) ?? ''
  const url = parseValue(text, variables)
  const literal = literalOf(url)
  if (literal !== undefined && !/^https?:\/\//i.test(literal)) {
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(literal)?.[1]
    return unusable(
      scheme === undefined
        ? 'has a URL that does not start with http:// or https://'
        : `uses the unsupported scheme ${scheme}`,
    )
  }
  if (literal !== undefined && !URL.canParse(literal)) return unusable('has an invalid URL')
  members.take(urlName)
  for (const other of Object.keys(form.urls))
    members.noteIfSet(other, `is ignored because ${urlName} is set, as in the client`, { loses: false })
  const env = form.headersUseEnv && environmentOf(members, form, (value) => parseValue(value, variables))
  const readHeader = (value: string): Value =>
    env ? fillValue(parseValue(value, 'dollar'), ({ name }) => env.get(name)) : parseValue(value, variables)
  const headers = new Map<string, Value>()
  for (const field of new Set([form.headers, 'headers', 'requestInit'])) {
    for (const [key, value] of headersIn(members, field)) headers.set(key, readHeader(value))
  }
  for (const [key, variable] of form.headerVariables === undefined
    ? []
    : members.textMap(form.headerVariables)) {
    headers.set(key, [{ kind: 'env', name: variable }])
  }
  const token = form.bearerVariable === undefined ? undefined : members.text(form.bearerVariable)
  if (token !== undefined) headers.set('Authorization', ['Bearer ', { kind: 'env', name: token }])
  const transport = written === 'auto' ? transportOf(text) : written
  return { kind: 'remote', url, transport, headers }
}

/** Some files nest the headers in `requestInit`. */
function headersIn(members: EntryMembers, field: string): ReadonlyMap<string, string> {
  const inner = members.peek(field)
  if (field !== 'requestInit' || !isFields(inner)) return members.textMap(field)
  members.take(field)
  return new EntryMembers(inner, []).textMap('headers')
}

export function transportOf(url: string): EntryTransport {
  const path = url.split(/[?#]/, 1)[0] ?? ''
  return path.endsWith('/sse') ? 'sse' : 'streamable-http'
}

const login: readonly string[] = [
  'oauth',
  'auth',
  'oauth_resource',
  'oauth_client_id',
  'scopes',
  'authProviderType',
]

function noteTheRest(members: EntryMembers, form: EntryForm): void {
  for (const field of form.own) members.noteIfSet(field, 'affects only the client', { loses: false })
  for (const field of login) {
    members.noteIfSet(field, 'the login is not converted: log in again through Gatehouse', { loses: true })
  }
  members.noteIfSet(
    'cwd',
    'the working folder is not converted: the program starts in Gatehouse’s working folder',
    {
      loses: true,
    },
  )
  members.noteIfSet('envFile', 'variables files are not read: set the variables in env', { loses: true })
  members.noteIfSet('headersHelper', 'headers that a program generates are not converted', { loses: true })
  if (form.deny !== undefined) {
    members.noteIfSet(
      form.deny,
      'the list of hidden tools is not converted; list the tools to show instead',
      {
        loses: true,
      },
    )
  }
}
