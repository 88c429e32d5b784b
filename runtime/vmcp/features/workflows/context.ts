/** The state that all parts of a workflow execution share. */
import type { AuditTrail, AuditOutcome, Instruments, WorkflowEventType } from '../../../observe/index.ts'
import type { Log } from '../../../net/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import type { ToolEntry } from '../../model/catalog/entries.ts'
import type { Operation } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { Workflow } from './compile.ts'
import { StepError } from './errors.ts'
import type { Evaluator } from './evaluation/evaluator.ts'
import { type ExecutionState, type SharedBytes, shared } from './evaluation/state.ts'
import type { TaskKind, Tasks } from './evaluation/tasks.ts'

/** Calls a backend's tool, which may be hidden. `timeoutMs` is a lower bound for the backend's timeout. */
export type CallWorkflowTool = (
  operation: Operation,
  entry: ToolEntry,
  timeoutMs: number | undefined,
) => Promise<Outcome>

export interface WorkflowParts {
  readonly call: CallWorkflowTool
  readonly clock: Clock
  /** Returns a random number from 0 to 1. */
  readonly random: () => number
  readonly audit: AuditTrail
  readonly telemetry: Instruments
  readonly log: Log
  /** Evaluates templates and schemas. All of a server's workflows share one evaluator. */
  readonly evaluator: Evaluator
}

/** The catalog's tool for a step. */
export interface WorkflowTool {
  readonly entry: ToolEntry
  /** Returns the tool's input schema. The first call parses the schema. */
  readonly inputSchema: () => unknown
}

/** One execution of a workflow. */
export interface WorkflowContext {
  /** Random id of the execution. */
  readonly id: string
  readonly workflow: Workflow
  readonly tools: ReadonlyMap<string, WorkflowTool>
  /** The client's call. */
  readonly operation: Operation
  readonly parts: WorkflowParts
  /** The work and memory that the execution has used so far. */
  readonly used: { spent: number; bytes: number }
}

/** Evaluates one of an execution's tasks. Rejects with StepError, WorkflowError, or the signal's reason. */
export function compute<K extends TaskKind>(
  { workflow, operation, parts, used }: WorkflowContext,
  state: ExecutionState,
  task: { readonly kind: K } & Tasks[K]['task'],
  signal: AbortSignal,
): Promise<Tasks[K]['result']> {
  const { client } = operation
  return parts.evaluator.evaluate(workflow.program, state, task, { client, signal, budget: used })
}

/** Maximum total size of arguments and results that an execution keeps. */
const maxHeldBytes = 32 * 1024 * 1024

/** Keeps bytes until the execution ends. Throws StepError if the execution would have to keep too many bytes. */
export function keep({ used }: WorkflowContext, bytes: Uint8Array): SharedBytes {
  used.bytes += bytes.length
  if (used.bytes > maxHeldBytes)
    throw new StepError(`the workflow’s results exceed ${maxHeldBytes / 2 ** 20} MiB in total`)
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
