/** The ways in which clients, or the gateway on their behalf, use an item: the request and the formatted response. */
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Era } from '../../decisions/decision-rig.ts'
import { stateless, type WireAnswer } from '../../mcp/wire.ts'
import { advertised, stepWorkflowName, workflowName } from './config.ts'
import { isOfRequest } from './ledger.ts'
import { argumentsFor, headersFor, reasons, type Reason, uriFor } from './reasons.ts'
import { type ChecksRig, consoleCall, type Work } from './rig.ts'

export interface Surface {
  /** Reasons that cannot apply here, with an explanation. */
  readonly without: Readonly<Partial<Record<Reason, string>>>
  /** Uses the item with this name. */
  work(rig: ChecksRig, name: string): Work
}

/** A request from a client of this era. */
function request(era: Era, make: (name: string) => readonly [string, Readonly<Record<string, unknown>>]) {
  return ({ vmcp, session, headers }: ChecksRig, name: string): Work => {
    const [method, params] = make(name)
    return {
      isLast: isOfRequest,
      async perform() {
        if (era === 'session') return answerText(await session.request(method, params))
        const all = { ...headers, ...headersFor(name) }
        return answerText(await stateless(vmcp.url, method, params, { headers: all }))
      },
    }
  }
}

const call = (name: string, args: unknown) => ['tools/call', { name, arguments: args }] as const

function directCall(name: string) {
  return call(advertised(name), argumentsFor(name))
}

function searchedCall(name: string) {
  return call('call_tool', { tool_name: advertised(name), parameters: argumentsFor(name) })
}

function scriptCall(name: string) {
  const args = Object.entries(argumentsFor(name)).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
  return call('execute_tool_script', {
    script: `return call_tool("${advertised(name)}", ${args.join(', ')})`,
  })
}

function tryTool(era: Era) {
  return (rig: ChecksRig, name: string): Work => {
    const tool = advertised(name)
    return {
      isLast: ({ type, target }) => type === 'mcp_tool_call' && target['name'] === tool,
      async perform() {
        try {
          const { kind, json, denial } = await consoleCall(rig, { era, tool, args: argumentsFor(name) })
          const text = messageText({ [kind]: JSON.parse(json.toString()) })
          return denial === undefined ? text : `${text}, denial ${denial}`
        } catch (error) {
          if (!(error instanceof GatehouseError)) throw error
          return steady(`rejected with ${error.code}: ${error.message} ${JSON.stringify(error.data ?? {})}`)
        }
      },
    }
  }
}

/** Lists are not rejected: they omit the items that the client cannot use. */
const isList: Surface['without'] = only('a list omits rejected items', ...reasons)

function list(method: string, member: string): Surface {
  return {
    without: isList,
    work: ({ session }) => ({
      isLast: isOfRequest,
      async perform() {
        const answer = await session.request(method)
        const items = answer.response?.result?.[member] as readonly Record<string, string>[] | undefined
        if (!items) return answerText(answer)
        return `${answer.status}: ${items.map((item) => item['uri'] ?? item['uriTemplate'] ?? item['name']).join(' ')}`
      },
    }),
  }
}

const noHeaders = { 'header-mismatch': 'only stateless clients send headers that mirror arguments' } as const
const notOfTools = {
  'header-mismatch': 'only arguments of tools are mirrored in headers',
  limited: 'rate limits count calls of tools only',
  'quota-exceeded': 'quotas count calls of tools only',
} as const
const ofItsStep = 'a workflow has no backend; see its step'

export const surfaces: Readonly<Record<string, Surface>> = {
  'tools/list': list('tools/list', 'tools'),
  'tools/list with tool search': list('tools/list', 'tools'),
  'prompts/list': list('prompts/list', 'prompts'),
  'resources/list': list('resources/list', 'resources'),
  'resources/templates/list': list('resources/templates/list', 'resourceTemplates'),
  'direct call, session era': { without: noHeaders, work: request('session', directCall) },
  'direct call, stateless era': { without: {}, work: request('stateless', directCall) },
  'call_tool, session era': { without: noHeaders, work: request('session', searchedCall) },
  'call_tool, stateless era': {
    without: { 'header-mismatch': 'the headers belong to call_tool' },
    work: request('stateless', searchedCall),
  },
  'script, session era': { without: noHeaders, work: request('session', scriptCall) },
  'script, stateless era': {
    without: { 'header-mismatch': 'the headers belong to the script' },
    work: request('stateless', scriptCall),
  },
  workflow: {
    without: {
      ...noHeaders,
      ...only(
        ofItsStep,
        ...['pinned', 'pinned-arguments', 'quota-exceeded', 'tool-error', 'backend-down'],
        ...['backend-left-out', 'backend-header-mismatch', 'backend-error', 'backend-http-error'],
      ),
    },
    work: request('session', (name) => call(workflowName(name), argumentsFor(name))),
  },
  'workflow step': {
    without: noHeaders,
    work: request('session', (name) => call(stepWorkflowName(name), {})),
  },
  'console call, session era': { without: noHeaders, work: tryTool('session') },
  'console call, stateless era': {
    without: { 'header-mismatch': 'a console call has no headers' },
    work: tryTool('stateless'),
  },
  read: {
    without: {
      ...notOfTools,
      'pinned-arguments': 'a read has no arguments',
      'tool-error': 'only tools have such results',
    },
    work: request('session', (name) => ['resources/read', { uri: uriFor(name) }]),
  },
  prompt: {
    without: { ...notOfTools, 'tool-error': 'only tools have such results' },
    work: request('session', (name) => [
      'prompts/get',
      { name: advertised(name), arguments: stringsFor(name) },
    ]),
  },
  completion: {
    without: { ...notOfTools, 'tool-error': 'only tools have such results' },
    work: request('session', (name) => {
      const { text, ...others } = stringsFor(name)
      const argument = { name: 'text', value: text }
      const context = Object.keys(others).length > 0 ? { context: { arguments: others } } : {}
      return [
        'completion/complete',
        { ref: { type: 'ref/prompt', name: advertised(name) }, argument, ...context },
      ]
    }),
  },
}

function only(why: string, ...all: readonly string[]): Surface['without'] {
  return Object.fromEntries(all.map((reason) => [reason, why]))
}

/** Arguments of prompts are strings. */
function stringsFor(name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(argumentsFor(name)).map(([key, value]) => [key, String(value)]))
}

export function reasonsAt({ without }: Surface): readonly Reason[] {
  return reasons.filter((reason) => without[reason] === undefined)
}

/** Formats the status and message of a response. */
function answerText({ status, response, text }: WireAnswer): string {
  return `${status}: ${response ? messageText(response) : text}`
}

function messageText(message: { readonly result?: unknown; readonly error?: unknown }): string {
  const [kind, body] = message.error === undefined ? ['result', message.result] : ['error', message.error]
  const { _meta, ...shown } = body as Record<string, unknown>
  const meta = typeof _meta !== 'object' || _meta === null ? '' : `, _meta ${Object.keys(_meta).join(' ')}`
  return steady(`${kind} ${JSON.stringify(shown)}${meta}`)
}

/** Removes times and ports. */
function steady(text: string): string {
  return text
    .replaceAll(/"(retryAfterSeconds)":\d+/g, '"$1":0')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1')
}
