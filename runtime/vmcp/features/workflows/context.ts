/**
 * What everything in one execution of a workflow works with.
 */
import type { AuditTrail, AuditOutcome, Instruments, WorkflowEventType } from '../../../observe/index.ts'
import type { Log } from '../../../net/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import type { ToolEntry } from '../../model/catalog/entries.ts'
import type { Operation } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { Workflow } from './compile.ts'
import {
  type Evaluator,
  type ExecutionState,
  type SharedBytes,
  shared,
  type TaskKind,
  type Tasks,
} from './evaluation/index.ts'
import { StepError } from './errors.ts'

/** Calls a tool of a backend, hidden ones too; `timeoutMs` is the least that the backend has for it. */
export type CallWorkflowTool = (
  operation: Operation,
  entry: ToolEntry,
  timeoutMs: number | undefined,
) => Promise<Outcome>

export interface WorkflowParts {
  readonly call: CallWorkflowTool
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly audit: AuditTrail
  readonly telemetry: Instruments
  readonly log: Log
  /** Computes what executions need; shared by all workflows of a server. */
  readonly evaluator: Evaluator
}

/** A tool of a step, as the catalog has it. */
export interface WorkflowTool {
  readonly entry: ToolEntry
  /** Its input schema; read when it is needed first. */
  readonly inputSchema: () => unknown
}

/** One execution. */
export interface WorkflowContext {
  /** Of the execution; random. */
  readonly id: string
  readonly workflow: Workflow
  readonly tools: ReadonlyMap<string, WorkflowTool>
  /** The client's call. */
  readonly operation: Operation
  readonly parts: WorkflowParts
  /** What the execution has used of what it may use. */
  readonly used: { spent: number; bytes: number }
}

/** Has something computed for an execution. Rejects with StepError, WorkflowError, or the reason of the signal. */
export function compute<K extends TaskKind>(
  { workflow, operation, parts, used }: WorkflowContext,
  state: ExecutionState,
  task: { readonly kind: K } & Tasks[K]['task'],
  signal: AbortSignal,
): Promise<Tasks[K]['result']> {
  const { client } = operation
  return parts.evaluator.evaluate(workflow.program, state, task, { client, signal, budget: used })
}

/** What one execution may hold of arguments and results. */
const maxHeldBytes = 32 * 1024 * 1024

/** Keeps bytes for the time of an execution. Throws StepError when it holds too much. */
export function keep({ used }: WorkflowContext, bytes: Uint8Array): SharedBytes {
  used.bytes += bytes.length
  if (used.bytes > maxHeldBytes)
    throw new StepError(`the results of the workflow are larger than ${maxHeldBytes / 2 ** 20} MiB together`)
  return bytes.buffer instanceof SharedArrayBuffer ? (bytes as SharedBytes) : shared(bytes)
}

export interface AuditFacts {
  readonly stepId?: string
  readonly extra?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly request?: Buffer | undefined
  readonly response?: Buffer | undefined
}

export function auditWorkflow(
  { id, workflow, operation, parts }: WorkflowContext,
  type: WorkflowEventType,
  outcome: AuditOutcome,
  facts: AuditFacts,
): void {
  const { caller } = operation.client
  parts.audit.workflow({ type, outcome, caller, workflowId: id, workflowName: workflow.name, ...facts })
}
