/**
 * The audit log: one JSON line for each client's MCP operation, each request that did not become an operation, each
 * workflow event, and each event of an embedded authorization server.
 *
 * Records the caller, the action and the outcome. Contains no headers, tokens or session ids. Bodies are recorded only
 * when configured, redacted and truncated. The audit log never makes decisions, and a failed write never fails a
 * request. When the audit log is off, no line is built and no response is watched.
 * Source: docs/reference/specification/virtual-server.md#audit, config.audit and "Events".
 */
import { randomUUID } from 'node:crypto'
import { accessSync, constants, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Audit, AuditEventType } from '../../../schemas/index.ts'
import { GatehouseError, visibleJson } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import { type CallNotes, currentScope } from '../exchange/scope.ts'
import { type LineFile, type LineWatch, makeLineFile } from '../line-file.ts'
import type { LineStream } from '../log.ts'
import { delegationOf } from './delegation.ts'
import {
  type AuthorizationEventType,
  type ConsoleEventType,
  type AuditOutcome,
  selectedTypes,
  type WorkflowEventType,
} from './events.ts'
import { type ExchangeRecord, exchangeLine, subjectsOf } from './exchange-line.ts'
import { type AuditPayload, recordedPayload } from './payload.ts'
import { policyMembers, type PolicyRecord } from './policy-line.ts'
import type { MaskText, RecordMask } from '../record-mask.ts'

/** A tool call from within a script or a workflow step, on behalf of the request in flight. */
export interface CallRecord {
  readonly caller: Caller | undefined
  /** Name of the tool, or address of the resource. */
  readonly tool: string
  /** Default: tools/call. */
  readonly method?: 'tools/call' | 'resources/read' | undefined
  readonly backend: string | undefined
  readonly policy?: PolicyRecord | undefined
  /** Notes on the call, if it has its own request. Otherwise, the request's line contains the notes. */
  readonly notes?: CallNotes | undefined
  readonly outcome: AuditOutcome
  readonly durationMs: number
  /** Raw JSON objects. */
  readonly request?: Buffer | undefined
  readonly response?: Buffer | undefined
}

const callTypes = {
  'tools/call': { type: 'mcp_tool_call', target: 'tool' },
  'resources/read': { type: 'mcp_resource_read', target: 'resource' },
} as const

export interface WorkflowRecord {
  readonly type: WorkflowEventType
  readonly outcome: AuditOutcome
  readonly caller: Caller | undefined
  readonly workflowId: string
  readonly workflowName: string
  readonly stepId?: string | undefined
  /** Additional fields: timeout_ms, duration_ms, step_count, step_type, tool_name, retry_count, condition. */
  readonly extra?: Readonly<Record<string, string | number | boolean | undefined>>
  /** Raw JSON objects. */
  readonly request?: Buffer | undefined
  readonly response?: Buffer | undefined
}

/** An event of an embedded authorization server. Contains no secrets; sessions appear only as short hashes. */
export interface AuthorizationRecord {
  readonly type: AuthorizationEventType
  readonly outcome: AuditOutcome
  /** Network address of the client; absent for actions by the server. */
  readonly source?: string | undefined
  readonly clientId?: string | undefined
  readonly userId?: string | undefined
  readonly session?: string | undefined
  readonly upstream?: string | undefined
  readonly reason?: string | undefined
}

/** A user action in the console. */
export interface ConsoleRecord {
  readonly type: ConsoleEventType
  readonly outcome: AuditOutcome
  /** Network address of the browser. */
  readonly source: string
  /** The signed-in user; undefined if no user is signed in. */
  readonly caller: Caller | undefined
  /** Target of the action: a backend, a tool, the id of a call, the hash of a session. */
  readonly target?: string | undefined
  /** Digest of the approved definition. */
  readonly digest?: string | undefined
}

export interface AuditOptions {
  /** Replaces logFile in tests. */
  readonly destination?: LineStream | undefined
  /** Called when lines are lost. */
  readonly watch?: LineWatch | undefined
  /** Masks the records of calls and steps within a request. */
  readonly mask?: RecordMask | undefined
  /** Milliseconds since the epoch. */
  readonly now?: (() => number) | undefined
}

export interface AuditTrail {
  readonly enabled: boolean
  readonly detectApplicationErrors: boolean
  /** Number of response bytes that the record needs. */
  readonly responseBytes: number
  /** The policy inputs to record. */
  readonly policyInputs: Audit['policyInputs']
  records(type: AuditEventType): boolean
  exchange(record: ExchangeRecord): void
  call(record: CallRecord): void
  workflow(record: WorkflowRecord): void
  authorization(record: AuthorizationRecord): void
  console(record: ConsoleRecord): void
  close(): void
}

const workflowComponent = 'vmcp-composer'
const exchangeComponent = 'gatehouse-api'
const authorizationComponent = 'gatehouse-authserver'
const consoleComponent = 'gatehouse-console'
/** Maximum length of values from a browser. */
const maxTarget = 256
/** Extra bytes beyond the recorded part, so that a credential at the end is redacted completely. */
const marginBytes = 4_096

const off: AuditTrail = {
  enabled: false,
  detectApplicationErrors: false,
  responseBytes: 0,
  policyInputs: 'none',
  records: () => false,
  exchange() {},
  call() {},
  workflow() {},
  authorization() {},
  console() {},
  close() {},
}

/** Opens the audit log. Throws INVALID_CONFIG when the file cannot be opened. */
export function makeAudit(config: Audit | undefined, options: AuditOptions = {}): AuditTrail {
  return config?.enabled ? new AuditLog(config, options) : off
}

class AuditLog implements AuditTrail {
  readonly enabled = true
  readonly #config: Audit
  readonly #sink: Sink
  readonly #now: () => number
  readonly #mask: RecordMask | undefined
  readonly #types: ReadonlySet<AuditEventType>

  constructor(config: Audit, { destination, watch = {}, now = Date.now, mask }: AuditOptions) {
    this.#config = config
    this.#sink = destination ?? openSink(config.logFile, watch)
    this.#now = now
    this.#mask = mask
    this.#types = selectedTypes(config.eventTypes, config.excludeEventTypes)
  }

  get detectApplicationErrors(): boolean {
    return this.#config.detectApplicationErrors
  }

  get responseBytes(): number {
    return this.#recordsResponses ? this.#config.maxDataSize + marginBytes : 0
  }

  get policyInputs(): Audit['policyInputs'] {
    return this.#config.policyInputs
  }

  get #recordsResponses(): boolean {
    return this.#config.includeResponseData && this.#config.maxDataSize > 0
  }

  records(type: AuditEventType): boolean {
    return this.#types.has(type)
  }

  exchange(record: ExchangeRecord): void {
    if (!this.#types.has(record.type)) return
    const { body, response, mask } = record
    const request = this.#payload(body, this.#config.includeRequestData, mask)
    const recorded =
      this.#recordsResponses && response
        ? recordedPayload(response.text, { whole: response.whole, mask }, this.#config.maxDataSize)
        : undefined
    const rest = exchangeLine(record, this.#delegation(record.caller))
    this.#write(record.type, record.outcome, exchangeComponent, rest, { request, response: recorded })
  }

  call(record: CallRecord): void {
    const { method = 'tools/call' } = record
    const { type, target } = callTypes[method]
    if (!this.#types.has(type)) return
    const mask = this.#mask?.begin()
    const { policy, origin } = policyMembers(record.policy, mask)
    const rest = {
      source: localSource(),
      subjects: subjectsOf(record.caller, currentScope()?.request?.client),
      delegation: this.#delegation(record.caller),
      target: { method, name: record.tool, type: target, ...origin },
      policy,
      ...record.notes,
      metadata: {
        extra: {
          duration_ms: record.durationMs,
          transport: 'local',
          backend: record.backend,
          backend_name: record.backend,
        },
      },
    }
    this.#write(type, record.outcome, exchangeComponent, rest, this.#data(record, mask))
  }

  workflow(record: WorkflowRecord): void {
    if (!this.#types.has(record.type)) return
    const rest = {
      source: localSource(),
      subjects: subjectsOf(record.caller, currentScope()?.request?.client),
      delegation: this.#delegation(record.caller),
      target: {
        workflow_id: record.workflowId,
        workflow_name: record.workflowName,
        step_id: record.stepId,
        type: record.stepId === undefined ? 'workflow' : 'workflow_step',
      },
      metadata: { extra: record.extra },
    }
    const data = this.#data(record, this.#mask?.begin())
    this.#write(record.type, record.outcome, workflowComponent, rest, data)
  }

  authorization(record: AuthorizationRecord): void {
    const { type, outcome, source, userId, clientId, session, upstream, reason } = record
    if (!this.#types.has(type)) return
    this.#write(type, outcome, authorizationComponent, {
      source: source === undefined ? localSource() : { type: 'network', value: source },
      subjects: { user_id: userId, client_id: clientId },
      target: { type: 'auth_server' },
      metadata: { extra: { session, upstream, reason } },
    })
  }

  console({ type, outcome, source, caller, target, digest }: ConsoleRecord): void {
    if (!this.#types.has(type)) return
    this.#write(type, outcome, consoleComponent, {
      source: { type: 'network', value: source },
      subjects: subjectsOf(caller, undefined),
      delegation: this.#delegation(caller),
      target: { type: 'console', name: target?.slice(0, maxTarget), digest },
    })
  }

  close(): void {
    if (this.#sink.close) this.#sink.close()
    else this.#sink.flushSync?.()
  }

  #write(
    type: AuditEventType,
    outcome: AuditOutcome,
    component: string,
    rest: Readonly<Record<string, unknown>>,
    data: { request?: AuditPayload | undefined; response?: AuditPayload | undefined } = {},
  ): void {
    const at = new Date(this.#now()).toISOString()
    const line = JSON.stringify({
      time: at,
      level: 'AUDIT',
      message: 'audit_event',
      // Adds `msg`, which consumers of this audit format expect in addition to the usual message key.
      msg: 'audit_event',
      audit_id: randomUUID(),
      type,
      logged_at: at,
      outcome,
      component: this.#config.component ?? component,
      ...rest,
    })
    const recorded = dataJson(data.request, data.response)
    const whole = recorded === '' ? line : `${line.slice(0, -1)},"data":{${recorded}}}`
    this.#sink.write(`${visibleJson(whole)}\n`)
  }

  /** Reads only as much of a body as may be recorded. */
  #payload(body: Buffer | undefined, wanted: boolean, mask: MaskText | undefined): AuditPayload | undefined {
    const most = this.#config.maxDataSize
    if (!wanted || body === undefined || body.length === 0 || most === 0) return undefined
    const end = most + marginBytes
    return recordedPayload(body.toString('utf8', 0, end), { whole: body.length <= end, mask }, most)
  }

  /** Data for a call or step within a request. */
  #data({ request, response }: Pick<CallRecord, 'request' | 'response'>, mask: MaskText | undefined) {
    const { includeRequestData, includeResponseData } = this.#config
    return {
      request: this.#payload(request, includeRequestData, mask),
      response: this.#payload(response, includeResponseData, mask),
    }
  }

  #delegation(caller: Caller | undefined) {
    return caller && delegationOf(caller.claims, this.#config.maxDelegationDepth)
  }
}

interface Sink extends LineStream {
  close?(): void
}

/**
 * All parts of this process share one writer, because several writers could interleave their lines when the reader is
 * slow.
 */
let standardOutput: LineFile | undefined
const standardOutputWatches = new Set<LineWatch>()

const unwritable = 'audit.logFile: the file cannot be opened for appending'

/** Returns the reasons why the audit log cannot be opened, one line each. Does not create the file. */
export function auditViolations({ enabled, logFile = '' }: Partial<Audit> = {}): readonly string[] {
  if (!enabled || logFile === '') return []
  try {
    const found = statSync(logFile, { throwIfNoEntry: false })
    if (found?.isDirectory()) return [unwritable]
    accessSync(found ? logFile : dirname(logFile), constants.W_OK)
    return []
  } catch {
    return [unwritable]
  }
}

function openSink(logFile: string | undefined, watch: LineWatch): Sink {
  if (logFile === undefined || logFile === '') {
    standardOutput ??= makeLineFile(1, {
      onLoss: (lines, error) => standardOutputWatches.forEach((one) => one.onLoss?.(lines, error)),
      onWritten: () => standardOutputWatches.forEach((one) => one.onWritten?.()),
    })
    standardOutputWatches.add(watch)
    const { write, flushSync } = standardOutput
    const close = (): void => {
      flushSync()
      standardOutputWatches.delete(watch)
    }
    return { write, flushSync, close }
  }
  try {
    return makeLineFile(openSync(logFile, 'a', 0o600), watch)
  } catch (cause) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: unwritable,
      cause,
    })
  }
}

/** Skips internal operations, which belong to the request that caused them. */
function localSource(): unknown {
  const request = currentScope()?.request
  return { type: 'local', value: 'local', ...(request ? { extra: { request_id: request.requestId } } : {}) }
}

function dataJson(request: AuditPayload | undefined, response: AuditPayload | undefined): string {
  const members: string[] = []
  if (request) members.push(`"request":${request.json}`)
  if (request?.truncated) members.push('"request_truncated":true')
  if (response) members.push(`"response":${response.json}`)
  if (response?.truncated) members.push('"response_truncated":true')
  return members.join(',')
}
