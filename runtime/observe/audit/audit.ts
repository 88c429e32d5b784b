/**
 * The audit log: one JSON line for each MCP operation of a client, for each request that did not become one, for each
 * event of a workflow, and for each event of an embedded authorization server.
 *
 * Says who did what with which outcome. Records no header, token or session id; bodies only when the configuration
 * asks for them, redacted and cut. It sees refusals, but decides nothing, and a line that cannot be written never
 * fails a request. Off, it costs nothing: no line is built and no response is watched.
 * Source: docs/specification/virtual-server.md#audit, config.audit and "Events".
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
import type { MaskText, RecordMask } from '../record-mask.ts'
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

/** A call of a tool from within a script or a step, on behalf of the request in flight. */
export interface CallRecord {
  readonly caller: Caller | undefined
  readonly tool: string
  readonly backend: string | undefined
  readonly policy?: PolicyRecord | undefined
  /** Of a call with a request of its own; else they are in the line of the request. */
  readonly notes?: CallNotes | undefined
  readonly outcome: AuditOutcome
  readonly durationMs: number
  /** Raw JSON objects. */
  readonly request?: Buffer | undefined
  readonly response?: Buffer | undefined
}

export interface WorkflowRecord {
  readonly type: WorkflowEventType
  readonly outcome: AuditOutcome
  readonly caller: Caller | undefined
  readonly workflowId: string
  readonly workflowName: string
  readonly stepId?: string | undefined
  /** What else is worth knowing: timeout_ms, duration_ms, step_count, step_type, tool_name, retry_count, condition. */
  readonly extra?: Readonly<Record<string, string | number | boolean | undefined>>
  /** Raw JSON objects. */
  readonly request?: Buffer | undefined
  readonly response?: Buffer | undefined
}

/** What an embedded authorization server did. Holds no secret: sessions only as short hashes. */
export interface AuthorizationRecord {
  readonly type: AuthorizationEventType
  readonly outcome: AuditOutcome
  /** Network address of whoever asked; absent for what the server does by itself. */
  readonly source?: string | undefined
  readonly clientId?: string | undefined
  readonly userId?: string | undefined
  readonly session?: string | undefined
  readonly upstream?: string | undefined
  readonly reason?: string | undefined
}

/** What somebody did in the console. */
export interface ConsoleRecord {
  readonly type: ConsoleEventType
  readonly outcome: AuditOutcome
  /** Network address of the browser. */
  readonly source: string
  /** Undefined: nobody was signed in. */
  readonly caller: Caller | undefined
  /** What it was done to: a backend, a tool, the id of a call, the hash of a session. */
  readonly target?: string | undefined
  /** Of the definition that was approved. */
  readonly digest?: string | undefined
}

export interface AuditOptions {
  /** Replaces logFile (tests). */
  readonly destination?: LineStream | undefined
  /** Hears of lines that are lost. */
  readonly watch?: LineWatch | undefined
  /** For what is recorded of calls and steps within a request. */
  readonly mask?: RecordMask | undefined
  /** Milliseconds since the epoch. */
  readonly now?: (() => number) | undefined
}

export interface AuditTrail {
  readonly enabled: boolean
  readonly detectApplicationErrors: boolean
  /** How many bytes of a response the record needs; 0: none. */
  readonly responseBytes: number
  /** What of a decision of policies is recorded. */
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
/** Of what a browser named. */
const maxTarget = 256
/** Beyond what may be recorded, so that a credential at the edge is seen whole. */
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

/** Throws INVALID_CONFIG when the file cannot be opened. */
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
    if (!this.#types.has('mcp_tool_call')) return
    const mask = this.#mask?.begin()
    const { policy, origin } = policyMembers(record.policy, mask)
    const rest = {
      source: localSource(),
      subjects: subjectsOf(record.caller, currentScope()?.request?.client),
      delegation: this.#delegation(record.caller),
      target: { method: 'tools/call', name: record.tool, type: 'tool', ...origin },
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
    this.#write('mcp_tool_call', record.outcome, exchangeComponent, rest, this.#data(record, mask))
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
      // What consumers of audit logs in this format look for, beside the key of all our logs.
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

  /** Only as much of a body is read as may be recorded. */
  #payload(body: Buffer | undefined, wanted: boolean, mask: MaskText | undefined): AuditPayload | undefined {
    const most = this.#config.maxDataSize
    if (!wanted || body === undefined || body.length === 0 || most === 0) return undefined
    const end = most + marginBytes
    return recordedPayload(body.toString('utf8', 0, end), { whole: body.length <= end, mask }, most)
  }

  /** Of a call or step within a request. */
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

/** One writer however many parts of this process audit: lines of several would mix when the reader is slow. */
let standardOutput: LineFile | undefined
const standardOutputWatches = new Set<LineWatch>()

const unwritable = 'audit.logFile: the file cannot be opened for appending'

/** Returns why the audit log cannot be opened, one line per reason. Does not create the file. */
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

/** What happens inside belongs to the request that caused it. */
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
